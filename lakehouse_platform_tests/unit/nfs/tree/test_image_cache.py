"""Images whose bytes were evicted, or whose process ended."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    DataFilesMissingError,
    StorageIoError,
)
from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.handmade import HandmadeTable, column
from lakehouse_platform_tests.support.images import expected, whole
from lakehouse_platform_tests.support.tables import people
from lakehouse_platform_tests.unit.nfs.tree.conftest import OpenCache

FORMS = list(Form)


@pytest.mark.parametrize("form", FORMS)
def test_a_cache_too_small_for_anything_still_serves_every_byte(
    large: Table, open_cache: OpenCache, form: Form
) -> None:
    cache = open_cache(budget_bytes=1)
    images = Images(large, cache)
    image = images.refresh(form)
    data = whole(image)
    assert data == expected(large, form)
    for start in range(0, image.size, 1 << 20):
        assert b"".join(image.read(start, 1 << 20)) == data[start : start + (1 << 20)]


def test_bytes_that_are_being_read_are_not_evicted(large: Table, open_cache: OpenCache) -> None:
    cache = open_cache(budget_bytes=1)
    images = Images(large, cache)
    image = images.refresh()
    (view,) = image.read(1 << 20, 1 << 20)
    copy = bytes(view)
    images.refresh(Form.JSON)
    assert image.is_ready(1 << 20, 1 << 20)
    assert bytes(view) == copy
    view.release()
    images.refresh(Form.JSONL)
    assert not image.is_ready(1 << 20, 1 << 20)
    assert cache.used_bytes < 2 * images.refresh(Form.JSONL).size


def test_preparing_brings_bytes_back(large: Table, open_cache: OpenCache) -> None:
    cache = open_cache(budget_bytes=1 << 25)
    images = Images(large, cache)
    image = images.refresh()
    for number in range(4):  # pushes out what was there
        large.append([{"id": number, "name": "y" * 4_000_000, "age": number}] * 2)
        images.refresh()
    assert not image.is_ready(0, image.size)
    images.prepare(image)
    assert image.is_ready(0, image.size)
    assert whole(image) == expected(large, Form.CSV, image.version)


@pytest.mark.parametrize("form", FORMS)
def test_after_a_restart_everything_is_as_before_without_rendering(
    large: Table, open_cache: OpenCache, form: Form
) -> None:
    before = Images(large, open_cache()).refresh(form)
    data, told = whole(before), before.changed_ns
    cache = open_cache()
    after = Images(large, cache).refresh(form)
    assert (after.size, after.changed_ns, list(after.segments)) == (before.size, told, list(before.segments))
    assert after.is_ready(0, after.size)
    assert whole(after) == data
    assert cache.rendered_files == 0


def test_after_a_restart_sizes_are_known_though_the_bytes_are_gone(
    large: Table, open_cache: OpenCache
) -> None:
    before = Images(large, open_cache()).refresh()
    data = whole(before)
    open_cache(budget_bytes=1)
    cache = open_cache()
    after = Images(large, cache).refresh()
    assert (after.size, cache.rendered_files) == (before.size, 0)
    assert after.row_position(after.segments[2].start) == (2, 0)
    assert whole(after) == data


@pytest.mark.parametrize("remains", ["1.segment", "7.tmp", "8.pack"])
def test_what_a_killed_process_left_half_done_is_removed(
    table: Table, open_cache: OpenCache, tmp_path: Path, remains: str
) -> None:
    open_cache()
    left = tmp_path / "state" / "segments" / remains
    left.write_bytes(b"half")
    cache = open_cache()
    assert not left.exists()
    table.append(people(1))
    assert whole(Images(table, cache).refresh()) == expected(table, Form.CSV)


def test_a_cache_that_somebody_emptied_is_filled_again(
    large: Table, open_cache: OpenCache, tmp_path: Path
) -> None:
    Images(large, open_cache()).refresh()
    cache = open_cache()
    for path in (tmp_path / "state" / "segments").iterdir():
        path.unlink()
    assert whole(Images(large, cache).refresh()) == expected(large, Form.CSV)


def test_bytes_of_another_boot_are_not_trusted(table: Table, open_cache: OpenCache) -> None:
    table.append(people(1))
    cache = open_cache()
    Images(table, cache).refresh()
    cache.sizes.fact("boot", "another")
    cache = open_cache()
    assert cache.used_bytes == 0
    assert whole(Images(table, cache).refresh()) == expected(table, Form.CSV)


def test_a_data_file_that_was_changed_is_not_passed_off_as_the_old_one(
    tmp_path: Path, store: DeltaStore, open_cache: OpenCache
) -> None:
    foreign = HandmadeTable(tmp_path / "lake" / "t")
    foreign.path.mkdir(parents=True)
    foreign.create([column("id", pa.int64())], foreign.add(pa.table({"id": [1]}), name="a.parquet"))
    Images(store.table("t"), open_cache()).refresh()
    open_cache(budget_bytes=0)
    cache = open_cache()
    for path in (tmp_path / "state" / "segments").iterdir():
        path.unlink()
    image = Images(store.table("t"), cache).refresh()
    foreign.add(pa.table({"id": [2]}), name="a.parquet")
    with pytest.raises(StorageIoError, match=r"a\.parquet"):
        whole(image)


def test_a_vacuumed_file_is_an_error_where_its_bytes_are_gone_too(
    table: Table, open_cache: OpenCache
) -> None:
    table.append(people(1))
    image = Images(table, open_cache()).refresh()
    assert whole(image)
    open_cache(budget_bytes=0)
    for path in table.location.path.glob("*.parquet"):
        path.unlink()
    images = Images(table, open_cache())
    with pytest.raises(DataFilesMissingError):
        images.refresh(Form.JSON)
