"""A served lakehouse, and raw clients that have mounted it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.nfs.service import NfsServer
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.nfs_client import NfsClient
from lakehouse_platform_tests.support.tables import PEOPLE, people

CSV = b"id,name,age\n1,n1,30\n2,n2,30\n3,n3,30\n"


@dataclass
class Served:
    """A lakehouse with its server, which can be stopped and started again at the same port."""

    lake: Lakehouse
    state: Path
    table: Table
    server: NfsServer = field(init=False)
    port: int = 0
    clients: list[NfsClient] = field(default_factory=list[NfsClient])

    def start(self, **arguments: Any) -> None:
        """Start the server; at the port that it had before."""
        self.server = NfsServer(self.lake, port=self.port, state_dir=self.state, **arguments)
        self.server.start()
        self.port = self.server.port

    def stop(self) -> None:
        """Disconnect the clients and stop the server."""
        while self.clients:
            self.clients.pop().close()
        self.server.shutdown()

    def connect(self, machine: bytes = b"test") -> NfsClient:
        """Return a client that has mounted nothing."""
        self.clients.append(NfsClient(self.server.port, machine))
        return self.clients[-1]

    def client(self, *, profile: str = "sync", below: str = "", machine: bytes = b"test") -> NfsClient:
        """Return a client that has mounted the lakehouse, or a directory in it."""
        client = self.connect(machine)
        client.mount(self.server.exports[profile] + below)
        return client


@pytest.fixture
def served(lake: Lakehouse, tmp_path: Path) -> Iterator[Served]:
    """A lakehouse with the table `people` and its running server."""
    table = lake.store.create("people", PEOPLE)
    table.append(people(1, 2, 3))
    served = Served(lake, tmp_path / "state", table)
    served.start()
    yield served
    served.stop()


@pytest.fixture
def client(served: Served) -> NfsClient:
    """A client that has mounted the lakehouse."""
    return served.client()


@pytest.fixture
def data(client: NfsClient) -> bytes:
    """The handle of the table's `data` directory."""
    return client.walk("people/data")


@pytest.fixture
def view(client: NfsClient) -> bytes:
    """The handle of the table's `data.csv`."""
    return client.walk("people/data/data.csv")


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Ask again and again until something is so, or so many seconds have passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
    return condition()
