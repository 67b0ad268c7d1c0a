"""Scratch files' bytes and attributes: writing, sizes, quotas, flushing, handing over."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakehouse_platform.nfs.operations import CreateMode, NfsError, ServerTime, SetAttributes, Status
from lakehouse_platform.nfs.tree.scratch import Scratch

ROOT = b"8 bytes."
QUOTA = 1 << 20
BLOCK = 4096


@pytest.fixture
def scratch(tmp_path: Path) -> Generator[Scratch]:
    opened = Scratch(tmp_path, QUOTA, 1_000, uid=7, gid=8)
    yield opened
    opened.close()


@pytest.fixture
def file(scratch: Scratch) -> int:
    return scratch.make_file(ROOT, b"file").inode


def content(scratch: Scratch, inode: int) -> bytes:
    return b"".join(scratch.read(inode, 0, 1 << 30))


def refused(status: Status) -> pytest.RaisesExc[NfsError]:
    return pytest.RaisesExc(NfsError, check=lambda error: error.status is status)


def test_writes_arrive_in_any_order_and_gaps_read_as_nul(scratch: Scratch, file: int) -> None:
    scratch.write(file, 10, b"world")
    scratch.write(file, 0, memoryview(b"hello"))
    assert content(scratch, file) == b"hello\0\0\0\0\0world"
    assert scratch.read(file, 12, 100) == [b"rld"]
    assert scratch.read(file, 15, 1) == []
    assert scratch.read(file, 1 << 62, 1) == []


def test_a_write_of_nothing_changes_nothing(scratch: Scratch, file: int) -> None:
    before = scratch.attributes(file)
    scratch.write(file, 100, b"")
    assert scratch.attributes(file) == before


def test_a_file_that_is_cut_and_lengthened_again_has_lost_its_old_bytes(scratch: Scratch, file: int) -> None:
    scratch.write(file, 0, b"secret")
    scratch.truncate(file, 2)
    scratch.truncate(file, 6)
    assert content(scratch, file) == b"se\0\0\0\0"


def test_a_hole_takes_no_room(scratch: Scratch, file: int) -> None:
    scratch.truncate(file, 1 << 40)
    found = scratch.attributes(file)
    assert (found.size, found.used) == (1 << 40, 0)
    assert scratch.read(file, 1 << 39, 3) == [b"\0\0\0"]
    scratch.write(file, (1 << 40) - 1, b"x")
    assert 0 < scratch.attributes(file).used <= 4 * BLOCK


@pytest.mark.parametrize("offset", [(1 << 63) - 1, (1 << 64) - 1])
def test_a_write_beyond_the_largest_file_is_refused(scratch: Scratch, file: int, offset: int) -> None:
    with refused(Status.FBIG):
        scratch.write(file, offset, b"x")
    with refused(Status.FBIG):
        scratch.truncate(file, offset + 1)
    assert scratch.attributes(file).size == 0


def test_a_size_that_the_disk_cannot_hold_is_refused_and_changes_nothing(scratch: Scratch, file: int) -> None:
    scratch.write(file, 0, b"kept")
    with pytest.raises(NfsError):
        scratch.write(file, (1 << 63) - 10, b"x")
    assert content(scratch, file) == b"kept"


def test_only_files_have_bytes(scratch: Scratch) -> None:
    directory = scratch.make_directory(ROOT, b"directory").inode
    for act in (
        lambda: scratch.read(directory, 0, 1),
        lambda: scratch.write(directory, 0, b"x"),
        lambda: scratch.truncate(directory, 0),
        lambda: scratch.content(directory),
    ):
        with refused(Status.ISDIR):
            act()


# ── Attributes ──


def test_the_owner_cannot_be_changed_but_may_be_named(scratch: Scratch, file: int) -> None:
    scratch.set_attributes(file, SetAttributes(uid=7, gid=8))
    for other in (SetAttributes(uid=8), SetAttributes(gid=7)):
        with refused(Status.PERM):
            scratch.set_attributes(file, other)


def test_a_refused_change_changes_nothing(scratch: Scratch, file: int) -> None:
    before = scratch.attributes(file)
    with refused(Status.PERM):
        scratch.set_attributes(file, SetAttributes(uid=0, mode=0o777, size=100, mtime=1))
    assert scratch.attributes(file) == before


def test_times_are_set_to_what_is_given_or_to_now(scratch: Scratch, file: int) -> None:
    before = scratch.attributes(file)
    given = scratch.set_attributes(file, SetAttributes(atime=1, mtime=2))
    assert (given.atime_ns, given.mtime_ns) == (1, 2)
    assert given.ctime_ns > before.ctime_ns
    now = scratch.set_attributes(file, SetAttributes(atime=ServerTime(), mtime=ServerTime()))
    assert now.atime_ns == now.mtime_ns == now.ctime_ns > given.ctime_ns


def test_a_mode_is_cut_to_its_twelve_bits_and_leaves_the_bytes_time_alone(
    scratch: Scratch, file: int
) -> None:
    before = scratch.attributes(file)
    after = scratch.set_attributes(file, SetAttributes(mode=0o107_644))
    assert (after.mode, after.mtime_ns) == (0o7644, before.mtime_ns)
    assert after.ctime_ns > before.ctime_ns


def test_reading_changes_no_time(scratch: Scratch, file: int) -> None:
    scratch.write(file, 0, b"x")
    before = scratch.attributes(file)
    content(scratch, file)
    assert scratch.attributes(file) == before


# ── Room ──


def test_the_quota_is_exact_and_what_is_there_can_be_overwritten_when_it_is_full(
    scratch: Scratch, file: int
) -> None:
    scratch.write(file, 0, b"a" * QUOTA)
    with refused(Status.NOSPC):
        scratch.write(file, QUOTA, b"b")
    other = scratch.make_file(ROOT, b"other").inode
    with refused(Status.NOSPC):
        scratch.write(other, 0, b"b")
    scratch.write(file, 100, b"b" * 10_000)
    assert scratch.attributes(file).size == QUOTA
    assert scratch.attributes(other).size == 0
    assert scratch.space().free_bytes == 0


def test_a_hole_of_a_full_quota_cannot_be_filled(scratch: Scratch, file: int) -> None:
    scratch.write(file, 2 * BLOCK, b"a" * (QUOTA - BLOCK))
    scratch.write(file, 0, b"b" * BLOCK)
    with refused(Status.NOSPC):
        scratch.write(file, BLOCK, b"c")


def test_room_comes_back_from_what_is_cut_removed_or_replaced(scratch: Scratch) -> None:
    def fill(name: bytes) -> int:
        inode = scratch.make_file(ROOT, name).inode
        scratch.write(inode, 0, b"a" * QUOTA)
        return inode

    scratch.truncate(fill(b"cut"), 0)
    fill(b"removed")
    scratch.remove(ROOT, b"removed")
    fill(b"replaced")
    scratch.make_file(ROOT, b"new")
    scratch.rename(ROOT, b"new", ROOT, b"replaced")
    assert scratch.space().free_bytes == QUOTA


def test_room_of_large_files_comes_back_at_once_and_their_disk_space_soon(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, 1 << 30, 1_000)
    for name in (b"emptied", b"removed"):
        inode = scratch.make_file(ROOT, name).inode
        for offset in range(0, 65 << 20, 1 << 20):
            scratch.write(inode, offset, b"a" * (1 << 20))
    emptied = scratch.make_file(ROOT, b"emptied", CreateMode.UNCHECKED, SetAttributes(size=0)).inode
    scratch.remove(ROOT, b"removed")
    assert scratch.space().free_bytes == 1 << 30
    scratch.write(emptied, 2, b"new")
    scratch.sync(emptied)
    assert content(scratch, emptied) == b"\0\0new"
    scratch.close()
    [left] = (tmp_path / "scratch").iterdir()
    assert left.stat().st_size == 5


# ── Flushing ──


def test_a_file_is_flushed_from_any_thread_while_others_are_written(scratch: Scratch) -> None:
    inodes = [scratch.make_file(ROOT, b"%d" % number).inode for number in range(100)]
    with ThreadPoolExecutor(4) as pool:
        flushed = [pool.submit(scratch.sync, inode) for inode in inodes[:20]]
        for inode in inodes:
            scratch.write(inode, 0, b"x")
        assert [done.result() for done in flushed] == [None] * 20


def test_flushing_what_was_removed_says_so(scratch: Scratch, file: int) -> None:
    scratch.remove(ROOT, b"file")
    with refused(Status.STALE):
        scratch.sync(file)


def test_more_files_than_can_be_open_are_written_in_turns(scratch: Scratch) -> None:
    inodes = [scratch.make_file(ROOT, b"%d" % number).inode for number in range(200)]
    for part in (b"a", b"b"):
        for inode in inodes:
            scratch.write(inode, scratch.attributes(inode).size, part)
    assert {content(scratch, inode) for inode in inodes} == {b"ab"}


# ── Handing over ──


def test_a_file_does_not_change_while_its_content_is_held(scratch: Scratch, file: int) -> None:
    scratch.write(file, 0, b"held")
    with scratch.content(file) as held:
        for act in (
            lambda: scratch.write(file, 0, b"x"),
            lambda: scratch.truncate(file, 0),
            lambda: scratch.content(file),
        ):
            with refused(Status.JUKEBOX):
                act()
        scratch.set_attributes(file, SetAttributes(mode=0o644))
        scratch.rename(ROOT, b"file", ROOT, b"renamed")
        assert held.size == 4
        assert held.read(0, 100) == [b"held"]
        assert held.read(1, 2) == [b"el"]
        assert held.read(4, 1) == []
    scratch.write(file, 0, b"x")


def test_held_content_that_nobody_refers_to_any_more_holds_nothing(scratch: Scratch, file: int) -> None:
    held = scratch.content(file)
    del held
    scratch.write(file, 0, b"x")


def test_content_outlives_the_file(scratch: Scratch, file: int) -> None:
    scratch.write(file, 0, b"held")
    held = scratch.content(file)
    scratch.remove(ROOT, b"file")
    assert held.read(0, 100) == [b"held"]
    held.close()
    held.close()
    with pytest.raises(ValueError, match="closed"):
        held.read(0, 100)


def test_an_empty_file_has_empty_content(scratch: Scratch, file: int) -> None:
    with scratch.content(file) as held:
        assert held.size == 0
        assert held.read(0, 100) == []
