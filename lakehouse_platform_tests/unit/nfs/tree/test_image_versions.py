"""Which image is shown when, and the times that it tells."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    TableNotFoundError,
    VersionNotFoundError,
)
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.handmade import HandmadeTable, column
from lakehouse_platform_tests.support.images import expected, whole
from lakehouse_platform_tests.support.tables import PEOPLE, people
from lakehouse_platform_tests.unit.nfs.tree.conftest import OpenCache

FORMS = list(Form)


def test_fresh_means_that_the_newest_version_is_shown(table: Table, cache: SegmentCache) -> None:
    images = Images(table, cache)
    assert images.current() is None
    assert not images.is_fresh(0.0)
    images.refresh()
    assert images.is_fresh(0.0)
    assert not images.is_fresh(0.0, Form.JSON)
    table.append(people(1))
    assert not images.is_fresh(0.0)
    images.refresh(Form.JSON)
    assert not images.is_fresh(0.0)
    assert images.refresh() is images.refresh()


def test_a_remote_table_is_believed_for_a_while(
    place: Location, config: LakehouseConfig, cache: SegmentCache
) -> None:
    table = Table(place, config, Origin())
    table.create(PEOPLE)
    time = 100.0
    images = Images(table, cache, remote_fresh_seconds=5, clock=lambda: time)
    images.refresh()
    table.append(people(1))
    assert images.is_fresh(104.0) != place.is_local
    assert not images.is_fresh(105.0)
    assert whole(images.refresh()) == b"id,name,age\n1,n1,30\n"


def test_the_last_64_images_are_retained_newest_first(table: Table, cache: SegmentCache) -> None:
    images = Images(table, cache)
    for number in range(70):
        images.refresh()
        table.append(people(number))
    images.refresh()
    assert [image.version for image in images.retained()] == list(range(70, 6, -1))
    assert whole(images.retained()[-1]) == expected(table, Form.CSV, 7)


@pytest.mark.parametrize("form", FORMS)
def test_old_versions_have_images_too(table: Table, cache: SegmentCache, form: Form) -> None:
    for number in range(4):
        table.append(people(number))
    table.delete("id = 2")
    images = Images(table, cache)
    for version in range(6):
        image = images.at(version, form)
        assert whole(image) == expected(table, form, version)
        assert images.at(version, form) is image
    with pytest.raises(VersionNotFoundError):
        images.at(9)


def test_an_old_version_keeps_the_time_that_the_view_told(table: Table, open_cache: OpenCache) -> None:
    cache = open_cache()
    images = Images(table, cache)
    told: list[int] = []
    for number in range(5):
        told.append(images.refresh().changed_ns)
        table.append(people(number))
    assert told == sorted(set(told))
    again = Images(table, open_cache())
    assert [again.at(version).changed_ns for version in range(5)] == told


def test_times_grow_though_clocks_go_back(tmp_path: Path, store: DeltaStore, open_cache: OpenCache) -> None:
    foreign = HandmadeTable(tmp_path / "lake" / "t")
    foreign.path.mkdir(parents=True)
    foreign.create([column("id", pa.int64())])
    images = Images(store.table("t"), open_cache())
    told = [images.refresh().changed_ns]
    for version in range(1, 4):
        foreign.commit(version, foreign.add(pa.table({"id": [version]})))
        log = foreign.log / f"{version:020}.json"
        info, *rest = log.read_text().splitlines()
        entry = json.loads(info)
        entry["commitInfo"]["timestamp"] = 1_600_000_000_000 - version
        log.write_text("\n".join([json.dumps(entry), *rest]) + "\n")
        if version == 3:
            images = Images(store.table("t"), open_cache())
        told.append(images.refresh().changed_ns)
    assert told == [told[0] + number for number in range(4)]
    assert Images(store.table("t"), open_cache()).refresh().changed_ns == told[-1]


def test_a_dropped_table_has_no_image_and_one_made_anew_starts_afresh(
    store: DeltaStore, table: Table, cache: SegmentCache
) -> None:
    images = Images(table, cache)
    table.append(people(1))
    old = images.refresh()
    table.drop()
    assert not images.is_fresh(0.0)
    with pytest.raises(TableNotFoundError):
        images.refresh()
    assert images.current() is None
    again = store.create("t", PEOPLE)
    again.append(people(7))
    new = images.refresh()
    assert whole(new) == b"id,name,age\n7,n7,30\n"
    assert new.changed_ns > old.changed_ns
    assert list(images.retained()) == [new]
