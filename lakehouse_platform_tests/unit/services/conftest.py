"""Accounts with a clock that the test sets, and passwords that are hashed quickly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from argon2 import PasswordHasher

from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.model.actors import Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.tables import TableAccess

if TYPE_CHECKING:
    from lakehouse_platform.store.delta_store import DeltaStore


RIDES = pa.schema([("id", pa.int64()), ("town", pa.string())])


@dataclass
class Clock:
    """A time that stands still until the test lets it go on."""

    now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go_on(self, **parts: float) -> None:
        self.now += timedelta(**parts)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    """Argon2id with so little work that a test may hash many."""
    with Passwords(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)) as quick:
        yield quick


@pytest.fixture
def auth(store: DeltaStore, passwords: Passwords, clock: Clock) -> Iterator[AuthActor]:
    with AuthActor(store, passwords=passwords, clock=clock) as accounts:
        yield accounts


@pytest.fixture
def tables(store: DeltaStore, auth: AuthActor) -> TableAccess:
    """The tables for the owner: `rides`, with two rows in its versions 1 and 2, and `towns`, with one."""
    store.create("rides", RIDES, properties={"delta.enableChangeDataFeed": "true"})
    for row in (1, "Basel"), (2, "Bern"):
        store.append("rides", [dict(zip(RIDES.names, row, strict=True))])
    store.create("towns", pa.schema([("town", pa.string())])).append([{"town": "Chur"}])
    return TableAccess(store, auth.gate)


def person(name: str, role: Role = Role.USER) -> Actor:
    """Return an actor, whether or not there is an account."""
    return Actor(id=name, kind=ActorKind.USER, role=role, tier=SubscriptionTier.ENTERPRISE)
