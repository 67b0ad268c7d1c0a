"""API keys: how programs sign in. A key is shown once; of its 256 random bits only the hash is kept.

A key is `lhk_`, its id, `_` and its secret. The id finds the row and may be seen; the secret is compared in constant
time. Whether a key is unknown, wrong, revoked or past its time is not told: there is one answer for all.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self, TypeAlias

from lakehouse_platform.errors import AuthenticationFailedError, InvalidArgumentError
from lakehouse_platform.identity.mirror import Mirror, Row, readable
from lakehouse_platform.model.rights import Scopes
from lakehouse_platform.model.times import parse_rfc3339, to_rfc3339
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import system_table

TABLE = "api_keys"
PREFIX = "lhk_"
LONGEST_LIFE = timedelta(days=3650)
_BY_USER = "user"
# 64 bits tell keys apart; 256 bits cannot be guessed, so that a plain SHA-256 protects them.
_ID_BYTES = 8
_SECRET_BYTES = 32
# One text for each key: no capitals, no padding, nothing around it.
_KEY = re.compile(r"lhk_([0-9a-f]{16})_[0-9a-f]{64}")
_KEY_ID = re.compile(r"[0-9a-f]{16}")
_MOST_LABEL = 100
# The time of the last use is a commit of its own, which a program that asks all the time need not make.
_USE_STEP = timedelta(hours=1)
# Compared with when there is no such key, so that this takes as long.
_NO_HASH = "0" * 64

_Records: TypeAlias = list["ApiKeyRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyRecord:
    """What is kept of a key.

    Attributes:
        key_id: The part of the key that may be seen.
        user_id: Whose it is: the account of a program.
        label: What it is for.
        key_hash: SHA-256 of the key; never shown.
        scopes: What it may of what its account may.
        created_at: When it was made.
        expires_at: When it ends; None for never.
        last_used_at: When it was used, right to the hour; None if it never was.
        revoked_at: Since when it is void; None if it was not revoked.
    """

    key_id: str
    user_id: str
    label: str
    key_hash: str = field(repr=False)
    scopes: Scopes
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Return the key that a row of the table holds.

        Raises:
            InvalidRowsError: The row holds none.
        """
        with readable(TABLE, row["key_id"]):
            return cls(
                key_id=row["key_id"],
                user_id=row["user_id"],
                label=row["label"],
                key_hash=row["key_hash"],
                scopes=Scopes.parse(row["scopes"]),
                created_at=parse_rfc3339(row["created_at"]),
                expires_at=_time(row["expires_at"]),
                last_used_at=_time(row["last_used_at"]),
                revoked_at=_time(row["revoked_at"]),
            )

    def to_row(self) -> dict[str, Any]:
        """Return the row that holds the key."""
        return {
            "key_id": self.key_id,
            "user_id": self.user_id,
            "label": self.label,
            "key_hash": self.key_hash,
            "scopes": str(self.scopes),
            "created_at": to_rfc3339(self.created_at),
            "expires_at": _text(self.expires_at),
            "last_used_at": _text(self.last_used_at),
            "revoked_at": _text(self.revoked_at),
        }

    def is_live(self, now: datetime) -> bool:
        """Tell whether it counts, if its account does."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A key that was just made; as text it is the key, which exists nowhere else.

    Attributes:
        key: The key, to be shown once.
        record: What is kept of it.
    """

    key: str = field(repr=False)
    record: ApiKeyRecord

    @property
    def key_id(self) -> str:
        """The part of the key that may be seen."""
        return self.record.key_id

    def __str__(self) -> str:
        return self.key


class ApiKeys:
    """The API keys of a lakehouse. Safe to share between threads."""

    def __init__(self, store: DeltaStore) -> None:
        self._table = store.table(TABLE)
        self._mirror: Mirror[ApiKeyRecord] = Mirror(
            self._table, "key_id", ApiKeyRecord.from_row, indexes={_BY_USER: lambda one: one.user_id}
        )
        self._noted: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def create(
        self, user_id: str, label: str, scopes: Scopes, now: datetime, life: timedelta | None
    ) -> NewApiKey:
        """Make a key in one commit.

        Args:
            user_id: Whose it is.
            label: What it is for: 1 to 100 printable characters.
            scopes: What it may.
            now: The time.
            life: How long it counts; None for without end.

        Raises:
            InvalidArgumentError: Label, scopes or life are not allowed; the message says what is.
        """
        key_id = secrets.token_hex(_ID_BYTES)
        key = f"{PREFIX}{key_id}_{secrets.token_hex(_SECRET_BYTES)}"
        record = ApiKeyRecord(
            key_id=key_id,
            user_id=user_id,
            label=_checked_label(label),
            key_hash=_digest(key),
            scopes=_checked_scopes(scopes),
            created_at=now,
            expires_at=now + _checked_life(life) if life is not None else None,
        )
        row = record.to_row()
        self._table.append([row])
        return NewApiKey(key, ApiKeyRecord.from_row(row))

    def check(self, key: str, now: datetime) -> ApiKeyRecord:
        """Return what is kept of a key that counts.

        Raises:
            AuthenticationFailedError: It is no key, or does not count, or not any more: which is not told.
        """
        found = self.named(key)
        is_right = hmac.compare_digest(found.key_hash if found else _NO_HASH, _digest(key))
        if found is None or not is_right or not found.is_live(now):
            raise no_such_key()
        return found

    def named(self, key: str) -> ApiKeyRecord | None:
        """Return what is kept of the key with this key's id, whether its secret is right or not; None if nothing is."""
        match = _KEY.fullmatch(key)
        return self._mirror.current().get(match[1]) if match else None

    def note_use(self, record: ApiKeyRecord, now: datetime) -> None:
        """Take note that a key was used: in one commit, if the time that is kept is an hour old, else in none."""
        if record.last_used_at is not None and now - record.last_used_at < _USE_STEP:
            return
        with self._noting(record.key_id, now) as is_due:
            if is_due:
                self._update(record.key_id, last_used_at=to_rfc3339(now))

    def list(self, user_id: str) -> _Records:
        """Return the keys of an account, the newest first, also those that do not count any more."""
        found = self._mirror.look().find(_BY_USER, user_id)
        return sorted(found, key=lambda one: one.created_at, reverse=True)

    def revoke(self, user_id: str, key_id: str, now: datetime) -> bool:
        """Make a key of an account void in one commit, and tell whether it had not been revoked before."""
        found = self._mirror.newest().records.get(key_id)
        if found is None or found.user_id != user_id or found.revoked_at is not None:
            return False
        return self._update(key_id, revoked_at=to_rfc3339(now)) > 0

    def _update(self, key_id: str, **columns: str) -> int:
        # UPDATE, so that a merge never brings back a key that was erased meanwhile.
        return self._table.merge([{"key_id": key_id, **columns, "_op": "UPDATE"}]).rows_updated

    @contextmanager
    def _noting(self, key_id: str, now: datetime) -> Generator[bool]:
        """Tell one thread of this process in an hour that a use is to be written down; another one if that failed."""
        with self._lock:
            before = self._noted.get(key_id)
            is_due = before is None or now - before >= _USE_STEP
            if is_due:
                self._noted[key_id] = now
        try:
            yield is_due
        except BaseException:
            with self._lock:
                self._noted.pop(key_id, None)
            raise


def is_key_id(text: str) -> bool:
    """Tell whether a text can be the id of a key, and so holds no secret."""
    return _KEY_ID.fullmatch(text) is not None


def no_such_key() -> AuthenticationFailedError:
    """Return the one answer to every key that does not count."""
    return AuthenticationFailedError(
        "This API key is not valid, or not any more: ask an administrator for another one."
    )


def _checked_label(label: str) -> str:
    text = label.strip()
    if not 0 < len(text) <= _MOST_LABEL or not text.isprintable():
        raise InvalidArgumentError(
            f"The label of an API key has 1 to {_MOST_LABEL} printable characters: say in them what the key is for."
        )
    return text


def _checked_scopes(scopes: Scopes) -> Scopes:
    for table, _ in scopes.tables:
        if system_table(table) is not None:
            raise InvalidArgumentError(
                f"{table} is the platform's own table, on which no scope gives a right: take it out.",
                table=table,
            )
    # Also what was put together without parsing must be what the table can hold.
    return Scopes.parse(scopes.texts())


def _checked_life(life: timedelta) -> timedelta:
    if not timedelta(0) < life <= LONGEST_LIFE:
        raise InvalidArgumentError(
            f"An API key counts for more than 0 and at most {LONGEST_LIFE.days} days, or without end: choose another "
            "life.",
            days=life / timedelta(days=1),
        )
    return life


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _time(text: str | None) -> datetime | None:
    return None if text is None else parse_rfc3339(text)


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else to_rfc3339(instant)
