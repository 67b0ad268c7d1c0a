"""Turns at what takes long: so many at once, and of each user only a few, so that nobody takes the place of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class Turns:
    """Hands out turns. Used on the event loop's thread."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """Hand out none yet.

        Args:
            most: How many there are at once.
            most_of_one: How many of them one user may have.
        """
        self._all = asyncio.Semaphore(most)
        self._most_of_one = most_of_one
        # Whoever waits or has a turn holds theirs; nothing is kept of who comes no more.
        self._of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncGenerator[None]:
        """Wait for a turn of a user, which lasts as long as the block."""
        mine = self._of.get(user)
        if mine is None:
            self._of[user] = mine = asyncio.Semaphore(self._most_of_one)
        # First one's own: who has many waiting keeps no others from theirs.
        async with mine, self._all:
            yield
