"""A served lakehouse, and raw clients that have mounted it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.model.actors import Actor, Role
from lakehouse_platform.model.rights import Right
from lakehouse_platform.nfs.operations import Status
from lakehouse_platform.nfs.service import NfsServer
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.support.people import entries, signed_in
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


# What is known of a user is believed for a second.
SOON = 10.0


@dataclass
class World:
    """A served lakehouse with accounts: `people` with three rows, `orders` with two."""

    served: Served
    auth: AuthActor
    actors: dict[str, Actor] = field(default_factory=dict[str, Actor])

    def user(self, name: str, grants: Mapping[str, Right] | None = None, role: Role = Role.USER) -> Actor:
        """Make a user who is signed in."""
        actor = self.actors[name] = signed_in(self.auth, name, role)
        for table, right in (grants or {}).items():
            self.auth.grant(actor.id, table, right)
        return actor

    def path(self, actor: Actor, export: str = "lake") -> str:
        """Return what a user mounts."""
        return f"/{self.auth.mount_ticket(actor)}/{export}"

    def client(self, actor: Actor, export: str = "lake") -> NfsClient:
        """Return a client that a user has mounted the lakehouse with."""
        client = self.served.connect()
        client.mount(self.path(actor, export))
        return client

    def audited(self, actor: Actor | None = None) -> list[dict[str, Any]]:
        """Stop the server and return what the audit log says of the mount, of one user or of all."""
        self.served.stop()
        found = [row for row in entries(self.auth, self.served.lake.store) if row["door"] == "nfs"]
        return [row for row in found if actor is None or row["user_id"] == actor.id]


@pytest.fixture
def world(served: Served) -> Iterator[World]:
    served.lake.store.create("orders", PEOPLE).append(people(7, 8))
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with Passwords(hasher=hasher) as quick, AuthActor(served.lake.store, passwords=quick) as auth:
        yield World(served, auth)


@pytest.fixture
def reader(world: World) -> Actor:
    return world.user("reader", {"people": Right.READ})


@pytest.fixture
def writer(world: World) -> Actor:
    return world.user("writer", {"people": Right.WRITE})


def refused(status: Status, act: Callable[[], object]) -> bool:
    """Tell whether the server answers an operation with a status."""
    try:
        act()
    except NfsStatusError as error:
        return error.status is status
    return False


def names(client: NfsClient, directory: bytes) -> set[bytes]:
    return {entry.name for entry in client.readdirplus(directory)} - {b".", b".."}
