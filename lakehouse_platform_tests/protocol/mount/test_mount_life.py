"""Mounting, admission, restarts, and servers that allow nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lakehouse_platform.errors import ConfigError
from lakehouse_platform.nfs.operations import Access, CreateMode, SetAttributes, Status
from lakehouse_platform.nfs.service import NfsServer
from lakehouse_platform.store.database import DatabaseOps
from lakehouse_platform_tests.protocol.mount.conftest import CSV, Served
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.support.tables import people


def test_handles_work_after_a_restart(served: Served, client: NfsClient, data: bytes, view: bytes) -> None:
    scratch = client.create(data, "kept")
    client.write(scratch, 0, b"kept")
    renamed = client.create(data, "t")
    client.write(renamed, 0, CSV + b"4,n4,30\n")
    client.rename(data, "t", data, "data.csv")
    told = client.getattr(view)
    old = client.walk("people/.versions/1/data.csv")
    served.stop()
    served.start()
    again = served.connect()
    assert again.getattr(view) == told
    assert again.read_all(view) == again.read_all(renamed) == CSV + b"4,n4,30\n"
    assert again.read_all(scratch) == b"kept"
    assert again.read_all(old) == CSV
    assert again.getattr(renamed).fileid != told.fileid


def test_rows_written_with_a_handle_of_before_a_restart_are_kept(
    served: Served, client: NfsClient, view: bytes
) -> None:
    size = client.getattr(view).size
    served.stop()
    served.start()
    again = served.connect()
    again.write(view, size, b"4,n4,30\n")
    again.getattr(view)
    assert served.table.scan().to_arrow().num_rows == 4


def test_the_verifier_changes_with_each_start(served: Served, client: NfsClient, view: bytes) -> None:
    first = client.commit(view)
    assert client.commit(view) == first
    served.stop()
    served.start()
    assert served.connect().commit(view) != first


@pytest.mark.parametrize("path", ["/lake", "/wrong/lake", "/", "", "//lake"])
def test_without_the_ticket_nothing_is_mounted(served: Served, path: str) -> None:
    with pytest.raises(NfsStatusError, match="ACCES"):
        served.connect().mount(path)


@pytest.mark.parametrize("below", ["/nope", "/people/nope", "/people/..", "/users"])
def test_what_is_not_there_is_not_mounted(served: Served, below: str) -> None:
    with pytest.raises(NfsStatusError, match="NOENT"):
        served.client(below=below)


def test_a_file_is_not_mounted(served: Served) -> None:
    with pytest.raises(NfsStatusError, match="NOTDIR"):
        served.client(below="/people/data/data.csv")


def test_exports_are_listed_without_their_ticket(served: Served) -> None:
    assert [path for path, _ in served.connect().exports()] == [b"/lake", b"/lake@bulk"]


def test_another_user_is_not_let_in(served: Served, client: NfsClient, view: bytes) -> None:
    other = NfsClient(served.server.port, uid=client.getattr(view).uid + 4711)
    served.clients.append(other)
    for attempt in (
        lambda: other.mount(served.server.exports["sync"]),
        lambda: other.getattr(view),
        lambda: other.read(view),
        lambda: other.write(view, 0, b"x"),
    ):
        with pytest.raises(NfsStatusError, match="ACCES"):
            attempt()


def test_a_handle_that_was_not_made_here_is_bad(client: NfsClient, view: bytes) -> None:
    for handle in (view[:-1] + bytes([view[-1] ^ 1]), view[:31], view + b"x", bytes(32), b""):
        with pytest.raises(NfsStatusError, match="BADHANDLE"):
            client.getattr(handle)


def test_two_servers_do_not_share_a_state_directory(served: Served) -> None:
    with pytest.raises(ConfigError, match="in use"):
        NfsServer(served.lake, state_dir=served.state).start()


def test_a_read_only_server_refuses_every_change(served: Served) -> None:
    served.stop()
    served.start(read_only=True)
    client = served.client()
    data, view = client.walk("people/data"), client.walk("people/data/data.csv")
    assert client.access(view, Access.READ | Access.MODIFY) == Access.READ
    assert client.getattr(view).mode & 0o222 == client.getattr(data).mode & 0o222 == 0
    for attempt in (
        lambda: client.write(view, 0, b"x"),
        lambda: client.truncate(view, 0),
        lambda: client.create(data, "x", CreateMode.UNCHECKED),
        lambda: client.mkdir(data, "x"),
        lambda: client.symlink(data, "x", "y"),
        lambda: client.remove(data, "data.csv"),
        lambda: client.rename(data, "data.csv", data, "x"),
        lambda: client.setattr(view, SetAttributes(mode=0)),
    ):
        with pytest.raises(NfsStatusError, match="ROFS"):
            attempt()
    assert client.read_all(view) == CSV


@pytest.mark.parametrize("kind", ["table", "database", "path"])
def test_a_single_table_is_served_by_its_name(served: Served, tmp_path: Path, kind: str) -> None:
    sources = {
        "table": served.table,
        "database": DatabaseOps(served.table),
        "path": served.table.location.uri,
    }
    with NfsServer(sources[kind], state_dir=tmp_path / "one") as server:
        assert server.is_ready()
        assert set(server.exports) == {"sync", "bulk"}
        assert server.exports["sync"].endswith("/people")
        with NfsClient(server.port) as client:
            assert [path for path, _ in client.exports()] == [b"/people", b"/people@bulk"]
            client.mount(server.exports["bulk"])
            assert client.read_all(client.walk("data/data.csv")) == CSV
            assert client.lookup(client.root, "..") == client.root
            with pytest.raises(NfsStatusError, match="NOENT"):
                client.mount(server.exports["sync"].replace("/people", "/lake"))
    assert not server.is_ready()


def test_a_server_tells_how_it_is_mounted(served: Served) -> None:
    command = served.server.get_mount_command("/mnt/people")
    assert f"port={served.server.port}" in command
    assert command.endswith(f"127.0.0.1:{served.server.exports['sync']} /mnt/people")


def test_the_space_is_that_of_scratch_files(client: NfsClient) -> None:
    space = client.fsstat(client.root)
    assert 0 < space.free_bytes <= space.total_bytes
    assert 0 < space.free_files <= space.total_files
    assert client.fsinfo(client.root).rtpref == client.fsinfo(client.root).wtpref == 1 << 20
    assert client.pathconf(client.root).max_name == 255


def test_many_clients_read_and_append_at_once(served: Served) -> None:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            client = served.client(machine=b"m%d" % number)
            view = client.walk("people/data/data.csv")
            client.write(view, client.getattr(view).size, b"%d,n,1\n" % (100 + number))
            client.getattr(view)
        except Exception as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(row["id"] for row in served.table.scan().to_pylist()) == [1, 2, 3, *range(100, 106)]
    assert Status.OK == 0


def test_a_declared_key_is_held_by_the_mount(served: Served) -> None:
    served.lake.store.create("keyed", served.table.arrow_schema(), primary_key=["id"]).append(people(1, 2))
    client = served.client()
    view = client.walk("keyed/data/data.csv")
    size = client.getattr(view).size
    with pytest.raises(NfsStatusError, match="INVAL"):
        client.write(view, size, b"2,again,1\n")
    client.getattr(view)
    client.write(view, size, b"3,new,1\n")
    client.getattr(view)
    assert client.read_all(view).count(b"\n") == 4
    assert served.lake.store.history("keyed", 1)[0].door == "nfs"


def test_the_hundredth_mount_sees_its_own_rows_as_the_first_does(served: Served, client: NfsClient) -> None:
    for _ in range(100):
        client.mount(served.server.exports["sync"])
        client.getattr(client.walk("people/data/data.csv"))
    view = client.walk("people/data/data.csv")
    client.write(view, len(CSV), b"4,n4,30\n")
    assert client.getattr(view).size == len(CSV) + 8
    assert client.read_all(view) == CSV + b"4,n4,30\n"
