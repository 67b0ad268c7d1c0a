"""How many requests each subscription may make: fixed UTC minutes and days, exact across processes of one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from types import MappingProxyType

from lakehouse_platform.errors import InvalidArgumentError, RateLimitedError
from lakehouse_platform.identity.closing import Closing
from lakehouse_platform.identity.counters import CounterFile
from lakehouse_platform.model.actors import SubscriptionTier
from lakehouse_platform.model.times import to_epoch_ms

_FILE = "limits.sqlite"
# The clocks of two processes can differ, so counts of the window before the current one are kept as well.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS taken (
    user_id TEXT NOT NULL, seconds INTEGER NOT NULL, start INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (user_id, seconds, start)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS overrides (
    user_id TEXT PRIMARY KEY, per_minute INTEGER, per_day INTEGER
) WITHOUT ROWID
"""
_MINUTE = 60
_DAY = 24 * 60 * 60
# What SQLite's column holds.
_LARGEST = 2**63 - 1
_NAMES: Mapping[int, str] = {_MINUTE: "minute", _DAY: "day"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How many requests are allowed.

    Attributes:
        per_minute: In a minute of the clock; None for no limit.
        per_day: In a UTC day; None for no limit.
    """

    per_minute: int | None
    per_day: int | None


# Seed, "Subscription tiers".
QUOTAS: Mapping[SubscriptionTier, Quota] = MappingProxyType(
    {
        SubscriptionTier.FREE: Quota(per_minute=10, per_day=100),
        SubscriptionTier.PRO: Quota(per_minute=100, per_day=10_000),
        SubscriptionTier.ENTERPRISE: Quota(per_minute=None, per_day=None),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a user has used up.

    Attributes:
        quota: What is allowed.
        minute: Requests in the current minute.
        day: Requests in the current UTC day.
    """

    quota: Quota
    minute: int
    day: int


class Limits(Closing):
    """Counts requests. Safe to share between threads; other processes with the same directory count along."""

    def __init__(self, state_dir: Path, quotas: Mapping[SubscriptionTier, Quota] = QUOTAS) -> None:
        """Open the counters.

        Args:
            state_dir: Private directory on the local disk.
            quotas: What each tier allows.

        Raises:
            StoragePermissionError, StorageIoError, StorageUnavailableError: The directory cannot be used.
        """
        self._quotas = quotas
        self._file = CounterFile(state_dir / _FILE, _SCHEMA)

    def take(self, user_id: str, tier: SubscriptionTier, now: datetime) -> Usage:
        """Count one request and return what is used up with it; a refused request is not counted.

        Raises:
            RateLimitedError: A limit is reached; `retry_after` says in how many seconds it is not any more.
            StorageUnavailableError, StorageIoError: The counters cannot be used.
        """
        second = _second(now)
        with self._file.transaction() as connection:
            usage = self._usage(connection, user_id, tier, second)
            _require_room(usage, second)
            for length in (_MINUTE, _DAY):
                _count(connection, user_id, length, second - second % length)
        return Usage(quota=usage.quota, minute=usage.minute + 1, day=usage.day + 1)

    def usage(self, user_id: str, tier: SubscriptionTier, now: datetime) -> Usage:
        """Return what a user has used up, without counting anything.

        Raises:
            StorageUnavailableError, StorageIoError: The counters cannot be used.
        """
        with self._file.transaction() as connection:
            return self._usage(connection, user_id, tier, _second(now))

    def reset(self, user_id: str) -> None:
        """Forget what a user has used up; what the user may use stays."""
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM taken WHERE user_id = ?", (user_id,))

    def override(self, user_id: str, per_minute: int | None, per_day: int | None) -> None:
        """Give a user limits of their own in place of the tier's; None is no limit.

        Raises:
            InvalidArgumentError: A limit is no whole number from 0.
        """
        for limit in (per_minute, per_day):
            if limit is not None and (type(limit) is not int or not 0 <= limit <= _LARGEST):
                raise InvalidArgumentError(
                    f"A limit is a whole number from 0 to {_LARGEST}, or None for no limit; not {limit!r}."
                )
        with self._file.transaction() as connection:
            connection.execute("REPLACE INTO overrides VALUES (?, ?, ?)", (user_id, per_minute, per_day))

    def follow_tier(self, user_id: str) -> None:
        """Take back an override: the tier's limits count again."""
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM overrides WHERE user_id = ?", (user_id,))

    def forget(self, user_id: str) -> None:
        """Remove everything about a user, for one who is erased."""
        self.reset(user_id)
        self.follow_tier(user_id)

    def close(self) -> None:
        """Close the counters."""
        self._file.close()

    def _usage(self, connection: Connection, user_id: str, tier: SubscriptionTier, second: int) -> Usage:
        own = connection.execute(
            "SELECT per_minute, per_day FROM overrides WHERE user_id = ?", (user_id,)
        ).fetchone()
        quota = Quota(per_minute=own[0], per_day=own[1]) if own else self._quotas[tier]
        minute, day = (_counted(connection, user_id, length, second) for length in (_MINUTE, _DAY))
        return Usage(quota=quota, minute=minute, day=day)


def _require_room(usage: Usage, second: int) -> None:
    # The day first: whoever has used it up need not come back in a minute.
    windows = ((_DAY, usage.day, usage.quota.per_day), (_MINUTE, usage.minute, usage.quota.per_minute))
    for length, used, limit in windows:
        if limit is not None and used >= limit:
            wait = length - second % length
            raise RateLimitedError(
                f"The limit of {limit} requests per {_NAMES[length]} is reached: try again in {wait} s.",
                retry_after=wait,
                limit=limit,
                window=_NAMES[length],
            )


def _counted(connection: Connection, user_id: str, length: int, second: int) -> int:
    found = connection.execute(
        "SELECT count FROM taken WHERE user_id = ? AND seconds = ? AND start = ?",
        (user_id, length, second - second % length),
    ).fetchone()
    return found[0] if found else 0


def _count(connection: Connection, user_id: str, length: int, start: int) -> None:
    connection.execute(
        "INSERT INTO taken VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
        (user_id, length, start),
    )
    connection.execute(
        "DELETE FROM taken WHERE user_id = ? AND seconds = ? AND start < ?", (user_id, length, start - length)
    )


def _second(now: datetime) -> int:
    return to_epoch_ms(now) // 1000
