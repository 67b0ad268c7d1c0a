"""Scratch files by name: making, finding, listing, moving and removing them."""

from __future__ import annotations

from collections.abc import Generator
from itertools import count
from pathlib import Path

import pytest

from lakehouse_platform.nfs.operations import CreateMode, FileType, NfsError, SetAttributes, Status
from lakehouse_platform.nfs.tree.scratch import FIRST_COOKIE, Scratch

ROOT, OTHER = b"8 bytes.", b"others.."
VERIFIER = b"verifier"


@pytest.fixture
def scratch(tmp_path: Path) -> Generator[Scratch]:
    opened = Scratch(tmp_path, 1 << 20, 100)
    yield opened
    opened.close()


def names(scratch: Scratch, place: bytes | int, after: int = 0) -> list[bytes]:
    return [node.name for node in scratch.list(place, after)]


def refused(status: Status) -> pytest.RaisesExc[NfsError]:
    return pytest.RaisesExc(NfsError, check=lambda error: error.status is status)


# ── Making ──


def test_a_file_is_found_by_its_name_in_its_directory_alone(scratch: Scratch) -> None:
    node = scratch.make_file(ROOT, b"x")
    assert scratch.lookup(ROOT, b"x") is node
    assert scratch.lookup(ROOT, b"X") is None
    assert scratch.lookup(OTHER, b"x") is None


def test_an_unchecked_create_keeps_what_is_there_and_applies_only_a_size(scratch: Scratch) -> None:
    node = scratch.make_file(ROOT, b"x", CreateMode.GUARDED, SetAttributes(mode=0o640))
    scratch.write(node.inode, 0, b"hello")
    again = scratch.make_file(ROOT, b"x", CreateMode.UNCHECKED, SetAttributes(mode=0o600))
    assert (again.inode, again.size, again.mode) == (node.inode, 5, 0o640)
    emptied = scratch.make_file(ROOT, b"x", CreateMode.UNCHECKED, SetAttributes(size=0))
    assert (emptied.inode, emptied.size) == (node.inode, 0)


def test_a_file_can_be_made_with_a_size_and_a_time(scratch: Scratch) -> None:
    node = scratch.make_file(ROOT, b"x", CreateMode.GUARDED, SetAttributes(size=3, atime=5, mtime=7))
    assert b"".join(scratch.read(node.inode, 0, 10)) == b"\0\0\0"
    assert node.atime_ns == 5


def test_a_repeated_exclusive_create_is_the_same_create(scratch: Scratch) -> None:
    node = scratch.make_file(ROOT, b"x", CreateMode.EXCLUSIVE, verifier=VERIFIER)
    assert scratch.make_file(ROOT, b"x", CreateMode.EXCLUSIVE, verifier=VERIFIER).inode == node.inode
    with refused(Status.EXIST):
        scratch.make_file(ROOT, b"x", CreateMode.EXCLUSIVE, verifier=b"anothers")


def test_a_repeated_exclusive_create_succeeds_after_a_restart(tmp_path: Path) -> None:
    first = Scratch(tmp_path, 1 << 20, 100)
    node = first.make_file(ROOT, b"x", CreateMode.EXCLUSIVE, verifier=VERIFIER)
    first.close()
    second = Scratch(tmp_path, 1 << 20, 100)
    assert second.make_file(ROOT, b"x", CreateMode.EXCLUSIVE, verifier=VERIFIER).inode == node.inode
    second.close()


def test_an_exclusive_create_does_not_take_a_file_made_without_a_verifier(scratch: Scratch) -> None:
    scratch.make_file(ROOT, b"x", CreateMode.GUARDED)
    with refused(Status.EXIST):
        scratch.make_file(ROOT, b"x", CreateMode.EXCLUSIVE, verifier=b"")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (b"", Status.INVAL),
        (b".", Status.EXIST),
        (b"..", Status.EXIST),
        (b"a/b", Status.INVAL),
        (b"/etc/passwd", Status.INVAL),
        (b"a\0b", Status.INVAL),
        (b"n" * 256, Status.NAMETOOLONG),
    ],
)
def test_a_name_that_no_file_can_have_is_refused(scratch: Scratch, name: bytes, status: Status) -> None:
    for make in (scratch.make_file, scratch.make_directory):
        with refused(status):
            make(ROOT, name)
    with refused(status):
        scratch.make_symlink(ROOT, name, b"target")
    scratch.make_file(ROOT, b"x")
    with refused(status):
        scratch.rename(ROOT, b"x", ROOT, name)
    assert names(scratch, ROOT) == [b"x"]


@pytest.mark.parametrize("name", [b"n" * 255, b"\xff\xfe", b"..data", b"~", b" "])
def test_any_other_bytes_are_a_name(scratch: Scratch, name: bytes) -> None:
    scratch.make_file(ROOT, name)
    assert names(scratch, ROOT) == [name]


@pytest.mark.parametrize("name", [b".", b".."])
def test_the_directory_itself_and_its_parent_cannot_be_removed_or_moved(
    scratch: Scratch, name: bytes
) -> None:
    with refused(Status.INVAL):
        scratch.remove(ROOT, name)
    with refused(Status.INVAL):
        scratch.remove_directory(ROOT, name)
    with refused(Status.INVAL):
        scratch.rename(ROOT, name, ROOT, b"x")


def test_nothing_is_made_below_a_file_or_below_what_is_gone(scratch: Scratch) -> None:
    file = scratch.make_file(ROOT, b"file").inode
    with refused(Status.NOTDIR):
        scratch.make_file(file, b"x")
    gone = scratch.make_directory(ROOT, b"gone").inode
    scratch.remove_directory(ROOT, b"gone")
    for act in (scratch.make_file, scratch.make_directory, scratch.remove, scratch.lookup):
        with refused(Status.STALE):
            act(gone, b"x")
    with refused(Status.STALE):
        scratch.list(gone)


# ── Attributes of directories ──


def test_a_directory_counts_its_subdirectories_as_links(scratch: Scratch) -> None:
    home = scratch.make_directory(ROOT, b"home").inode
    scratch.make_directory(home, b"sub")
    scratch.make_file(home, b"file")
    assert scratch.attributes(home).nlink == 3
    scratch.rename(home, b"sub", ROOT, b"sub")
    assert scratch.attributes(home).nlink == 2
    assert scratch.root(ROOT).subdirectories == 2
    assert scratch.root(ROOT).entries == 2


def test_every_change_of_a_directory_is_seen_in_its_times_even_when_the_clock_stands(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, 1 << 20, 100, now_ns=lambda: 1_000)
    home = scratch.make_directory(ROOT, b"home").inode
    seen = [scratch.attributes(home).ctime_ns]

    def look() -> None:
        found = scratch.attributes(home)
        assert found.mtime_ns == found.ctime_ns
        seen.append(found.ctime_ns)

    scratch.make_file(home, b"a")
    look()
    scratch.rename(home, b"a", home, b"b")
    look()
    scratch.remove(home, b"b")
    look()
    assert seen == sorted(set(seen))
    scratch.close()


def test_a_directory_of_the_file_tree_knows_when_its_scratch_entries_changed(scratch: Scratch) -> None:
    assert scratch.root(ROOT).changed_ns == 0
    scratch.make_file(ROOT, b"x")
    first = scratch.root(ROOT).changed_ns
    scratch.rename(ROOT, b"x", OTHER, b"x")
    second = scratch.root(ROOT).changed_ns
    assert 0 < first < second == scratch.root(OTHER).changed_ns


def test_changing_a_file_does_not_change_its_directory(scratch: Scratch) -> None:
    node = scratch.make_file(ROOT, b"x")
    before = scratch.root(ROOT)
    scratch.write(node.inode, 0, b"hello")
    scratch.set_attributes(node.inode, SetAttributes(mode=0o644))
    assert scratch.root(ROOT) == before


def test_times_go_on_growing_after_a_restart_with_the_clock_set_back(tmp_path: Path) -> None:
    first = Scratch(tmp_path, 1 << 20, 100, now_ns=lambda: 5_000)
    node = first.make_file(ROOT, b"x")
    first.close()
    second = Scratch(tmp_path, 1 << 20, 100, now_ns=lambda: 10)
    assert second.write(node.inode, 0, b"y").ctime_ns > node.ctime_ns
    second.close()


# ── Listing ──


def test_cookies_stay_while_entries_come_and_go(scratch: Scratch) -> None:
    for name in (b"a", b"b", b"c", b"d"):
        scratch.make_file(ROOT, name)
    first, second, *_ = scratch.list(ROOT)
    scratch.remove(ROOT, b"a")
    scratch.make_file(ROOT, b"e")
    assert names(scratch, ROOT, first.cookie) == [b"b", b"c", b"d", b"e"]
    assert names(scratch, ROOT, second.cookie) == [b"c", b"d", b"e"]
    assert first.cookie >= FIRST_COOKIE


def test_a_listing_in_pieces_is_the_whole_listing_although_what_was_listed_is_removed(
    scratch: Scratch,
) -> None:
    for number in range(25):
        scratch.make_file(ROOT, b"%d" % number)
    seen: list[bytes] = []
    cookie = 0
    while page := scratch.list(ROOT, cookie, 4):
        seen += [node.name for node in page]
        cookie = page[-1].cookie
        for node in page:
            scratch.remove(ROOT, node.name)
    assert seen == [b"%d" % number for number in range(25)]


def test_cookies_and_numbers_survive_a_restart_and_are_never_given_again(tmp_path: Path) -> None:
    first = Scratch(tmp_path, 1 << 20, 100)
    kept = first.make_file(ROOT, b"kept")
    removed = first.make_file(ROOT, b"removed")
    first.remove(ROOT, b"removed")
    first.close()
    second = Scratch(tmp_path, 1 << 20, 100)
    assert second.lookup(ROOT, b"kept") == kept
    new = second.make_file(ROOT, b"new")
    assert new.inode > removed.inode
    assert new.cookie > removed.cookie
    with refused(Status.STALE):
        second.attributes(removed.inode)
    second.close()


# ── Moving and removing ──


def test_a_moved_file_keeps_its_number_and_its_bytes(scratch: Scratch) -> None:
    node = scratch.make_file(ROOT, b"x")
    scratch.write(node.inode, 0, b"hello")
    scratch.rename(ROOT, b"x", OTHER, b"y")
    assert scratch.lookup(ROOT, b"x") is None
    moved = scratch.lookup(OTHER, b"y")
    assert moved is not None
    assert moved.inode == node.inode
    assert scratch.read(node.inode, 0, 10) == [b"hello"]
    assert moved.ctime_ns > node.ctime_ns


def test_a_file_moved_over_another_replaces_it(scratch: Scratch) -> None:
    new, old = scratch.make_file(ROOT, b"new"), scratch.make_file(ROOT, b"old")
    scratch.rename(ROOT, b"new", ROOT, b"old")
    assert names(scratch, ROOT) == [b"old"]
    found = scratch.lookup(ROOT, b"old")
    assert found is not None
    assert found.inode == new.inode
    with refused(Status.STALE):
        scratch.read(old.inode, 0, 1)


def test_a_file_moved_onto_itself_stays(scratch: Scratch) -> None:
    node = scratch.make_file(ROOT, b"x")
    assert scratch.rename(ROOT, b"x", ROOT, b"x") is node
    assert names(scratch, ROOT) == [b"x"]


def test_a_directory_is_never_moved_below_itself(scratch: Scratch) -> None:
    outer = scratch.make_directory(ROOT, b"outer").inode
    inner = scratch.make_directory(outer, b"inner").inode
    for place in (outer, inner):
        with refused(Status.INVAL):
            scratch.rename(ROOT, b"outer", place, b"x")


def test_what_is_in_the_way_of_a_move_decides(scratch: Scratch) -> None:
    scratch.make_file(ROOT, b"file")
    scratch.make_directory(ROOT, b"empty")
    full = scratch.make_directory(ROOT, b"full").inode
    scratch.make_directory(full, b"sub")
    for name, over, status in (
        (b"file", b"empty", Status.ISDIR),
        (b"empty", b"file", Status.NOTDIR),
        (b"empty", b"full", Status.NOTEMPTY),
        (b"missing", b"file", Status.NOENT),
    ):
        with refused(status):
            scratch.rename(ROOT, name, ROOT, over)
    scratch.rename(ROOT, b"full", ROOT, b"empty")
    assert names(scratch, ROOT) == [b"file", b"empty"]
    assert names(scratch, full) == [b"sub"]


def test_only_files_are_removed_as_files_and_only_empty_directories_as_directories(scratch: Scratch) -> None:
    full = scratch.make_directory(ROOT, b"full").inode
    scratch.make_file(full, b"file")
    with refused(Status.ISDIR):
        scratch.remove(ROOT, b"full")
    with refused(Status.NOTEMPTY):
        scratch.remove_directory(ROOT, b"full")
    with refused(Status.NOTDIR):
        scratch.remove_directory(full, b"file")
    scratch.remove(full, b"file")
    scratch.remove_directory(ROOT, b"full")
    assert names(scratch, ROOT) == []


# ── Links and the number of files ──


def test_a_link_says_what_it_was_given_and_is_not_followed(scratch: Scratch) -> None:
    link = scratch.make_symlink(ROOT, b"link", b"../../../etc/passwd", SetAttributes(mode=0o600))
    assert (link.type, link.mode, link.size) == (FileType.SYMLINK, 0o777, 19)
    assert scratch.read_link(link.inode) == b"../../../etc/passwd"
    with refused(Status.INVAL):
        scratch.read(link.inode, 0, 1)
    with refused(Status.INVAL):
        scratch.read_link(scratch.make_file(ROOT, b"file").inode)


def test_a_link_to_a_text_with_a_nul_is_refused(scratch: Scratch) -> None:
    with refused(Status.INVAL):
        scratch.make_symlink(ROOT, b"link", b"a\0b")


def test_the_number_of_files_is_bounded_and_removing_one_makes_room(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, 1 << 20, 3)
    for name, make in zip(
        count(), [scratch.make_file, scratch.make_directory, scratch.make_file], strict=False
    ):
        make(ROOT, b"%d" % name)
    assert scratch.space().free_files == 0
    for make in (scratch.make_file, scratch.make_directory):
        with refused(Status.NOSPC):
            make(ROOT, b"more")
    with refused(Status.NOSPC):
        scratch.make_symlink(ROOT, b"more", b"x")
    scratch.remove(ROOT, b"0")
    scratch.make_file(ROOT, b"more")
    scratch.close()
