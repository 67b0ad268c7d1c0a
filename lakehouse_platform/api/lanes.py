"""Lanes: groups of worker threads, so that slow work of one kind never holds up quick work of another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from lakehouse_platform.api.problems import Refusal, refused

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Lane:
    """Threads for one kind of work, and a queue before them.

    Attributes:
        threads: Calls at the same time.
        queue: Calls that may wait; further ones are refused, for they would only wait until their time is over.
    """

    threads: int
    queue: int
    _limiter: CapacityLimiter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_limiter", CapacityLimiter(self.threads))

    async def run(self, act: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Run a blocking call in a thread of this lane and return what it returns.

        Raises:
            HTTPException: Too many wait already (503).
        """
        if self._limiter.statistics().tasks_waiting >= self.queue:
            raise refused(
                Refusal.TOO_BUSY, "Too many requests of this kind wait already: try again in a moment."
            )
        return await to_thread.run_sync(partial(act, *arguments, **named), limiter=self._limiter)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one server.

    Attributes:
        checks: Tokens and keys: each well under a millisecond.
        passwords: Sign-ins, registrations and changes of passwords. The password hashes have a pool of their own with
            at most 36 places (`identity/passwords.py`): with more threads than that, what it has no place for is told
            so at once.
        rows: Rows that are read: each call makes one piece of an answer. Nearly all of a query's time may pass before
            its first piece.
        writes: Rows that are written, and maintenance; each may take all cores.
        work: All else.
    """

    checks: Lane = field(default_factory=lambda: Lane(8, 1_000))
    passwords: Lane = field(default_factory=lambda: Lane(40, 200))
    rows: Lane = field(default_factory=lambda: Lane(32, 10_000))
    writes: Lane = field(default_factory=lambda: Lane(8, 200))
    work: Lane = field(default_factory=lambda: Lane(40, 1_000))
