from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from lakehouse_platform.errors import StorageUnavailableError, TableNotFoundError
from lakehouse_platform.nfs.operations import NfsError
from lakehouse_platform.nfs.tree.follower import Follower


@dataclass
class Thing:
    """Something with versions, which can be slow or away."""

    newest: int = 1
    known: int | None = None
    refreshed: int = 0
    gone: bool = False
    error: Exception | None = None
    ready: threading.Event = field(default_factory=threading.Event)
    seen: threading.Event = field(default_factory=threading.Event)
    clock: float = 0.0

    def refresh(self) -> int:
        self.refreshed += 1
        self.ready.wait(10)
        if self.error:
            raise self.error
        self.known = self.newest
        if self.known > 1:
            self.seen.set()
        return self.known

    def vanish(self) -> None:
        self.gone = True

    def follower(self, *, is_local: bool = True) -> Follower[int]:
        return Follower(
            lambda: self.known,
            lambda: self.known == self.newest,
            self.refresh,
            is_local=is_local,
            now=lambda: self.clock,
            gone=self.vanish,
        )


@pytest.fixture
def thing() -> Thing:
    """A thing that answers at once."""
    made = Thing()
    made.ready.set()
    return made


def test_what_was_never_seen_is_waited_for(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower()
        assert follower.known() is None
        assert await follower.newest() == 1
        assert follower.known() == 1

    asyncio.run(ask())


def test_many_who_wait_make_one_look(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower()
        assert await asyncio.gather(*(follower.newest() for _ in range(20))) == [1] * 20

    asyncio.run(ask())
    assert thing.refreshed == 1


def test_something_newer_is_noticed_after_a_twentieth_of_a_second(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower()
        await follower.newest()
        assert follower.known() == 1
        thing.newest = 2
        assert follower.known() == 1
        thing.clock += 0.06
        assert follower.known() is None
        assert follower.known() is None
        assert await follower.newest() == 2

    asyncio.run(ask())


def test_what_the_server_has_changed_itself_is_looked_for_at_once(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower()
        await follower.newest()
        thing.newest = 2
        follower.expire()
        assert follower.known() is None
        assert await follower.newest() == 2

    asyncio.run(ask())


def test_a_look_that_began_before_a_change_of_the_servers_own_is_not_believed(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower()
        await follower.newest()
        thing.clock += 0.06
        thing.ready.clear()
        begun = asyncio.create_task(follower.newest())
        await asyncio.sleep(0)
        follower.expire()
        anew = asyncio.create_task(follower.newest())
        await asyncio.sleep(0)
        thing.ready.set()
        await asyncio.gather(begun, anew)
        await follower.close()
        assert thing.refreshed == 3

    asyncio.run(ask())


def test_who_waits_too_long_gets_what_is_known_and_nobody_waits_again(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower()
        await follower.newest()
        thing.newest = 2
        thing.ready.clear()
        assert await follower.newest() == 1
        thing.clock += 1.0
        assert follower.known() == 1
        thing.ready.set()
        await follower.close()
        assert follower.known() == 2

    asyncio.run(ask())


def test_what_is_gone_is_stale_and_reported(thing: Thing) -> None:
    thing.error = TableNotFoundError("It was dropped.")
    with pytest.raises(NfsError, match="STALE"):
        asyncio.run(thing.follower().newest())
    assert thing.gone


def test_when_the_storage_is_away_what_is_known_is_shown(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower()
        thing.error = StorageUnavailableError("It is away.")
        with pytest.raises(NfsError, match="JUKEBOX"):
            await follower.newest()
        thing.error = None
        await follower.newest()
        thing.error = StorageUnavailableError("It is away.")
        assert await follower.newest() == 1

    asyncio.run(ask())


def test_a_table_far_away_is_polled_while_it_is_used(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower(is_local=False)
        await follower.newest()
        thing.newest = 2
        assert follower.known() == 1
        await asyncio.to_thread(thing.seen.wait, 5)
        assert follower.known() == 2
        await follower.close()

    asyncio.run(ask())


def test_a_table_far_away_that_was_not_used_for_a_while_is_waited_for(thing: Thing) -> None:
    async def ask() -> None:
        follower = thing.follower(is_local=False)
        await follower.newest()
        await follower.close()
        thing.newest = 2
        thing.clock += 60.0
        assert follower.known() is None
        assert await follower.newest() == 2
        assert follower.known() == 2
        await follower.close()

    asyncio.run(ask())
