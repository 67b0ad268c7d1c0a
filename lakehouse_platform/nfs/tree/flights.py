"""Blocking calls in threads, each one once however many wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Flights:
    """Calls under way, by key. Used on the event loop's thread only."""

    def __init__(self) -> None:
        self._flying: dict[Hashable, asyncio.Task[Any]] = {}

    def start(self, key: Hashable, call: Callable[[], _T]) -> asyncio.Task[_T]:
        """Start a blocking call, or join the one under this key."""
        if key not in self._flying:
            task = asyncio.create_task(asyncio.to_thread(call))
            self._flying[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        return self._flying[key]

    async def run(self, key: Hashable, call: Callable[[], _T]) -> _T:
        """Return what a blocking call returns; giving up waiting does not end it."""
        return await asyncio.shield(self.start(key, call))

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        if self._flying:
            await asyncio.wait(list(self._flying.values()))

    def _landed(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._flying.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waits gets it; if nobody does, it is no accident
