from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore


@pytest.fixture
def store(tmp_path: Path) -> DeltaStore:
    """An empty store with low thresholds, so that few commits make a table due."""
    return DeltaStore(
        LakehouseConfig(
            base_path=str(tmp_path / "lake"),
            durability="os",
            compact_min_small_files=4,
            z_order_min_new_versions=5,
            z_order_columns=("name",),
            checkpoint_interval=10,
            vacuum_retention_hours=0,
            log_retention_hours=0,
        )
    )
