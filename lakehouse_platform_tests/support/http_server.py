"""A live HTTP server on a free port over a fresh lakehouse, in a thread of this process, and users of every role."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

import httpx
from argon2 import PasswordHasher

from lakehouse_platform.api.serving import HttpServer, Ready
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.identity.users import UserRecord
from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.sign_ins import Tokens
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.people import PASSWORD, user


@dataclass(frozen=True, slots=True)
class Person:
    """A user who has signed in.

    Attributes:
        user: The account.
        tokens: The sign-in.
    """

    user: UserRecord
    tokens: Tokens

    @property
    def user_id(self) -> str:
        return self.user.user_id

    @property
    def headers(self) -> dict[str, str]:
        """The header that says who acts."""
        return {"Authorization": f"Bearer {self.tokens.access_token}"}


@dataclass(frozen=True, slots=True)
class LiveHttp:
    """A running server.

    Attributes:
        base_url: Where it answers.
        lakehouse: What it serves; its services act as the owner of the files.
        client: Sends requests to it, as nobody unless told otherwise.
    """

    base_url: str
    lakehouse: Lakehouse
    client: httpx.Client
    _server: HttpServer = field(repr=False)

    def person(
        self, name: str, role: Role = Role.USER, tier: SubscriptionTier = SubscriptionTier.ENTERPRISE
    ) -> Person:
        """Make an active user and sign the user in."""
        made = user(self.lakehouse.accounts, name, role, tier)
        return Person(made, self.lakehouse.accounts.login(name, PASSWORD))

    def everyone(self) -> dict[Role, Person]:
        """Make one user of each role, and sign them in."""
        return {role: self.person(f"the-{role}", role) for role in Role}

    def request(self, method: str, path: str, person: Person | None = None, **more: Any) -> httpx.Response:
        """Send a request as somebody, or as nobody."""
        headers = dict(person.headers if person else {}) | dict(more.pop("headers", {}))
        return self.client.request(method, path, headers=headers, **more)

    def get(self, path: str, person: Person | None = None, **more: Any) -> httpx.Response:
        """Send a GET request."""
        return self.request("GET", path, person, **more)

    def post(self, path: str, person: Person | None = None, **more: Any) -> httpx.Response:
        """Send a POST request."""
        return self.request("POST", path, person, **more)

    def stop(self) -> None:
        """Begin to stop, as a signal would."""
        self._server.stop()


@contextmanager
def http_server(
    config: LakehouseConfig, changes: Mapping[str, Any] | None = None, *, passwords: Passwords | None = None
) -> Generator[LiveHttp]:
    """Serve a lakehouse until the block ends.

    Args:
        config: The settings of the lakehouse, which is made if it is missing.
        changes: Settings that differ, such as `{"api_max_body_mb": 1}`.
        passwords: What hashes passwords; None for some that are quick.
    """
    settings = config.model_copy(update={"api_port": 0, "api_shutdown_seconds": 5, **(changes or {})})
    # Argon2id with so little work that a test may sign in often.
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with (
        Passwords(hasher=quick) as quick_ones,
        Lakehouse.open(
            settings, origin=Origin(door=Door.HTTP), passwords=passwords or quick_ones
        ) as lakehouse,
    ):
        lakehouse.init()
        with running(lakehouse, settings) as live:
            yield live


@contextmanager
def running(lakehouse: Lakehouse, config: LakehouseConfig) -> Generator[LiveHttp]:
    """Serve an open lakehouse until the block ends; it stays open."""
    told: Queue[Ready | BaseException] = Queue()
    server = HttpServer(lakehouse, config, told.put)

    def serve() -> None:
        try:
            server.serve_until_stopped()
        except BaseException as error:
            told.put(error)
            raise

    thread = threading.Thread(target=serve, name="http-server")
    thread.start()
    ready = told.get(timeout=30)
    if isinstance(ready, BaseException):
        raise ready
    try:
        with httpx.Client(base_url=ready.url, timeout=60) as client:
            yield LiveHttp(ready.url, lakehouse, client, server)
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive(), "the server did not stop"
