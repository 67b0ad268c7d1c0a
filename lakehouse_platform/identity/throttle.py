"""Waits after failed sign-ins, for each name and address: guessing gets slower and slower; and limits registrations.

The rules are functions of what was counted and a time. An attempt counts as failed from its beginning until it is told
to have succeeded: so many at once get no further than as many one after another, and one that crashes stays counted.
An attempt that is refused counts nothing: whoever keeps trying does not make the wait longer.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection

from lakehouse_platform.errors import LoginThrottledError, RateLimitedError
from lakehouse_platform.identity.closing import Closing
from lakehouse_platform.identity.counters import CounterFile
from lakehouse_platform.identity.names import login_key
from lakehouse_platform.model.times import to_epoch_ms

_FILE = "throttle.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS failures (
    kind TEXT NOT NULL, key TEXT NOT NULL, count INTEGER NOT NULL, last_ms INTEGER NOT NULL,
    before_ms INTEGER NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS failures_by_time ON failures (last_ms)
"""
_NAME, _ADDRESS, _REGISTRATION = "name", "address", "registration"
_HOUR_MS = 60 * 60 * 1_000
# Rows that are forgotten anyway are removed a few at each attempt, so that invented names do not fill the disk.
_SWEPT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How failures turn into waiting.

    Attributes:
        free: Failures that cost nothing.
        first_ms: Wait after the last free one, doubled with each further one.
        longest_ms: The longest wait.
        forget_ms: Quiet time after which all is forgotten.
    """

    free: int = 5
    first_ms: int = 1_000
    longest_ms: int = 15 * 60 * 1_000
    forget_ms: int = 24 * 60 * 60 * 1_000

    def wait_ms(self, failures: int) -> int:
        """Return how long to wait after the last of so many failures."""
        if failures < self.free:
            return 0
        # Beyond 2^40 the longest wait is long reached.
        return min(self.longest_ms, self.first_ms << min(failures - self.free, 40))


@dataclass(frozen=True, slots=True)
class Failures:
    """What is counted for one name or address.

    Attributes:
        count: Failures in a row; or registrations in an hour.
        last_ms: When the last one was, in milliseconds since 1970; of registrations, when the hour began.
    """

    count: int
    last_ms: int


def remaining_ms(rule: Rule, failures: Failures | None, now_ms: int) -> int:
    """Return how long to wait from now on; 0 if an attempt is allowed."""
    if failures is None or _is_forgotten(rule, failures, now_ms):
        return 0
    # A clock that was set back must not lock anybody out for longer than the rule says.
    return min(rule.wait_ms(failures.count), max(0, failures.last_ms + rule.wait_ms(failures.count) - now_ms))


def one_more(rule: Rule, failures: Failures | None, now_ms: int) -> Failures:
    """Return what is counted after one more failure."""
    if failures is None or _is_forgotten(rule, failures, now_ms):
        return Failures(1, now_ms)
    return Failures(failures.count + 1, now_ms)


def _is_forgotten(rule: Rule, failures: Failures, now_ms: int) -> bool:
    return now_ms - failures.last_ms >= rule.forget_ms


# Many people may share an address, so it is forgotten sooner.
RULES: Mapping[str, Rule] = {_NAME: Rule(), _ADDRESS: Rule(forget_ms=_HOUR_MS)}


class Throttle(Closing):
    """Counts failed sign-ins. Safe to share between threads; processes with the same directory count along."""

    def __init__(
        self, state_dir: Path, rules: Mapping[str, Rule] = RULES, *, registrations_per_hour: int = 10
    ) -> None:
        """Open the counters.

        Args:
            state_dir: Private directory on the local disk.
            rules: The rules for `name` and `address`.
            registrations_per_hour: Attempts to register that one address may make in an hour.

        Raises:
            StoragePermissionError, StorageIoError, StorageUnavailableError: The directory cannot be used.
        """
        self._rules = rules
        self._registrations_per_hour = registrations_per_hour
        self._file = CounterFile(state_dir / _FILE, _SCHEMA)

    def begin(self, login: str, ip_address: str | None, now: datetime) -> None:
        """Let an attempt to sign in begin; it counts as failed until `succeeded` or `withdraw`.

        Raises:
            LoginThrottledError: Too many failed: try again in `retry_after` seconds. Nothing was counted.
            StorageUnavailableError, StorageIoError: The counters cannot be used.
        """
        now_ms = to_epoch_ms(now)
        with self._file.transaction() as connection:
            found = {kind: _found(connection, kind, key) for kind, key in _keys(login, ip_address).items()}
            wait = max(remaining_ms(self._rules[kind], failures, now_ms) for kind, failures in found.items())
            if wait > 0:
                raise _throttled(wait)
            for kind, key in _keys(login, ip_address).items():
                before = found[kind] or Failures(0, now_ms)
                _keep(connection, kind, key, one_more(self._rules[kind], found[kind], now_ms), before)
            self._sweep(connection, now_ms)

    def succeeded(self, login: str, ip_address: str | None) -> None:
        """Take note that the attempt succeeded: all is forgiven to the name, and this attempt to the address."""
        keys = _keys(login, ip_address)
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM failures WHERE kind = ? AND key = ?", (_NAME, keys[_NAME]))
            if _ADDRESS in keys:
                _take_back(connection, _ADDRESS, keys[_ADDRESS])

    def withdraw(self, login: str, ip_address: str | None) -> None:
        """Take back an attempt that never came to a check of the password."""
        with self._file.transaction() as connection:
            for kind, key in _keys(login, ip_address).items():
                _take_back(connection, kind, key)

    def forgive(self, login: str) -> None:
        """Forget the failures under a name, as an administrator may."""
        self.succeeded(login, None)

    def registration(self, ip_address: str | None, now: datetime) -> None:
        """Let an attempt to register begin, and count it: each one hashes a password, and can tell who is known here.

        An hour begins with the first attempt. One that is refused is not counted; without an address none is.

        Raises:
            RateLimitedError: There were too many from this address: try again in `retry_after` seconds.
            StorageUnavailableError, StorageIoError: The counters cannot be used.
        """
        if ip_address is None:
            return
        key, now_ms = _address_key(ip_address), to_epoch_ms(now)
        with self._file.transaction() as connection:
            found = _found(connection, _REGISTRATION, key)
            # After a clock was set back, the hour begins anew.
            hour = found if found and 0 <= now_ms - found.last_ms < _HOUR_MS else Failures(0, now_ms)
            if hour.count >= self._registrations_per_hour:
                raise self._too_many_registrations(hour.last_ms + _HOUR_MS - now_ms)
            _keep(connection, _REGISTRATION, key, Failures(hour.count + 1, hour.last_ms), hour)
            self._sweep(connection, now_ms)

    def close(self) -> None:
        """Close the counters."""
        self._file.close()

    def _too_many_registrations(self, wait_ms: int) -> RateLimitedError:
        seconds = -(-wait_ms // 1_000)
        return RateLimitedError(
            f"Too many accounts were asked for from this address: try again in {seconds} s.",
            retry_after=seconds,
            limit=self._registrations_per_hour,
            window="hour",
        )

    def _sweep(self, connection: Connection, now_ms: int) -> None:
        longest = max(rule.forget_ms for rule in self._rules.values())
        old = connection.execute(
            "SELECT kind, key FROM failures WHERE last_ms <= ? LIMIT ?", (now_ms - longest, _SWEPT)
        ).fetchall()
        connection.executemany("DELETE FROM failures WHERE kind = ? AND key = ?", old)


def _keys(login: str, ip_address: str | None) -> dict[str, str]:
    # Only digests: the file tells nobody who tried to sign in from where, unless they know whom to look for.
    keys = {_NAME: login_key(login)}
    if ip_address is not None:
        keys[_ADDRESS] = _address_key(ip_address)
    return keys


def _address_key(ip_address: str) -> str:
    network = f"address\0{network_of(ip_address)}"
    return hashlib.sha256(network.encode("utf-8", "replace")).hexdigest()


def network_of(ip_address: str) -> str:
    """Return what one customer has: an IPv4 address, or the first 64 bits of an IPv6 address (RFC 6177).

    Args:
        ip_address: The address; what is none is returned as it is.
    """
    try:
        address = ipaddress.ip_address(ip_address.strip())
    except ValueError:
        return ip_address  # Such as the name of a local socket.
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))


def _found(connection: Connection, kind: str, key: str) -> Failures | None:
    row = connection.execute(
        "SELECT count, last_ms FROM failures WHERE kind = ? AND key = ?", (kind, key)
    ).fetchone()
    return Failures(*row) if row else None


def _keep(connection: Connection, kind: str, key: str, failures: Failures, before: Failures) -> None:
    connection.execute(
        "REPLACE INTO failures VALUES (?, ?, ?, ?, ?)",
        (kind, key, failures.count, failures.last_ms, before.last_ms),
    )


def _take_back(connection: Connection, kind: str, key: str) -> None:
    # The wait is again what it was before this attempt.
    connection.execute(
        "UPDATE failures SET count = count - 1, last_ms = before_ms WHERE kind = ? AND key = ?", (kind, key)
    )
    connection.execute("DELETE FROM failures WHERE kind = ? AND key = ? AND count <= 0", (kind, key))


def _throttled(wait_ms: int) -> LoginThrottledError:
    seconds = -(-wait_ms // 1_000)
    return LoginThrottledError(f"Too many failed sign-ins: try again in {seconds} s.", retry_after=seconds)
