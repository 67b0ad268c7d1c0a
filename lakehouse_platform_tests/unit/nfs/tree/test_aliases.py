from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakehouse_platform.nfs.tree.aliases import Aliases, Moved

TABLE, OTHER, MOUNT = b"table--1", b"table--2", b"mnt1"
MOVED = Moved(TABLE, MOUNT, 7)


@pytest.fixture
def reopened(tmp_path: Path) -> Iterator[Callable[[], Aliases]]:
    """Open the aliases of one directory, closing those that were open."""
    opened: list[Aliases] = []

    def reopen() -> Aliases:
        while opened:
            opened.pop().close()
        opened.append(Aliases(tmp_path))
        return opened[-1]

    yield reopen
    while opened:
        opened.pop().close()


def test_a_file_that_became_a_view_stays_one(reopened: Callable[[], Aliases]) -> None:
    reopened().become(5, MOUNT, TABLE, 1)
    aliases = reopened()
    assert (aliases.table_of(5), aliases.table_of(6)) == (TABLE, None)


def test_a_moved_view_keeps_its_name(reopened: Callable[[], Aliases]) -> None:
    reopened().put(b"dir", b"data.csv~", MOVED, 1)
    aliases = reopened()
    assert aliases.at(b"dir", b"data.csv~") == aliases.of(MOUNT, TABLE) == MOVED
    assert list(aliases.within(b"dir")) == [(b"data.csv~", MOVED)]
    assert aliases.at(12, b"data.csv~") is None
    assert aliases.of(MOUNT, OTHER) is None


def test_a_name_that_is_dropped_is_gone(reopened: Callable[[], Aliases]) -> None:
    aliases = reopened()
    aliases.put(b"dir", b"a", MOVED, 1)
    assert aliases.drop(b"dir", b"a", 2) == MOVED
    assert aliases.drop(b"dir", b"a", 3) is None
    assert (aliases.of(MOUNT, TABLE), aliases.changed_ns(b"dir")) == (None, 2)
    assert reopened().at(b"dir", b"a") is None


def test_only_who_moved_a_view_knows_it_by_another_file(reopened: Callable[[], Aliases]) -> None:
    aliases = reopened()
    aliases.become(4, MOUNT, TABLE, 1)
    assert aliases.filled(MOUNT, TABLE) is None
    aliases.put(b"dir", b"a", MOVED, 2)
    aliases.become(5, MOUNT, TABLE, 3)
    assert (aliases.filled(MOUNT, TABLE), aliases.filled(b"mnt2", TABLE)) == (5, None)
    aliases.drop(b"dir", b"a", 4)
    assert aliases.filled(MOUNT, TABLE) is None


def test_of_two_names_one_is_left(reopened: Callable[[], Aliases]) -> None:
    aliases = reopened()
    older = Moved(TABLE, MOUNT, 6)
    aliases.put(b"dir", b"a", older, 1)
    aliases.put(b"dir", b"b", MOVED, 2)
    aliases.drop(b"dir", b"b", 3)
    assert aliases.of(MOUNT, TABLE) == older


def test_the_oldest_files_are_forgotten(reopened: Callable[[], Aliases]) -> None:
    aliases = reopened()
    for number in range(10_002):
        aliases.become(number, MOUNT, TABLE, number)
    aliases = reopened()
    assert [aliases.table_of(number) is None for number in (0, 1, 2)] == [True, True, False]
