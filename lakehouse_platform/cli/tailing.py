"""The newest entries of the audit log, and those that come after them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from lakehouse_platform.cli.accounts import Conditions, Facts, Reports
from lakehouse_platform.model.times import to_rfc3339

Search: TypeAlias = Callable[[Conditions, int, int], list[Facts]]
"""Returns the entries that fit, in their order: conditions, the most of them, and after which sequence number."""

# Entries are found from the oldest on, so the newest ones are looked for in stretches of time that grow.
_STRETCHES = (timedelta(hours=1), timedelta(days=1), timedelta(days=30))
_PAGE = 10_000


def last_entries(search: Search, conditions: Conditions, count: int) -> list[Facts]:
    """Return the newest entries that fit, in their order.

    Args:
        search: Where to look.
        conditions: Which entries are wanted.
        count: How many, if there are so many.
    """
    if count == 0:
        return []
    now = datetime.now(UTC)
    stretches = [] if conditions.since else [to_rfc3339(now - length) for length in _STRETCHES]
    for since in stretches:
        found = _last(search, replace(conditions, since=since), count)
        if len(found) == count:
            return found
    return _last(search, conditions, count)


def entries_after(
    reports: Reports, conditions: Conditions, entries: Sequence[Facts]
) -> Callable[[], list[Facts]]:
    """Return what gives the entries that have come after these since it was last called."""
    if entries:
        return reports.watch(conditions, after=entries[-1]["sequence"])
    # Nothing says where the log ends, so its time does.
    since = conditions.since or to_rfc3339(datetime.now(UTC))
    return reports.watch(replace(conditions, since=since), after=0)


def follow(
    newer: Callable[[], Sequence[Facts]],
    show: Callable[[Sequence[Facts]], None],
    pause: float,
    *,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Show entries as they come, until the process is interrupted.

    Args:
        newer: Returns those that have come since it was last called.
        show: Is handed them.
        pause: Seconds between two looks.
        wait: Waits for some seconds.
    """
    while True:
        show(newer())
        wait(pause)


def _last(search: Search, conditions: Conditions, count: int) -> list[Facts]:
    newest: deque[Facts] = deque(maxlen=count)
    for page in _pages(search, conditions):
        newest.extend(page)
    return list(newest)


def _pages(search: Search, conditions: Conditions) -> Iterator[list[Facts]]:
    after = 0
    while page := search(conditions, _PAGE, after):
        yield page
        if len(page) < _PAGE:
            return
        after = page[-1]["sequence"]
