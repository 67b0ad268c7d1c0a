"""Something of a table that follows its newest version, without making those wait who only look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from lakehouse_platform.errors import NotADeltaTableError, StorageUnavailableError, TableNotFoundError
from lakehouse_platform.nfs.operations import NfsError, Status

_T = TypeVar("_T")
# Looking whether a local table has a newer version takes two stat calls, some 20 µs.
_LOOK_SECONDS = 0.05
_POLL_SECONDS = 0.5
# Longer than from one poll's end to the next one's, so that who uses a table all the time never waits for it.
_POLLED_SECONDS = 1.5
_IN_USE_SECONDS = 10.0
# A change by others is waited for so long before the version before it is shown for a while longer.
_PATIENCE_SECONDS = 0.5
_NEVER = float("-inf")


class Follower(Generic[_T]):
    """Keeps one thing new. Used on the event loop's thread.

    Args:
        current: Returns what is known, without blocking.
        is_newest: Tells whether that is the newest; for a local table without blocking.
        refresh: Finds out the newest; blocks.
        is_local: Whether the table is on a local disk; others are polled while they are in use.
        now: A clock in seconds.
        gone: Called when the table turns out to be gone.
    """

    def __init__(
        self,
        current: Callable[[], _T | None],
        is_newest: Callable[[], bool],
        refresh: Callable[[], _T],
        *,
        is_local: bool,
        now: Callable[[], float],
        gone: Callable[[], None],
    ) -> None:
        self._current, self._is_newest, self._refresh = current, is_newest, refresh
        self._is_local, self._now, self._gone = is_local, now, gone
        self._looked_at = self._used_at = self._started_at = _NEVER
        self._running: asyncio.Task[_T] | None = None
        self._tasks: set[asyncio.Task[_T]] = set()
        self._poll: asyncio.Task[None] | None = None

    def known(self) -> _T | None:
        """Return the newest if there is nothing to wait for, else None."""
        found, now = self._current(), self._now()
        if found is None:
            return None
        if not self._is_local:
            self._keep_polling(now)
        believed = _LOOK_SECONDS if self._is_local else _POLLED_SECONDS
        if now - self._looked_at < believed or self._is_late(now):
            return found
        if not self._is_local:
            return None
        if not self._is_newest():
            return None
        self._looked_at = now
        return found

    async def newest(self) -> _T:
        """Return the newest; if finding it out takes long, what is known.

        Raises:
            NfsError: STALE: the table is gone; JUKEBOX: it was never seen and its storage does not answer.
        """
        running, found = self._start(), self._current()
        if found is not None:
            done, _ = await asyncio.wait({running}, timeout=_PATIENCE_SECONDS)
            if not done:
                return found
        try:
            return await asyncio.shield(running)
        except (TableNotFoundError, NotADeltaTableError) as error:
            self._gone()
            raise NfsError(Status.STALE, error.message) from error
        except StorageUnavailableError as error:
            if found is None:
                raise NfsError(Status.JUKEBOX, error.message) from error
            return found

    def expire(self) -> None:
        """Believe no look that began before now: this server has just changed the table itself."""
        self._looked_at, self._running = _NEVER, None

    async def close(self) -> None:
        """End what runs in the background."""
        if self._poll is not None:
            self._poll.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self) -> asyncio.Task[_T]:
        if self._running is None:
            self._started_at = self._now()
            self._running = asyncio.create_task(asyncio.to_thread(self._refresh))
            self._tasks.add(self._running)
            self._running.add_done_callback(self._ended)
        return self._running

    def _ended(self, task: asyncio.Task[_T]) -> None:
        self._tasks.discard(task)
        # Who waits gets the error; a poll that fails is tried again.
        has_failed = task.cancelled() or task.exception() is not None
        if task is not self._running:
            return
        self._running = None
        if not has_failed:
            self._looked_at = self._now()

    def _is_late(self, now: float) -> bool:
        return self._running is not None and now - self._started_at > _PATIENCE_SECONDS

    def _keep_polling(self, now: float) -> None:
        self._used_at = now
        if self._poll is None:
            self._poll = asyncio.create_task(self._polling())

    async def _polling(self) -> None:
        try:
            while self._now() - self._used_at < _IN_USE_SECONDS:
                await asyncio.wait({self._start()})
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self._poll = None
