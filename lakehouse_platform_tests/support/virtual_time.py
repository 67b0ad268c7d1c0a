"""An event loop whose time passes only when nothing else is to be done, and that does in turn what threads would do.

Whatever waits for hours ends at once, and a run with the same random numbers goes the same way again.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable
from typing import Any, cast

START_SECONDS = 1000.0
_LONGEST_STEP_SECONDS = 0.004


class _Skipping(selectors.DefaultSelector):  # pyright: ignore[reportUntypedBaseClass]
    """Skips the time that would be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.time = START_SECONDS

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise AssertionError("everybody waits for somebody else")
        self.time += max(0.0, timeout)
        return cast("list[Any]", super().select(0))


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop.

    Args:
        chance: Decides how long what threads do takes, and so in which order it is done.
    """

    def __init__(self, chance: random.Random) -> None:
        self._skipping = _Skipping()
        self._chance = chance
        super().__init__(self._skipping)

    def time(self) -> float:
        """Return the time in seconds."""
        return self._skipping.time

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Carry out, a little later, what a thread would; its result arrives still a little later."""
        del executor
        future = self.create_future()
        self.call_later(self._pause(), self._carry_out, future, func, args)
        return future

    def _carry_out(
        self, future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        if future.done():
            return
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 - it is the awaiting task's
            self.call_later(self._pause(), _fail, future, error)
        else:
            self.call_later(self._pause(), _finish, future, result)

    def _pause(self) -> float:
        return self._chance.uniform(0.0, _LONGEST_STEP_SECONDS)


def _finish(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
