from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lakehouse_platform.defs.build import build_defs
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.status import registered_tables


@pytest.fixture
def extra_settings() -> dict[str, Any]:
    """Settings that a test adds by parametrizing this fixture."""
    return {}


@pytest.fixture
def config(tmp_path: Path, extra_settings: dict[str, Any]) -> LakehouseConfig:
    """A lakehouse that does not exist yet, with low thresholds."""
    return LakehouseConfig(
        **extra_settings,
        base_path=str(tmp_path / "lake"),
        durability="os",
        compact_min_small_files=4,
        z_order_min_new_versions=5,
        z_order_columns=("name",),
        checkpoint_interval=10,
    )


@pytest.fixture
def store(config: LakehouseConfig) -> DeltaStore:
    """The lakehouse as its other users reach it."""
    return DeltaStore(config)


@pytest.fixture
def lakehouse(config: LakehouseConfig) -> LakehouseResource:
    return LakehouseResource.from_config(config)


@pytest.fixture
def defs(config: LakehouseConfig) -> Callable[[], dg.Definitions]:
    """Assemble the definitions of the lakehouse as it is at the time of the call."""
    return lambda: build_defs(config=config)


@pytest.fixture
def system_store(store: DeltaStore) -> DeltaStore:
    """The lakehouse with its platform tables, empty."""
    for spec in registered_tables().values():
        store.ensure(spec)
    return store


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()
