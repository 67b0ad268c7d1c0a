from __future__ import annotations

import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform_tests.support.tables import PEOPLE, people


@pytest.fixture
def store(place: Location) -> DeltaStore:
    """An empty store, on disk and on S3."""
    return DeltaStore(
        LakehouseConfig(base_path=place.uri, storage_options=dict(place.options), durability="os")
    )


@pytest.fixture
def filled(store: DeltaStore) -> DeltaStore:
    """A store with the table `people`: version 1, rows 1 to 5."""
    store.create("people", PEOPLE)
    store.append("people", people(1, 2, 3, 4, 5))
    return store
