"""Data files shown as they are."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakehouse_platform.errors import DataFilesMissingError, StorageIoError
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.nfs.tree.blocks import BLOCK_BYTES
from lakehouse_platform.nfs.tree.raw import RawFiles
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.tables import PEOPLE, people


@pytest.fixture
def files() -> Iterator[RawFiles]:
    files = RawFiles()
    yield files
    files.close()


@pytest.fixture
def big(place: Location, config: LakehouseConfig) -> Table:
    """A table with one data file of more than a block."""
    table = Table(place, config, Origin())
    table.create(PEOPLE)
    table.append(
        [{"id": number, "name": f"{number * 7919 % 999983}" * 9, "age": 1} for number in range(60_000)]
    )
    return table


def _bytes(place: Location, path: str) -> bytes:
    with place.filesystem().open_input_file(path) as source:
        return source.read()


def test_any_range_of_a_file_is_the_files_own_bytes(files: RawFiles, place: Location, big: Table) -> None:
    (file,) = Pinned.open(big).files
    data = _bytes(place, file.path)
    content = files.content(place, file.path, file.size)
    assert content.size == file.size == len(data)
    assert content.size > BLOCK_BYTES
    for start in (0, 1, BLOCK_BYTES - 3, BLOCK_BYTES, len(data) - 1, len(data), len(data) + 5):
        for count in (0, 1, 5, BLOCK_BYTES, 5 * BLOCK_BYTES):
            assert b"".join(content.read(start, count)) == data[start : start + count]


def test_many_readers_at_once_get_the_files_own_bytes(files: RawFiles, place: Location, big: Table) -> None:
    (file,) = Pinned.open(big).files
    data = _bytes(place, file.path)
    ranges = [(at, 30_011) for at in range(0, file.size, 30_011)] * 2
    with ThreadPoolExecutor(8) as pool:
        read = lambda at, count: b"".join(files.content(place, file.path, file.size).read(at, count))  # noqa: E731
        parts = list(pool.map(lambda one: read(*one), ranges))
    assert parts == [data[at : at + count] for at, count in ranges]


@pytest.mark.object_store
@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_what_was_read_from_an_object_store_is_not_read_again(
    files: RawFiles, place: Location, big: Table
) -> None:
    (file,) = Pinned.open(big).files
    content = files.content(place, file.path, file.size)
    before = b"".join(content.read(0, file.size))
    big.drop()
    assert b"".join(files.content(place, file.path, file.size).read(0, file.size)) == before
    assert files.blocks.used_bytes == file.size


def test_a_file_that_is_gone_is_an_error(files: RawFiles, place: Location, config: LakehouseConfig) -> None:
    table = Table(place, config, Origin())
    table.create(PEOPLE)
    table.append(people(1))
    (file,) = Pinned.open(table).files
    content = files.content(place, file.path, file.size)
    table.drop()
    with pytest.raises(DataFilesMissingError):
        content.read(0, 10)


@pytest.mark.object_store
@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_an_object_that_is_shorter_than_the_log_says_is_an_error(
    files: RawFiles, place: Location, big: Table
) -> None:
    (file,) = Pinned.open(big).files
    with pytest.raises(StorageIoError):
        files.content(place, file.path, file.size + 100).read(file.size - 10, 100)
