"""The accounts: every change is one commit, and names are unique however many processes register them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from lakehouse_platform.errors import (
    InvalidArgumentError,
    InvalidNameError,
    UserExistsError,
    UserNotFoundError,
)
from lakehouse_platform.identity.mirror import Mirror, Row, Seen, readable
from lakehouse_platform.identity.names import check_new_username, email_key, normal_email, username_key
from lakehouse_platform.identity.swapping import swapped
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier, member_of
from lakehouse_platform.model.times import parse_rfc3339, to_rfc3339
from lakehouse_platform.store.delta_store import DeltaStore

TABLE = "users"
# An account is asked when it was used last, not to the minute, and each time that is kept is a commit.
_SIGN_IN_STEP = timedelta(hours=1)
_BY_EMAIL, _BY_NAME, _BY_STATUS, _BY_KIND = "email", "username", "status", "kind"
_SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """One account.

    Attributes:
        user_id: Its id (UUID text).
        username: Its user name as it was written.
        email: Its e-mail address.
        password_hash: Argon2id hash; never shown.
        role: What it may do.
        tier: How much it may ask for.
        status: Whether it can sign in.
        created_at: When it was registered.
        updated_at: When it was last changed.
        last_login_at: About when it last signed in: sign-ins that have not ended may be later.
        approved_at: When it was approved.
        is_service: Whether it is a program's: with API keys, and no password that anybody could know.
    """

    user_id: str
    username: str
    email: str
    password_hash: str = field(repr=False)
    role: Role = Role.USER
    tier: SubscriptionTier = SubscriptionTier.FREE
    status: AccountStatus = AccountStatus.PENDING
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None = None
    approved_at: datetime | None = None
    is_service: bool = False

    @property
    def is_active(self) -> bool:
        """Whether it can sign in."""
        return self.status is AccountStatus.ACTIVE

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Return the account that a row of the table holds.

        Raises:
            InvalidRowsError: The row holds none.
        """
        # Rows from before accounts had a status knew only whether they were enabled.
        status = row.get("status") or ("active" if row["is_active"] else "disabled")
        with readable(TABLE, row["user_id"]):
            return cls(
                user_id=row["user_id"],
                username=row["username"],
                email=row["email"],
                password_hash=row["password_hash"],
                role=Role(row["role"]),
                tier=SubscriptionTier(row["subscription_tier"]),
                status=AccountStatus(status),
                created_at=parse_rfc3339(row["created_at"]),
                updated_at=parse_rfc3339(row["updated_at"]),
                last_login_at=_time(row.get("last_login_at")),
                approved_at=_time(row.get("approved_at")),
                is_service=bool(row.get("is_service")),
            )

    def to_row(self) -> dict[str, Any]:
        """Return the row that holds the account."""
        return {
            "user_id": self.user_id,
            "username": self.username,
            "email": self.email,
            "password_hash": self.password_hash,
            "role": member_of(Role, self.role).value,
            "subscription_tier": member_of(SubscriptionTier, self.tier).value,
            "created_at": to_rfc3339(self.created_at),
            "updated_at": to_rfc3339(self.updated_at),
            "last_login_at": _text(self.last_login_at),
            "approved_at": _text(self.approved_at),
            "is_service": self.is_service,
            "email_key": email_key(self.email),
            "username_key": username_key(self.username),
            **_status_columns(self.status),
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    """An account with the keys under which its row says that it is found."""

    record: UserRecord
    email_key: str
    username_key: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the accounts.

    Attributes:
        users: In the order of their ids.
        next_after: Where the next page begins (`after`); None on the last one.
    """

    users: Sequence[UserRecord]
    next_after: str | None


class Users:
    """The accounts of a lakehouse. Safe to share between threads."""

    def __init__(
        self, store: DeltaStore, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._table = store.table(TABLE)
        self._clock = clock
        self._tries = store.config.commit_retries + 1
        self._mirror: Mirror[_Entry] = Mirror(
            self._table,
            "user_id",
            _entry,
            indexes={
                _BY_EMAIL: lambda entry: entry.email_key,
                _BY_NAME: lambda entry: entry.username_key,
                _BY_STATUS: lambda entry: entry.record.status,
                _BY_KIND: lambda entry: _SERVICE if entry.record.is_service else None,
            },
        )

    def create(
        self, record: UserRecord, *, only_if: Callable[[Mapping[str, UserRecord]], None] | None = None
    ) -> UserRecord:
        """Add an account in one commit and return it as it is kept.

        Args:
            record: The account; its e-mail address is normalised.
            only_if: Sees all accounts of the version that the commit follows, and raises if it must not be made.

        Raises:
            InvalidNameError: The user name or e-mail address is not allowed.
            UserExistsError: The id, the user name or the e-mail address is taken.
            InvalidRowsError: A row of the table cannot be read, so nobody knows whose names it holds.
            CommitConflictError: Other processes were faster again and again; nothing was written.
        """
        kept = UserRecord.from_row(
            record.to_row()
            | {"username": check_new_username(record.username), "email": normal_email(record.email)}
        )
        entry = _entry(row := kept.to_row())

        def attempt(seen: Seen[_Entry]) -> UserRecord:
            _require_free(seen, entry)
            if only_if is not None:
                only_if(_records(seen))
            self._table.append([row], expected_version=seen.version)
            return kept

        return self._swapped(attempt)

    def by_id(self, user_id: str) -> UserRecord:
        """Return an account.

        Raises:
            UserNotFoundError: There is none.
            InvalidRowsError: Its row cannot be read.
        """
        return _found(self._mirror.look(), user_id)

    def by_login(self, login: str) -> UserRecord | None:
        """Return the account with this e-mail address or user name; None if there is none."""
        index, key_of = (_BY_EMAIL, email_key) if "@" in login else (_BY_NAME, username_key)
        try:
            key = key_of(login)
        except InvalidNameError:
            return None  # What is no name cannot be anybody's.
        found = self._mirror.look().find(index, key)
        return found[0].record if found else None

    def pending(self) -> list[UserRecord]:
        """Return the accounts that wait for approval, the oldest first."""
        waiting = self._mirror.look().find(_BY_STATUS, AccountStatus.PENDING)
        return sorted(
            (entry.record for entry in waiting), key=lambda record: (record.created_at, record.user_id)
        )

    def services(self) -> list[UserRecord]:
        """Return the accounts of programs, by name."""
        found = self._mirror.look().find(_BY_KIND, _SERVICE)
        return sorted((entry.record for entry in found), key=lambda record: record.username.lower())

    def all(self, *, after: str = "", limit: int = 100, status: AccountStatus | None = None) -> Page:
        """Return a page of all accounts, in the order of their ids.

        Args:
            after: The id that the page begins behind; empty for the first one.
            limit: Accounts on the page.
            status: Only accounts that stand there; None for all.

        Raises:
            InvalidArgumentError: The limit is below 1.
        """
        if limit < 1:
            raise InvalidArgumentError(f"A page has at least 1 user, not {limit}.", limit=limit)
        seen = self._mirror.look()
        _require_sound(seen)
        records = {user_id: entry.record for user_id, entry in seen.records.items()}
        ids = sorted(
            user_id
            for user_id, record in records.items()
            if user_id > after and (status is None or record.status is status)
        )
        page = [records[user_id] for user_id in ids[:limit]]
        return Page(page, ids[limit - 1] if len(ids) > limit else None)

    def count(self) -> int:
        """Return how many accounts there are."""
        return len(self._mirror.current())

    def change(
        self,
        user_id: str,
        *,
        only_if: Callable[[UserRecord, Mapping[str, UserRecord]], None] | None = None,
        **fields: object,
    ) -> UserRecord:
        """Change some fields of an account in one commit and return it; all else stays.

        Args:
            user_id: The account.
            only_if: Sees the account and all accounts at the version that the commit follows, and raises if the
                change must not be made: that no other change comes between the look and the commit is guaranteed.
            fields: Fields of `UserRecord` with their new values; `updated_at` is set if it is not given.

        Raises:
            UserNotFoundError: There is no such account.
            InvalidArgumentError: A field is unknown, or is one that never changes.
            UserExistsError, InvalidNameError: The new user name or e-mail address is taken or not allowed.
            CommitConflictError: Other processes were faster again and again; nothing was written.
        """
        columns = _columns({"updated_at": self._clock(), **fields})

        def attempt(seen: Seen[_Entry]) -> UserRecord:
            old = _found(seen, user_id)
            if only_if is not None:
                only_if(old, _records(seen))
            new = _entry({**old.to_row(), **columns})
            if not _NAMES.isdisjoint(fields):
                _require_free(seen, new, itself=user_id)
            # UPDATE, so that a merge never brings back an account that was erased meanwhile.
            self._table.merge(
                [{"user_id": user_id, **columns, "_op": "UPDATE"}], ["user_id"], expected_version=seen.version
            )
            return new.record

        return self._swapped(attempt)

    def signed_in(self, times: Mapping[str, datetime]) -> None:
        """Keep in one commit, or none, when users signed in, where what is kept is an hour older or more.

        Args:
            times: The times by the users' ids; those of accounts that are gone are left out.
        """
        seen = self._mirror.look().records
        rows = [
            {"user_id": user_id, "last_login_at": _text(time), "_op": "UPDATE"}
            for user_id, time in times.items()
            if user_id in seen and _is_news(seen[user_id].record.last_login_at, time)
        ]
        if rows:
            self._table.merge(rows, ["user_id"])

    def _swapped(self, attempt: Callable[[Seen[_Entry]], UserRecord]) -> UserRecord:
        return swapped(self._mirror, attempt, tries=self._tries)


def _is_news(kept: datetime | None, time: datetime) -> bool:
    return kept is None or time - kept >= _SIGN_IN_STEP


def _entry(row: Row) -> _Entry:
    record = UserRecord.from_row(row)
    with readable(TABLE, record.user_id):
        return _Entry(
            record,
            row.get("email_key") or email_key(record.email),
            row.get("username_key") or username_key(record.username),
        )


def _records(seen: Seen[_Entry]) -> dict[str, UserRecord]:
    _require_sound(seen)
    return {user_id: entry.record for user_id, entry in seen.records.items()}


def _require_sound(seen: Seen[_Entry]) -> None:
    """Refuse what rests on all accounts as long as one cannot be read: it may be the one that matters."""
    for error in seen.damaged.values():
        raise error


def _require_free(seen: Seen[_Entry], entry: _Entry, *, itself: str | None = None) -> None:
    """Refuse names that another account has; which of them is not told, so that fewer people can be found out."""
    _require_sound(seen)
    taken = seen.find(_BY_EMAIL, entry.email_key) + seen.find(_BY_NAME, entry.username_key)
    if any(other.record.user_id != itself for other in taken) or (
        itself is None and entry.record.user_id in seen.records
    ):
        raise UserExistsError("This user name or e-mail address is taken: choose another one, or sign in.")


def _columns(fields: Mapping[str, object]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in _CHANGEABLE:
            raise InvalidArgumentError(
                f"Field {name!r} of a user cannot be changed; these can: {', '.join(_CHANGEABLE)}.",
                field=name,
            )
        columns |= _CHANGEABLE[name](value)
    return columns


def _status_columns(status: Any) -> dict[str, Any]:
    kind = AccountStatus(status)
    return {"status": kind.value, "is_active": kind is AccountStatus.ACTIVE}


def _email_columns(email: Any) -> dict[str, Any]:
    return {"email": normal_email(email), "email_key": email_key(email)}


def _username_columns(username: Any) -> dict[str, Any]:
    return {"username": check_new_username(username), "username_key": username_key(username)}


# Fields whose values no other account may have.
_NAMES = frozenset({"username", "email"})
# By field: the columns that its value becomes.
_CHANGEABLE: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "username": _username_columns,
    "email": _email_columns,
    "password_hash": lambda value: {"password_hash": str(value)},
    "role": lambda value: {"role": member_of(Role, value).value},
    "tier": lambda value: {"subscription_tier": member_of(SubscriptionTier, value).value},
    "status": _status_columns,
    "updated_at": lambda value: {"updated_at": to_rfc3339(value)},
    "last_login_at": lambda value: {"last_login_at": _text(value)},
    "approved_at": lambda value: {"approved_at": _text(value)},
}


def _time(text: str | None) -> datetime | None:
    return None if text is None else parse_rfc3339(text)


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else to_rfc3339(instant)


def _found(seen: Seen[_Entry], user_id: str) -> UserRecord:
    if user_id in seen.damaged:
        raise seen.damaged[user_id]
    if user_id not in seen.records:
        raise UserNotFoundError("There is no such user: check the id.", user_id=user_id)
    return seen.records[user_id].record
