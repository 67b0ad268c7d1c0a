"""When changes made elsewhere are seen, and what a reader sees meanwhile."""

from __future__ import annotations

import threading
import time

import pytest

from lakehouse_platform.nfs.operations import Status
from lakehouse_platform_tests.protocol.mount.conftest import CSV, Served, within
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.support.tables import PEOPLE, people


@pytest.mark.parametrize("name", ["data.csv", "data.json", "data.jsonl"])
def test_a_commit_made_elsewhere_is_seen_within_a_second(
    served: Served, client: NfsClient, data: bytes, name: str
) -> None:
    handle = client.lookup(data, name)
    before = client.getattr(handle)
    served.table.append(people(4))
    assert within(1.0, lambda: client.getattr(handle).size > before.size)
    assert b"n4" in client.read_all(handle)
    assert client.getattr(handle).ctime_ns > before.ctime_ns
    assert client.getattr(handle).fileid == before.fileid


@pytest.mark.parametrize("name", ["data.csv", "data.json"])
def test_what_a_client_has_appended_and_closed_is_seen_by_the_next_look_of_another(
    served: Served, client: NfsClient, view: bytes, name: str
) -> None:
    others = served.client()
    shown = others.walk(f"people/data/{name}")
    for number in range(20):
        before = others.getattr(shown).size
        client.write(view, client.getattr(view).size, b"%d,new,30\n" % (100 + number))
        client.getattr(view)
        assert others.getattr(shown).size > before


def test_what_a_client_has_overwritten_and_closed_is_seen_by_the_next_look_of_another(
    served: Served, client: NfsClient, view: bytes
) -> None:
    others = served.client()
    shown = others.walk("people/data/data.csv")
    for number in range(10):
        text = b"id,name,age\n" + b"1,n1,30\n" * (number % 2) + b"2,n2,%d\n" % (40 + number)
        others.getattr(shown)
        client.truncate(view, 0)
        client.write(view, 0, text)
        client.getattr(view)
        assert others.getattr(shown).size == len(text)


def test_attributes_stay_the_same_while_nothing_changes(client: NfsClient, view: bytes) -> None:
    first = client.getattr(view)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        assert client.getattr(view) == first


def test_a_directory_changes_when_its_data_files_do(served: Served, client: NfsClient, data: bytes) -> None:
    before = client.getattr(data).mtime_ns
    served.table.append(people(4))
    assert within(1.0, lambda: client.getattr(data).mtime_ns > before)
    names = [entry.name for entry in client.readdir(data)]
    assert sum(name.endswith(b".parquet") for name in names) == 2


def test_a_new_table_is_seen_at_once_by_its_name(served: Served, client: NfsClient) -> None:
    client.readdir(client.root)
    served.lake.store.create("later", PEOPLE)
    assert client.read_all(client.walk("later/data/data.csv")) == b"id,name,age\n"
    assert within(1.5, lambda: b"later" in [entry.name for entry in client.readdir(client.root)])


def test_a_dropped_table_is_stale_and_its_name_is_gone(
    served: Served, client: NfsClient, view: bytes
) -> None:
    client.read_all(view)
    served.table.drop()

    assert within(1.0, lambda: _is_stale(client, view))
    with pytest.raises(NfsStatusError, match="NOENT"):
        client.walk("people")


def test_a_write_to_a_dropped_table_is_never_told_that_its_handle_is_stale(
    served: Served, client: NfsClient, view: bytes
) -> None:
    size = client.getattr(view).size
    served.table.drop()
    statuses: list[Status] = []
    for number in range(3):
        try:
            client.write(view, size, b"%d,n,30\n" % number)
        except NfsStatusError as error:
            statuses.append(error.status)
        within(0.1, lambda: _is_stale(client, view))
    assert statuses
    assert Status.STALE not in statuses


def test_a_table_that_takes_the_place_of_another_is_shown(
    served: Served, client: NfsClient, view: bytes
) -> None:
    client.read_all(view)
    served.table.drop()
    served.lake.store.create("people", PEOPLE).append(people(7))
    assert within(1.0, lambda: client.read_all(view) == b"id,name,age\n7,n7,30\n")


def test_a_reader_sees_one_version_from_start_to_end(served: Served, client: NfsClient, view: bytes) -> None:
    told = client.getattr(view)
    first = client.read(view, 0, 10)
    served.table.overwrite(people(8, 9))
    other = served.client(machine=b"other")
    theirs = other.walk("people/data/data.csv")
    assert within(1.0, lambda: b"n8" in other.read_all(theirs))
    assert client.getattr(view) == told
    rest = client.read(view, 10, 1000)
    assert first.data + rest.data == CSV
    assert rest.eof
    assert rest.attributes == told
    assert client.read_all(view) == b"id,name,age\n8,n8,30\n9,n9,30\n"


def test_readers_never_see_a_mixture_while_the_table_changes(served: Served) -> None:
    sizes = [40, 400]
    versions = {_rendered(count) for count in sizes} | {CSV}
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for count in sizes:
                served.table.overwrite(people(*range(count)))

    writer = threading.Thread(target=change)
    writer.start()
    try:
        client = served.client()
        view = client.walk("people/data/data.csv")
        for _ in range(60):
            size = client.getattr(view).size
            data = client.read_all(view, 64)
            assert (len(data), data in versions) == (size, True)
    finally:
        stop.set()
        writer.join()


def _is_stale(client: NfsClient, handle: bytes) -> bool:
    try:
        client.getattr(handle)
    except NfsStatusError as error:
        return error.status is Status.STALE
    return False


def _rendered(count: int) -> bytes:
    return b"id,name,age\n" + b"".join(b"%d,n%d,30\n" % (n, n) for n in range(count))
