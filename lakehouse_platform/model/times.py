"""UTC times as text and numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from lakehouse_platform.errors import InvalidTimestampError

# RFC 3339 §5.6 date-time; the zone is mandatory, because a guess would read another version.
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
# Whole numbers only: seconds as a float are a millisecond off now and then (1.001 s became 1000 ms).
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_rfc3339(text: str) -> datetime:
    """Return the instant that an RFC 3339 text names, in UTC, to the microsecond.

    Raises:
        InvalidTimestampError: The text is not of that form, or names no real instant.
    """
    if _RFC3339.fullmatch(text) is None:
        raise _invalid(text)
    fraction = re.sub(r"(\.\d{6})\d+", r"\1", text.upper().replace(" ", "T"))
    try:
        return datetime.fromisoformat(fraction).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _invalid(text) from error


def to_rfc3339(instant: datetime) -> str:
    """Return an aware instant as RFC 3339 text in UTC with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_epoch_ms(milliseconds: int) -> datetime:
    """Return the UTC instant of a count of milliseconds since 1970."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def to_epoch_ms(instant: datetime) -> int:
    """Return whole milliseconds since 1970 of an aware instant, rounded down."""
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def _invalid(text: str) -> InvalidTimestampError:
    return InvalidTimestampError(
        f"{text!r} is not an RFC 3339 time with a zone: write it like 2026-02-01T12:00:00Z.", timestamp=text
    )
