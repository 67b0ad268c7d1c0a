"""Compare and swap on a mirrored table: look, check, commit right behind what was seen, or look again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from lakehouse_platform.errors import CommitConflictError
from lakehouse_platform.identity.mirror import Mirror, Seen

# Between two tries after another writer was faster: as in `store/commit.py`.
_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 0.5

_R = TypeVar("_R")
_T = TypeVar("_T")


def swapped(
    mirror: Mirror[_R],
    attempt: Callable[[Seen[_R]], _T],
    *,
    tries: int,
    pause: Callable[[float], None] = time.sleep,
    spread: Callable[[float, float], float] = random.uniform,
) -> _T:
    """Let `attempt` check and commit on the newest version, anew as long as other commits come in between.

    Args:
        mirror: What the decision rests on.
        attempt: Makes at most one commit, with the seen version as its `expected_version`.
        tries: How often it may run.
        pause: Waits so many seconds.
        spread: Chooses a number between two.

    Raises:
        CommitConflictError: Other writers were faster each time; nothing was written.
    """
    for turn in range(tries):
        try:
            return attempt(mirror.newest())
        except CommitConflictError:
            if turn + 1 == tries:
                raise
        pause(spread(0, min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**turn)))
    raise AssertionError("a change is attempted at least once")
