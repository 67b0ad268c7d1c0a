from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.store.delta_store import DeltaStore


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory that is not there yet."""
    return tmp_path / "state" / "audit"


@pytest.fixture
def log(store: DeltaStore, state: Path) -> Iterator[AuditLog]:
    """An audit log of an empty lakehouse."""
    with AuditLog(store, state) as log:
        yield log
