"""Versions and times as directories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse_platform.nfs.operations import Access, SetAttributes
from lakehouse_platform_tests.protocol.mount.conftest import CSV, Served
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.support.tables import people

EMPTY = b"id,name,age\n"


def test_every_version_is_listed_and_shows_its_rows(served: Served, client: NfsClient) -> None:
    served.table.append(people(4))
    versions = client.walk("people/.versions")
    assert [entry.name for entry in client.readdir(versions)] == [b".", b"..", b"0", b"1", b"2"]
    shown = [client.read_all(client.walk(f"{n}/data.csv", versions)) for n in (0, 1, 2)]
    assert shown == [EMPTY, CSV, CSV + b"4,n4,30\n"]


@pytest.mark.parametrize("name", ["2", "01", "-1", "x", "99999999999999999999999", "0x1", ""])
def test_what_is_no_version_is_not_there(client: NfsClient, name: str) -> None:
    with pytest.raises(NfsStatusError, match="NOENT"):
        client.lookup(client.walk("people/.versions"), name)


def test_an_old_version_stays_as_it_is(served: Served, client: NfsClient) -> None:
    handle = client.walk("people/.versions/1/data.csv")
    before = client.getattr(handle)
    served.table.append(people(4))
    client.read_all(client.walk("people/data/data.csv"))
    assert client.getattr(handle) == before
    assert client.read_all(handle) == CSV


def test_a_time_shows_what_was_the_newest_then(served: Served, client: NfsClient) -> None:
    created = served.table.history()[-1].timestamp
    at = client.walk("people/.at")
    assert client.read_all(client.walk(f"{_text(created)}/data.csv", at)) == EMPTY
    assert client.read_all(client.walk("2099-01-01T00:00:00Z/data.csv", at)) == CSV
    assert client.read_all(client.walk("2099-01-01T00:00:00+05:00/data.jsonl", at)).count(b"\n") == 3
    assert [entry.name for entry in client.readdir(at)] == [b".", b".."]
    names = [entry.name for entry in client.readdir(client.walk("2099-01-01T00:00:00Z", at))]
    assert names[2:] == [b"data.csv", b"data.json", b"data.jsonl", b"schema.sql"]


def test_a_time_before_the_table_is_not_there(served: Served, client: NfsClient) -> None:
    before = served.table.history()[-1].timestamp - timedelta(seconds=1)
    with pytest.raises(NfsStatusError, match="NOENT"):
        client.lookup(client.walk("people/.at"), _text(before))


@pytest.mark.parametrize("name", ["yesterday", "2026-02-01", "2026-02-01T12:00:00", "1969-01-01T00:00:00Z"])
def test_what_is_no_time_is_not_there(client: NfsClient, name: str) -> None:
    with pytest.raises(NfsStatusError, match="NOENT"):
        client.lookup(client.walk("people/.at"), name)


@pytest.mark.parametrize(
    "path", [".versions/1/data.csv", "data/data.json", "schema.sql", ".history", ".stats"]
)
def test_what_cannot_be_edited_is_read_only(client: NfsClient, path: str) -> None:
    handle = client.walk(f"people/{path}")
    asked = Access.READ | Access.MODIFY | Access.EXTEND
    assert client.access(handle, asked) == Access.READ
    assert client.getattr(handle).mode & 0o222 == 0
    with pytest.raises(NfsStatusError, match="ROFS"):
        client.write(handle, 0, b"x")
    with pytest.raises(NfsStatusError, match="ROFS"):
        client.truncate(handle, 0)
    assert client.setattr(handle, SetAttributes(mtime=0)) is None


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("people", "schema.sql"),
        ("people", "data"),
        ("people/data", "data.json"),
        ("people/.versions/1", "data.csv"),
    ],
)
def test_what_is_shown_cannot_be_removed_or_moved(client: NfsClient, directory: str, name: str) -> None:
    parent = client.walk(directory)
    for attempt in (
        lambda: client.remove(parent, name),
        lambda: client.rmdir(parent, name),
        lambda: client.rename(parent, name, client.walk("people"), "mine"),
        lambda: client.mkdir(parent, name),
    ):
        with pytest.raises(NfsStatusError, match=r"ROFS|EXIST"):
            attempt()
    client.lookup(parent, name)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
