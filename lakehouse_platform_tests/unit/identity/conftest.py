"""The system tables that identity works on."""

from __future__ import annotations

import pytest

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES


@pytest.fixture
def identity_store(store: DeltaStore) -> DeltaStore:
    """A store with empty tables of users and sessions."""
    for name in ("users", "sessions"):
        store.ensure(SYSTEM_TABLES[name])
    return store
