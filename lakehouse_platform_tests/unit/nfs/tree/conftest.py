"""Fixtures of the image tests: a cache that can be closed and opened again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.tables import PEOPLE, people

OpenCache = Callable[..., SegmentCache]


@pytest.fixture
def open_cache(tmp_path: Path) -> Iterator[OpenCache]:
    """Open the cache of one state directory; one that was opened before is closed, as at a restart."""
    opened: list[SegmentCache] = []

    def open_again(budget_bytes: int = 1 << 30) -> SegmentCache:
        while opened:
            opened.pop().close()
        opened.append(SegmentCache(tmp_path / "state", budget_bytes))
        return opened[-1]

    yield open_again
    for cache in opened:
        cache.close()


@pytest.fixture
def cache(open_cache: OpenCache) -> SegmentCache:
    """A cache with room for everything."""
    return open_cache()


@pytest.fixture
def table(store: DeltaStore) -> Table:
    """A table without rows."""
    return store.create("t", PEOPLE)


@pytest.fixture
def large(table: Table) -> Table:
    """One large segment between small ones, with quotes and lines in fields."""
    table.append(people(1))
    names = ["plain", 'with "quotes"', "two\nlines", "", "x" * 90]
    some = [{"id": number, "name": names[number % 5], "age": number} for number in range(150_000)]
    table.append(some)
    table.append(people(2, 3))
    return table
