"""Scratch files beside the views, names that nobody should use, and moving the view itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakehouse_platform.nfs.operations import CreateMode, FileType, SetAttributes
from lakehouse_platform_tests.protocol.mount.conftest import CSV, Served, within
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.support.tables import people

HOSTILE = [
    b"..", b".", b"", b"a/b", b"../../etc/passwd", b"/etc/passwd", b"nul\0byte", b"x" * 256, b"%2F%2Fetc",
    b"..\\..\\x", b"\xff\xfe\xfd", "ü∂".encode(), b"data.csv/..", b"-rf", b"\n", b"CON", b"$(reboot)",
]  # fmt: skip


def _contents(client: NfsClient, directory: bytes) -> set[bytes]:
    return {entry.name for entry in client.readdir(directory)} - {b".", b".."}


def _status(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except NfsStatusError as error:
        return error.status.name
    return "OK"


@pytest.mark.parametrize("place", ["", "people", "people/data", "people/.query.d"])
def test_scratch_files_can_be_made_where_editors_make_them(client: NfsClient, place: str) -> None:
    directory = client.walk(place)
    before = _contents(client, directory)
    mtime = client.getattr(directory).mtime_ns
    handle = client.create(directory, "notes.txt", CreateMode.EXCLUSIVE, verifier=b"12345678")
    client.write(handle, 3, b"lo")
    client.write(handle, 0, b"hel")
    assert client.read_all(handle) == b"hello"
    assert client.getattr(directory).mtime_ns > mtime
    assert _contents(client, directory) == before | {b"notes.txt"}
    assert client.getattr(client.lookup(directory, "notes.txt")).size == 5
    client.remove(directory, "notes.txt")
    assert _contents(client, directory) == before


@pytest.mark.parametrize("place", ["people/.versions", "people/.versions/0", "people/.at", "people/.errors"])
def test_nothing_can_be_made_where_only_the_server_makes_entries(client: NfsClient, place: str) -> None:
    directory = client.walk(place)
    for attempt in (
        lambda: client.create(directory, "x"),
        lambda: client.mkdir(directory, "x"),
        lambda: client.symlink(directory, "x", "y"),
        lambda: client.rename(client.walk("people"), "x", directory, "x"),
    ):
        with pytest.raises(NfsStatusError, match="ROFS"):
            attempt()


def test_directories_and_links_work(client: NfsClient, data: bytes) -> None:
    made = client.mkdir(data, "dir")
    client.create(made, "inner")
    client.symlink(data, "link", "dir/inner")
    assert client.getattr(client.lookup(data, "link")).type is FileType.SYMLINK
    assert client.readlink(client.lookup(data, "link")) == b"dir/inner"
    assert client.getattr(client.lookup(made, "..")).fileid == client.getattr(data).fileid
    with pytest.raises(NfsStatusError, match="NOTEMPTY"):
        client.rmdir(data, "dir")
    client.rename(made, "inner", data, "outer")
    client.rmdir(data, "dir")


def test_a_scratch_file_keeps_its_handle_when_it_moves_between_tables_and_the_root(
    client: NfsClient, data: bytes
) -> None:
    handle = client.create(client.root, "a")
    before = client.getattr(handle).fileid
    client.rename(client.root, "a", data, "b")
    assert client.getattr(handle).fileid == before
    assert client.lookup(data, "b") == handle


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("place", ["", "people", "people/data", "people/.versions", "people/.at"])
def test_a_hostile_name_is_refused_or_only_a_name(client: NfsClient, place: str, name: bytes) -> None:
    directory = client.walk(place)
    for attempt in (
        lambda: client.create(directory, name),
        lambda: client.remove(directory, name),
        lambda: client.mkdir(directory, name),
        lambda: client.rmdir(directory, name),
    ):
        assert _status(attempt) in {"OK", "ROFS", "INVAL", "EXIST", "NAMETOOLONG", "NOENT", "ISDIR"}
    assert client.read_all(client.walk("people/data/data.csv")) == CSV


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("", "people"), ("people", "schema.sql"), ("people", ".query"), ("people", "data"), ("people", ".versions"),
        ("people/data", "data.csv"), ("people/data", "data.json"),
    ],
)  # fmt: skip
def test_what_is_shown_cannot_be_shadowed(client: NfsClient, place: str, name: str) -> None:
    directory = client.walk(place)
    with pytest.raises(NfsStatusError, match="EXIST"):
        client.create(directory, name, CreateMode.GUARDED)
    with pytest.raises(NfsStatusError, match="EXIST"):
        client.mkdir(directory, name)
    with pytest.raises(NfsStatusError, match="EXIST"):
        client.symlink(directory, name, "x")
    client.create(directory, "mine")
    if name != "data.csv":
        with pytest.raises(NfsStatusError, match=r"ROFS|XDEV"):
            client.rename(directory, "mine", directory, name)


def test_views_cannot_be_given_away(client: NfsClient, view: bytes) -> None:
    owner = client.getattr(view)
    assert client.setattr(view, SetAttributes(uid=owner.uid, gid=owner.gid, mode=0o644)) is None
    with pytest.raises(NfsStatusError, match="PERM"):
        client.setattr(view, SetAttributes(uid=owner.uid + 1))


# ── The view itself ───────────────────────────────────────────────────────────────────────────────


def test_a_file_renamed_over_the_view_is_published_and_its_handle_is_the_view(
    served: Served, client: NfsClient, data: bytes
) -> None:
    handle = client.create(data, "sedXYZ", CreateMode.EXCLUSIVE, verifier=b"12345678")
    client.write(handle, 0, CSV.replace(b"2,n2,30", b"2,n2,31"))
    number = client.getattr(handle).fileid
    before = served.table.version()
    client.rename(data, "sedXYZ", data, "data.csv")
    assert served.table.version() == before + 1
    assert client.read_all(handle) == CSV.replace(b"2,n2,30", b"2,n2,31")
    assert client.getattr(handle).fileid == number
    served.table.append(people(4))
    assert within(1.0, lambda: client.getattr(handle).size == len(CSV) + 8)
    assert b"sedXYZ" not in _contents(client, data)


def test_the_handle_of_a_file_renamed_over_the_view_takes_rows_too(
    served: Served, client: NfsClient, data: bytes
) -> None:
    handle = client.create(data, "t")
    client.write(handle, 0, CSV + b"4,n4,30\n")
    client.rename(data, "t", data, "data.csv")
    client.write(handle, len(CSV) + 8, b"5,n5,30\n")
    client.getattr(handle)
    assert sorted(row["id"] for row in served.table.scan().to_pylist()) == [1, 2, 3, 4, 5]


def test_a_wrong_file_renamed_over_the_view_stays_where_it_was(
    served: Served, client: NfsClient, data: bytes
) -> None:
    handle = client.create(data, "t")
    client.write(handle, 0, b"id,name,age\nx,bad,1\n")
    before = served.table.version()
    with pytest.raises(NfsStatusError, match="INVAL"):
        client.rename(data, "t", data, "data.csv")
    assert served.table.version() == before
    assert client.read_all(client.lookup(data, "t")) == b"id,name,age\nx,bad,1\n"
    assert client.read_all(client.lookup(data, "data.csv")) == CSV
    assert b"Line 2" in client.read_all(client.walk("people/.last_error"))
    assert len(_contents(client, client.walk("people/.rejected"))) == 2
    errors = client.walk("people/.errors")
    refused_at = client.getattr(errors).mtime_ns
    (name,) = _contents(client, errors)
    assert b'"line": 2' in client.read_all(client.lookup(errors, name))
    client.remove(errors, name)
    assert _contents(client, errors) == set()
    assert client.getattr(errors).mtime_ns > refused_at


def test_a_view_moved_away_and_back_changes_nothing(
    served: Served, client: NfsClient, data: bytes, view: bytes
) -> None:
    before, changed_at = served.table.version(), client.getattr(data).mtime_ns
    client.rename(data, "data.csv", data, "data.csv~")
    assert client.getattr(data).mtime_ns > changed_at
    assert b"data.csv" not in _contents(client, data)
    with pytest.raises(NfsStatusError, match="NOENT"):
        client.lookup(data, "data.csv")
    assert client.read_all(view) == CSV
    assert client.read_all(client.lookup(data, "data.csv~")) == CSV
    client.rename(data, "data.csv~", data, "data.csv")
    assert client.lookup(data, "data.csv") == view
    assert b"data.csv~" not in _contents(client, data)
    assert served.table.version() == before


def test_an_editor_that_keeps_a_backup_by_renaming_overwrites_the_table(
    served: Served, client: NfsClient, data: bytes, view: bytes
) -> None:
    client.read_all(view)
    before = served.table.version()
    client.rename(data, "data.csv", data, "data.csv~")
    made = client.create(data, "data.csv", CreateMode.UNCHECKED, SetAttributes(size=0))
    assert made != view
    assert client.getattr(made).size == 0
    client.write(made, 0, CSV.replace(b"n1", b"m1"))
    client.getattr(made)
    assert served.table.version() == before + 1
    assert client.read_all(view) == CSV
    assert client.read_all(made) == CSV.replace(b"n1", b"m1")
    assert client.lookup(data, "data.csv") == made
    client.remove(data, "data.csv~")
    assert client.read_all(view) == client.read_all(made) == CSV.replace(b"n1", b"m1")


def test_a_moved_view_takes_the_place_of_a_scratch_file(client: NfsClient, data: bytes) -> None:
    client.write(client.create(data, "old"), 0, b"old")
    client.rename(data, "data.csv", data, "old")
    assert client.read_all(client.lookup(data, "old")) == CSV
    client.rename(data, "old", data, "older")
    assert client.read_all(client.lookup(data, "older")) == CSV
    assert b"old" not in _contents(client, data)


@pytest.mark.parametrize("place", ["", "people", "people/data/dir"])
def test_a_view_can_be_moved_to_any_directory_and_back(
    served: Served, client: NfsClient, data: bytes, place: str
) -> None:
    client.mkdir(data, "dir")
    before, target = served.table.version(), client.walk(place)
    client.rename(data, "data.csv", target, "away.csv")
    (entry,) = (entry for entry in client.readdirplus(target) if entry.name == b"away.csv")
    handle = client.lookup(target, "away.csv")
    assert entry.fileid == client.getattr(handle).fileid
    assert client.read_all(handle) == CSV
    client.rename(target, "away.csv", data, "data.csv")
    assert b"away.csv" not in _contents(client, target)
    assert client.read_all(client.lookup(data, "data.csv")) == CSV
    assert served.table.version() == before


def test_a_view_does_not_move_onto_another_tables_view(
    served: Served, client: NfsClient, data: bytes
) -> None:
    served.lake.store.create("other", served.table.arrow_schema())
    with pytest.raises(NfsStatusError, match="XDEV"):
        client.rename(data, "data.csv", client.walk("other/data"), "data.csv")
    assert client.read_all(client.lookup(data, "data.csv")) == CSV


def test_a_removed_view_that_is_made_again_is_an_overwrite(
    served: Served, client: NfsClient, data: bytes
) -> None:
    before = served.table.version()
    client.remove(data, "data.csv")
    with pytest.raises(NfsStatusError, match="NOENT"):
        client.remove(data, "data.csv")
    made = client.create(data, "data.csv", CreateMode.EXCLUSIVE, verifier=b"87654321")
    client.write(made, 0, CSV.replace(b"n3", b"m3"))
    client.getattr(made)
    assert served.table.version() == before + 1
    assert client.read_all(made) == CSV.replace(b"n3", b"m3")


def test_a_removed_view_deletes_all_rows_after_its_grace(
    served: Served, client: NfsClient, data: bytes
) -> None:
    client.remove(data, "data.csv")
    assert within(4.0, lambda: served.table.scan().to_arrow().num_rows == 0)
    assert within(1.0, lambda: b"data.csv" in _contents(client, data))
    assert client.read_all(client.lookup(data, "data.csv")) == b"id,name,age\n"
