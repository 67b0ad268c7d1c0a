from __future__ import annotations

import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform_tests.support.tables import PEOPLE


@pytest.fixture
def config(place: Location) -> LakehouseConfig:
    """Settings of a store on disk and of one on S3."""
    return LakehouseConfig(base_path=place.uri, storage_options=dict(place.options), durability="os")


@pytest.fixture
def store(config: LakehouseConfig) -> DeltaStore:
    """A store with the empty table `people`."""
    store = DeltaStore(config)
    store.create("people", PEOPLE)
    return store


@pytest.fixture
def writes(place: Location) -> int:
    """How many writes each process makes: fewer on S3, where each takes longer."""
    return 25 if place.is_local else 8
