"""One server that is attacked by everybody, with a user of each role, and things that nobody may reach or change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform.model.rights import Right
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.api_walk import Operation, operations
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server

# What stands in a table that nobody was given a right on.
HIDDEN = "hidden-from-everybody-e5b1"
_ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


@dataclass(frozen=True)
class Fort:
    """What is attacked.

    Attributes:
        live: The server; it has the tables `target` and `untouched`.
        people: One of each role; the user may read `target` and no other table.
        keys: API keys: `reading` and `writing` of a user's program, and `administering` of a superadmin's.
        operations: All that the server offers.
    """

    live: LiveHttp
    people: dict[Role, Person]
    keys: dict[str, str]
    operations: list[Operation]

    def state(self) -> object:
        """Return what no attack may change: accounts, rights, and a table."""
        store = self.live.lakehouse.store
        known = {person.user_id for person in self.people.values()}
        columns = ["user_id", "username", "role", "status", "subscription_tier", "password_hash"]
        users = [row for row in store.scan("users", columns).to_pylist() if row["user_id"] in known]
        grants = [row for row in store.scan("grants").to_pylist() if row["user_id"] in known]
        rows = store.scan("untouched").to_pylist()
        return sorted(map(str, users)), sorted(map(str, grants)), rows, store.table("untouched").version()

    def secrets(self) -> list[str]:
        """Return what no answer may hold: every hash that the lakehouse keeps."""
        store = self.live.lakehouse.store
        kept = {
            "users": ["password_hash"],
            "sessions": ["token_hash", "refresh_hash"],
            "api_keys": ["key_hash"],
        }
        return [
            str(value)
            for table, columns in kept.items()
            for row in store.scan(table, columns).to_pylist()
            for value in row.values()
            # The accounts of programs have a word in place of a hash.
            if value and len(str(value)) > len("none")
        ]

    def holds_no_secret(self, answer: httpx.Response) -> bool:
        """Tell whether an answer shows nothing of passwords and tokens."""
        return "$argon2" not in answer.text and not any(secret in answer.text for secret in self.secrets())


@pytest.fixture(scope="session")
def fort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fort]:
    """A server for attacks that must not change anything."""
    with http_server(
        settings_in(tmp_path_factory),
        {"registrations_per_hour": 1_000_000, "api_request_timeout_seconds": 30},
    ) as live:
        yield furnished(live)


def settings_in(places: pytest.TempPathFactory) -> LakehouseConfig:
    """Return the settings of a lakehouse in a new place."""
    place = places.mktemp("fort")
    return LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")


def furnished(live: LiveHttp) -> Fort:
    """Put people, tables and keys into a new lakehouse."""
    people, accounts, tables = live.everyone(), live.lakehouse.accounts, live.lakehouse.tables
    for name, rows in {"target": _ROWS, "untouched": [{"id": 1, "name": HIDDEN}]}.items():
        live.lakehouse.store.create(name, Schema.parse("id:Int64 not null,name:String"), primary_key=["id"])
        tables.append(name, rows)
    accounts.grant(people[Role.USER].user_id, "target", Right.READ)
    program = accounts.create_service_account("a-program", role=Role.USER)
    accounts.grant(program.user_id, "target", Right.READ)
    mighty = accounts.create_service_account("a-mighty-program", role=Role.SUPERADMIN)
    keys = {
        "reading": accounts.create_api_key(program.user_id, "reads").key,
        "writing": accounts.create_api_key(program.user_id, "writes", "write:*").key,
        "administering": accounts.create_api_key(mighty.user_id, "administers", ["maintain:*", "admin"]).key,
    }
    return Fort(live, people, keys, operations(live.get("/openapi.json").json()))
