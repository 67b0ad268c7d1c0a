"""Stretches of time in reports: UTC days and instants, as conditions on an entry's time and day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from lakehouse_platform.audit.entries import timestamp_text
from lakehouse_platform.errors import InvalidArgumentError, InvalidTimestampError
from lakehouse_platform.model.times import parse_rfc3339
from lakehouse_platform.store.predicates import literal

Moment = str | date | datetime

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time.

    Attributes:
        start: The first instant that belongs to it; None for no beginning.
        end: The first instant after it; None for no end.
    """

    start: datetime | None
    end: datetime | None

    @classmethod
    def of_days(cls, start: str | date, end: str | date) -> Period:
        """Return the stretch from one UTC day to another, both in it.

        Raises:
            InvalidTimestampError: A text is no day written like 2026-02-01.
            InvalidArgumentError: The end lies before the start.
        """
        first, last = _day(start), _day(end)
        if first > last:
            raise InvalidArgumentError(
                f"The period begins on {first} and ends on {last}, before that: exchange the two.",
                start=first.isoformat(),
                end=last.isoformat(),
            )
        return cls(_midnight(first), _midnight_after(last))

    @classmethod
    def between(cls, since: Moment | None, until: Moment | None) -> Period:
        """Return the stretch between two instants or UTC days; both belong to it.

        Raises:
            InvalidTimestampError: A text is neither a day nor an RFC 3339 time, or a datetime has no zone.
            InvalidArgumentError: The end lies before the start.
        """
        period = cls(_since(since), _until(until))
        if period.start is not None and period.end is not None and period.start >= period.end:
            raise InvalidArgumentError(
                f"`until` ({until}) lies before `since` ({since}): exchange the two.",
                since=str(since),
                until=str(until),
            )
        return period

    def conditions(self) -> list[str]:
        """Return the conditions that an entry of this stretch fulfils; those on the day skip whole files."""
        found: list[str] = []
        if self.start is not None:
            found.append(f"timestamp >= {_text(timestamp_text(self.start))}")
            found.append(f"date_partition >= {_text(self.start.date().isoformat())}")
        if self.end is not None:
            found.append(f"timestamp < {_text(timestamp_text(self.end))}")
            last = self.end - timedelta(microseconds=1)
            found.append(f"date_partition <= {_text(last.date().isoformat())}")
        return found


def _since(moment: Moment | None) -> datetime | None:
    if moment is None:
        return None
    return _midnight(_day(moment)) if _is_day(moment) else _instant(moment)


def _until(moment: Moment | None) -> datetime | None:
    if moment is None:
        return None
    return _midnight_after(_day(moment)) if _is_day(moment) else _after(_instant(moment))


def _after(instant: datetime) -> datetime:
    return instant if instant == _LAST else instant + timedelta(microseconds=1)


_LAST = datetime.max.replace(tzinfo=UTC)


def _is_day(moment: Moment) -> bool:
    if isinstance(moment, str):
        return _DAY.fullmatch(moment) is not None
    return not isinstance(moment, datetime)


def _instant(moment: Moment) -> datetime:
    if isinstance(moment, str):
        return parse_rfc3339(moment)
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidTimestampError(
            f"{moment} has no time zone: make it aware, for example with tzinfo=UTC.", timestamp=str(moment)
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidTimestampError(
            f"{moment} is in UTC before the year 1 or after 9999: leave the time out for no bound.",
            timestamp=str(moment),
        ) from error


def _day(day: Moment) -> date:
    if isinstance(day, date) and not isinstance(day, datetime):
        return day
    try:
        if isinstance(day, str) and _DAY.fullmatch(day):
            return date.fromisoformat(day)
    except ValueError as error:
        raise _no_day(day) from error
    raise _no_day(day)


def _no_day(day: object) -> InvalidTimestampError:
    return InvalidTimestampError(f"{day!r} is not a day: write it like 2026-02-01.", timestamp=str(day))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _midnight_after(day: date) -> datetime:
    return _LAST if day == date.max else _midnight(day + timedelta(days=1))


def _text(value: str) -> str:
    return literal(value, pa.string())
