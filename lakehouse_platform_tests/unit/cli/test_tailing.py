"""Which entries are the newest, and which come after them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse_platform.cli.accounts import Conditions, Facts
from lakehouse_platform.cli.tailing import Search, follow, last_entries
from lakehouse_platform.model.times import parse_rfc3339, to_rfc3339

DAYS = [timedelta(days=days) for days in (400, 100, 20, 2)]
MINUTES = [timedelta(minutes=minutes) for minutes in (50, 5, 1)]


def numbers(found: list[Facts]) -> list[int]:
    return [one["sequence"] for one in found]


def search_of(ages: list[timedelta]) -> tuple[Search, list[Conditions]]:
    """Return a search over entries of these ages, and what it was asked."""
    now, asked = datetime.now(UTC), list[Conditions]()
    entries: list[Facts] = [{"sequence": number, "at": now - age} for number, age in enumerate(ages, start=1)]

    def search(conditions: Conditions, limit: int, after: int) -> list[Facts]:
        asked.append(conditions)
        since = parse_rfc3339(conditions.since) if conditions.since else entries[0]["at"]
        return [one for one in entries[after:] if one["at"] >= since][:limit]

    return search, asked


@pytest.mark.parametrize(("count", "searches"), [(0, 0), (1, 1), (3, 1), (4, 3), (6, 4), (9, 4)])
def test_the_newest_are_found_with_few_looks_at_old_ones(count: int, searches: int) -> None:
    search, asked = search_of([*DAYS, *MINUTES])
    assert numbers(last_entries(search, Conditions(), count)) == [1, 2, 3, 4, 5, 6, 7][-count or 7 :]
    assert len(asked) == searches


def test_a_beginning_that_is_asked_for_is_kept() -> None:
    search, _ = search_of([*DAYS, *MINUTES])
    since = to_rfc3339(datetime.now(UTC) - timedelta(days=30))
    assert numbers(last_entries(search, Conditions(since=since), 100)) == [3, 4, 5, 6, 7]


def test_more_entries_than_a_page_are_walked_through() -> None:
    search, _ = search_of([timedelta(0)] * 25_000)
    assert numbers(last_entries(search, Conditions(), 2)) == [24_999, 25_000]


def test_entries_are_shown_as_they_come_with_a_pause_between_two_looks() -> None:
    class CtrlCError(Exception):
        """Stands for Ctrl-C."""

    coming = iter([[{"sequence": 1}], [], [{"sequence": 2}, {"sequence": 3}]])
    shown: list[int] = []
    pauses: list[float] = []

    def newer() -> list[Facts]:
        if (found := next(coming, None)) is None:
            raise CtrlCError
        return found

    show: Callable[..., None] = lambda found: shown.extend(numbers(found))  # noqa: E731
    with pytest.raises(CtrlCError):
        follow(newer, show, 7.0, wait=pauses.append)
    assert (shown, pauses) == ([1, 2, 3], [7.0, 7.0, 7.0])
