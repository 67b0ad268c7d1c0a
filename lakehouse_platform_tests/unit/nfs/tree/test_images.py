"""Images of tables: the exact bytes of each version, whatever became of the cache since."""

from __future__ import annotations

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table
from lakehouse_platform.text.csv_write import csv_rows
from lakehouse_platform.text.json_write import json_lines
from lakehouse_platform_tests.support.deletion_vectors import inline_vector
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column, remove
from lakehouse_platform_tests.support.images import expected, whole
from lakehouse_platform_tests.support.tables import PEOPLE, people
from lakehouse_platform_tests.unit.nfs.tree.conftest import OpenCache

FORMS = list(Form)


# ── Bytes ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", FORMS)
def test_an_image_follows_every_kind_of_change(table: Table, cache: SegmentCache, form: Form) -> None:
    images = Images(table, cache)
    steps = [
        lambda: None,
        lambda: table.append(people(1, 2)),
        lambda: table.append(people(3)),
        lambda: table.delete("id = 1"),
        lambda: table.update({"name": "'x, \"y\"\n'"}, "id = 2"),
        lambda: table.add_columns(pa.schema([("note", pa.string())])),
        lambda: table.append([{"id": 9, "note": ""}]),
        table.compact,
        lambda: table.set_properties({"delta.appendOnly": "false"}),
        lambda: table.restore(1),
        lambda: table.delete("true"),
    ]
    told = 0
    for step in steps:
        step()
        image = images.refresh(form)
        assert images.current(form) is image
        assert whole(image) == expected(table, form)
        assert image.version == table.version()
        assert image.changed_ns > told
        assert [segment.rows for segment in image.segments] == [file.rows for file in table.data_files()]
        told = image.changed_ns


def test_no_row_at_all_is_a_header_or_an_empty_array(table: Table, cache: SegmentCache) -> None:
    images = Images(table, cache)
    assert whole(images.refresh(Form.CSV)) == b"id,name,age\n"
    assert whole(images.refresh(Form.JSONL)) == b""
    assert whole(images.refresh(Form.JSON)) == b"[]\n"


def test_files_without_rows_take_no_bytes(tmp_path: Path, store: DeltaStore, cache: SegmentCache) -> None:
    foreign = HandmadeTable(tmp_path / "lake" / "t")
    foreign.path.mkdir(parents=True)
    adds = [foreign.add(pa.table({"id": pa.array(ids, pa.int64())})) for ids in ([], [1], [], [2], [])]
    for number, add in enumerate(adds):
        add["add"]["modificationTime"] += number
    foreign.create([column("id", pa.int64())], *adds)
    images = Images(store.table("t"), cache)
    assert whole(images.refresh(Form.CSV)) == b"id\n1\n2\n"
    assert whole(images.refresh(Form.JSON)) == b'[\n{"id":1},\n{"id":2}\n]\n'
    assert images.refresh(Form.CSV).row_position(5) == (3, 0)


def test_null_and_the_empty_text_differ_and_lines_in_quotes_stay_in_their_row(
    table: Table, cache: SegmentCache
) -> None:
    table.append([{"id": 1, "name": None}, {"id": 2, "name": ""}, {"id": 3, "name": 'a\n"b"\n'}])
    image = Images(table, cache).refresh()
    assert whole(image) == b'id,name,age\n1,,\n2,"",\n3,"a\n""b""\n",\n'


def test_rows_that_a_deletion_vector_hides_are_not_shown(
    tmp_path: Path, store: DeltaStore, cache: SegmentCache
) -> None:
    foreign = HandmadeTable(tmp_path / "lake" / "t")
    foreign.path.mkdir(parents=True)
    add = foreign.add(pa.table({"id": pa.array(range(4), pa.int64())}))
    foreign.create([column("id", pa.int64())], add, protocol=Protocol.with_features("deletionVectors"))
    images = Images(store.table("t"), cache)
    before = images.refresh()
    foreign.commit(1, remove(add), {"add": {**add["add"], "deletionVector": inline_vector([1, 2])}})
    assert whole(images.refresh()) == b"id\n0\n3\n"
    assert whole(before) == b"id\n0\n1\n2\n3\n"


def test_partitions_show_their_values(store: DeltaStore, cache: SegmentCache) -> None:
    table = store.create("t", PEOPLE, partition_by=["name"])
    images = Images(table, cache)
    images.refresh()
    table.append(people(1, 2))
    assert sorted(whole(images.refresh()).splitlines()) == [b"1,n1,30", b"2,n2,30", b"id,name,age"]


def test_an_append_leaves_the_bytes_before_it_as_they_were(table: Table, cache: SegmentCache) -> None:
    images = Images(table, cache)
    table.append(people(1, 2))
    before = images.refresh()
    table.append(people(3))
    after = images.refresh()
    assert whole(after)[: before.size] == whole(before)
    assert after.segments[0] == before.segments[0]
    assert (len(before.segments), len(after.segments)) == (1, 2)


def test_an_append_renders_nothing_but_its_own_file(table: Table, cache: SegmentCache) -> None:
    images = Images(table, cache)
    for number in range(5):
        table.append(people(number))
    images.refresh()
    assert cache.rendered_files == 5
    table.append(people(9))
    images.refresh()
    assert cache.rendered_files == 6
    table.delete("id = 2")
    images.refresh()
    assert cache.rendered_files == 6


def many_files(tmp_path: Path, count: int) -> HandmadeTable:
    """A table of so many files of one row."""
    foreign = HandmadeTable(tmp_path / "lake" / "t")
    foreign.path.mkdir(parents=True)
    add = foreign.add(pa.table({"id": pa.array([1], pa.int64())}), name="0.parquet")
    adds = []
    for number in range(count):
        name = f"part-{number:05}.parquet"
        os.link(foreign.path / "0.parquet", foreign.path / name)
        adds.append({"add": {**add["add"], "path": name}})
    return foreign.create([column("id", pa.int64())], *adds)


@pytest.mark.slow
def test_an_append_to_5000_files_costs_one(tmp_path: Path, store: DeltaStore, cache: SegmentCache) -> None:
    many_files(tmp_path, 5_000)
    table = store.table("t")
    images = Images(table, cache)
    images.refresh()
    table.append([{"id": 2}])
    done = cache.rendered_files
    image = images.refresh()
    assert cache.rendered_files == done + 1
    assert whole(image) == b"id\n" + b"1\n" * 5_000 + b"2\n"
    assert len(image.read(0, image.size)) < 100
    assert len(list((tmp_path / "state" / "segments").iterdir())) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors by /proc")
def test_hundreds_of_large_segments_do_not_use_up_the_descriptors(
    tmp_path: Path, store: DeltaStore, cache: SegmentCache
) -> None:
    foreign = HandmadeTable(tmp_path / "lake" / "t")
    foreign.path.mkdir(parents=True)
    add = foreign.add(pa.table({"id": pa.array(range(12_000), pa.int64())}), name="0.parquet")
    adds = [{"add": {**add["add"], "path": f"{number}.parquet"}} for number in range(400)]
    for action in adds[1:]:
        os.link(foreign.path / "0.parquet", foreign.path / action["add"]["path"])
    foreign.create([column("id", pa.int64())], *adds)
    image = Images(store.table("t"), cache).refresh()
    before = len(list(Path("/proc/self/fd").iterdir()))
    lines = sum(
        bytes(part).count(b"\n")
        for start in range(0, image.size, 1 << 20)
        for part in image.read(start, 1 << 20)
    )
    assert lines == 1 + 400 * 12_000
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 300


# ── Reading ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", FORMS)
def test_any_slice_is_that_part_of_the_whole(large: Table, cache: SegmentCache, form: Form) -> None:
    image = Images(large, cache).refresh(form)
    data = whole(image)
    assert data == expected(large, form)
    chance = random.Random(1)
    places = [chance.randrange(image.size) for _ in range(50)]
    for start in [0, 1, image.header_size, image.size - 1, image.size, image.size + 5, *places]:
        for count in (0, 1, 100, 200_000):
            assert b"".join(image.read(start, count)) == data[start : start + count]


def test_slices_of_a_large_segment_are_not_copied(large: Table, cache: SegmentCache) -> None:
    image = Images(large, cache).refresh()
    (view,) = image.read(1 << 20, 1 << 20)
    assert isinstance(view, memoryview)
    assert view.readonly


@pytest.mark.parametrize("form", [Form.CSV, Form.JSONL])
def test_the_row_at_an_offset_is_found(large: Table, cache: SegmentCache, form: Form) -> None:
    image = Images(large, cache).refresh(form)
    middle = image.segments[1]
    pinned = Pinned.open(large)
    render = csv_rows if form is Form.CSV else json_lines
    (batch,) = pa.Table.from_batches(pinned.read_rows(middle.path)).combine_chunks().to_batches()
    offset = middle.start
    for row in (0, 1, 7, 65_535, 65_536, 100_001, 149_999):
        offset = middle.start + len(render(batch.slice(0, row)))
        assert image.row_position(offset) == (1, row)
    last = image.segments[2]
    assert image.row_position(image.header_size) == (0, 0)
    assert image.row_position(last.start) == (2, 0)
    assert image.row_position(last.start + last.size // 2) == (2, 1)
    for outside in (-1, image.header_size - 1, image.size):
        with pytest.raises(InvalidArgumentError):
            image.row_position(outside)


def test_many_readers_at_once_see_the_same_bytes_and_each_file_is_rendered_once(
    large: Table, cache: SegmentCache
) -> None:
    images = Images(large, cache)
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: whole(images.refresh()), range(16)))
    assert set(map(hash, seen)) == {hash(expected(large, Form.CSV))}
    assert cache.rendered_files == 3


@pytest.mark.parametrize("budget", [1 << 30, 100])
def test_readers_of_old_images_and_writers_do_not_disturb_each_other(
    table: Table, open_cache: OpenCache, budget: int
) -> None:
    images = Images(table, open_cache(budget))
    images.refresh()
    done = threading.Event()

    def read_on(seed: int) -> int:
        seen: dict[int, bytes] = {}
        chance, reads = random.Random(seed), 0
        while not done.is_set():
            for image in images.retained():
                data = seen.setdefault(image.version, whole(image))
                start = chance.randrange(image.size)
                assert b"".join(image.read(start, 50)) == data[start : start + 50]
                reads += 1
        assert all(seen[version] == expected(table, Form.CSV, version) for version in list(seen)[::7])
        return reads

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read_on, seed) for seed in range(2)]
        for number in range(30):
            table.append(people(number, number + 1000))
            if number % 10 == 9:
                table.delete(f"id = {number - 3}")
                images.refresh()
                table.compact()
            images.refresh()
        done.set()
        assert all(reader.result() for reader in readers)
