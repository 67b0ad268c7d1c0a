"""What an audit entry says, and the bytes that stand for it in the journal."""

from __future__ import annotations

import json
import math
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, cast

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.origin import Door

# Enough for a sentence with names in it, and little enough that an entry costs no more than a page.
MOST_DETAILS = 4096
_LONGEST = {"user_id": 128, "details": MOST_DETAILS, "resource": 512, "ip_address": 64, "request_id": 128}
_LARGEST_COUNT = 2**63 - 1  # what the table's column holds
_SALT_BYTES = 16
# Made once: with other than the default options `json.dumps` makes one at each call.
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action, as the one who records it tells it.

    Attributes:
        action: What was done.
        user_id: Opaque id of the one who did it.
        details: Description for people.
        resource: The table or object acted on; no personal data, for an erasure leaves it.
        row_count: Rows read or written.
        duration_ms: Time it took, in milliseconds.
        ip_address: Where the request came from.
        outcome: How it ended.
        door: The front end it came through.
        request_id: The request or run it belongs to; no personal data, for an erasure leaves it.

    Raises:
        InvalidArgumentError: A text is too long or not Unicode, a number is negative, or `user_id` is empty.
    """

    action: ActionType
    user_id: str
    details: str | None = None
    resource: str | None = None
    row_count: int | None = None
    duration_ms: float | None = None
    ip_address: str | None = None
    outcome: Outcome = Outcome.DONE
    door: Door = Door.PYTHON
    request_id: str | None = None

    def __post_init__(self) -> None:
        for name, kind in (("action", ActionType), ("outcome", Outcome), ("door", Door)):
            _check_kind(name, getattr(self, name), kind)
        for name, most in _LONGEST.items():
            _check_text(name, getattr(self, name), most)
        # An erasure leaves an empty text, so none may come from elsewhere.
        if not self.user_id:
            raise _wrong("user_id", "is empty: name who acted, such as 'owner' or 'anonymous'")
        _check_numbers(self.row_count, self.duration_ms)


_FIELDS = tuple(one.name for one in fields(AuditEntry))


@dataclass(frozen=True, slots=True)
class Recorded:
    """An entry with what the audit log adds when it takes it.

    Attributes:
        entry: What was told.
        audit_id: Its id.
        timestamp: When it was taken: RFC 3339, UTC, microseconds.
        salt: Hex of the random bytes that hide the personal fields in the chain.
    """

    entry: AuditEntry
    audit_id: str
    timestamp: str
    salt: str

    @property
    def day(self) -> str:
        """The UTC day of the entry, which is its partition."""
        return self.timestamp[:10]

    def to_bytes(self) -> bytes:
        """Return the bytes that the journal keeps."""
        facts: dict[str, Any] = {name: getattr(self.entry, name) for name in _FIELDS}
        own = {"audit_id": self.audit_id, "timestamp": self.timestamp, "salt": self.salt}
        return _to_json(facts | own).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Recorded:
        """Return what `to_bytes` made bytes of."""
        facts = cast("dict[str, Any]", json.loads(data))
        own = {name: facts.pop(name) for name in ("audit_id", "timestamp", "salt")}
        action, outcome, door = (facts.pop(name) for name in ("action", "outcome", "door"))
        entry = AuditEntry(action=ActionType(action), outcome=Outcome(outcome), door=Door(door), **facts)
        return cls(entry, **own)


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def take(
    entry: AuditEntry,
    now: Callable[[], datetime] = utc_now,
    make_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    make_salt: Callable[[], bytes] = lambda: secrets.token_bytes(_SALT_BYTES),
) -> Recorded:
    """Return an entry with its id, time and salt."""
    return Recorded(entry, make_id(), timestamp_text(now()), make_salt().hex())


def timestamp_text(instant: datetime) -> str:
    """Return an instant as the audit log writes it; such texts sort as the instants do."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _check_kind(name: str, value: object, kind: type[ActionType | Outcome | Door]) -> None:
    if not isinstance(value, kind):
        raise _wrong(name, f"is {value!r}: give a member of {kind.__name__}")


def _check_text(name: str, text: object, most: int) -> None:
    if text is None and name != "user_id":
        return
    if not isinstance(text, str):
        raise _wrong(name, f"is of type {type(text).__name__}: give a text")
    if len(text) > most:
        raise _wrong(name, f"has {len(text)} characters: at most {most} are kept, so shorten it")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _wrong(name, "holds half a character (a lone surrogate): decode it properly first")


def _check_numbers(row_count: object, duration_ms: object) -> None:
    if row_count is not None and (type(row_count) is not int or not 0 <= row_count <= _LARGEST_COUNT):
        raise _wrong("row_count", f"is {row_count!r}: give a whole number from 0")
    if duration_ms is not None and not _is_duration(duration_ms):
        raise _wrong("duration_ms", f"is {duration_ms!r}: give milliseconds from 0")


def _is_duration(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    )


def _wrong(name: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The audit entry's {name} {reason}.", field=name)
