from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lakehouse_platform.errors import InvalidArgumentError, SourceNotFoundError
from lakehouse_platform.nfs.service import NfsServer
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform_tests.support.tables import PEOPLE


def test_a_server_is_ready_between_its_start_and_its_end(lake: Lakehouse, tmp_path: Path) -> None:
    server = NfsServer(lake, state_dir=tmp_path / "state")
    assert (server.is_ready(), server.port) == (False, 0)
    server.shutdown()
    server.start()
    assert server.is_ready()
    assert server.start() is server
    with socket.create_connection(("127.0.0.1", server.port)):
        pass
    server.shutdown()
    assert (server.is_ready(), server.port) == (False, 0)
    server.shutdown()


def test_a_server_can_be_started_again(lake: Lakehouse, tmp_path: Path) -> None:
    server = NfsServer(lake, state_dir=tmp_path / "state")
    exports: list[dict[str, str]] = []
    for _ in range(2):
        with server:
            exports.append(server.exports)
    assert exports[0] == exports[1]


def test_a_taken_port_is_told_and_nothing_stays_behind(lake: Lakehouse, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = NfsServer(lake, port=taken.getsockname()[1], state_dir=tmp_path / "state")
        with pytest.raises(OSError, match="in use"):
            server.start()
    with server:
        assert server.is_ready()


def test_system_tables_are_not_served(lake: Lakehouse) -> None:
    with pytest.raises(InvalidArgumentError, match="system table"):
        NfsServer(lake.store.table("users"))


def test_a_table_elsewhere_may_have_the_name_of_a_system_table(lake: Lakehouse, tmp_path: Path) -> None:
    table = lake.store.at(tmp_path / "mine" / "users").create(PEOPLE)
    with NfsServer(table, state_dir=tmp_path / "state") as server:
        assert server.exports["sync"].endswith("/users")


def test_a_path_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        NfsServer(str(tmp_path / "nothing"))
