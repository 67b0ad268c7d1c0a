"""What the server tells of accounts, sign-ins and the audit log; the names are those of the services' own records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.model.results import VersionInfo
from lakehouse_platform.model.rights import Right


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """A sign-in; as text it is the access token.

    Attributes:
        access_token: Shown with each request.
        refresh_token: Good for one renewal; None if there is none any more.
        expires_at: When the access token ends.
        user_id: Who signed in.
        session_id: The sign-in.
    """

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: datetime
    user_id: str | None = None
    session_id: str | None = None

    def __str__(self) -> str:
        return self.access_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What an access token says.

    Attributes:
        sub: The user's id.
        sid: The sign-in.
        jti: The token's id.
        role: What the user may do.
        tier: How much the user may ask for.
        issued_at: When it was made.
        expires_at: When it ends.
    """

    sub: str
    sid: str
    jti: str
    role: Role
    tier: SubscriptionTier
    issued_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An account.

    Attributes:
        user_id: Its id.
        username: Its name.
        email: Its e-mail address.
        role: What the user may do.
        tier: How much the user may ask for.
        status: Where the account stands.
        created_at: When it was made.
        updated_at: When it was changed last.
        last_login_at: About when the user signed in last.
        approved_at: When it was approved.
        is_service: Whether it is a program's, with API keys and no password.
    """

    user_id: str
    username: str
    email: str
    role: Role
    tier: SubscriptionTier
    status: AccountStatus
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None = None
    approved_at: datetime | None = None
    is_service: bool = False

    @property
    def is_active(self) -> bool:
        """Whether the user can sign in."""
        return self.status is AccountStatus.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPage:
    """Some accounts, and how to go on.

    Attributes:
        users: The accounts.
        next_after: Hand this to the next call as `after`; None if these were the last.
    """

    users: tuple[User, ...]
    next_after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A sign-in that has not ended.

    Attributes:
        session_id: Its id.
        user_id: Whose it is.
        expires_at: When its access token ends.
        created_at: When it began.
        ip_address: Where it came from.
        user_agent: The program.
    """

    session_id: str
    user_id: str
    expires_at: datetime
    created_at: datetime
    ip_address: str | None = None
    user_agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One user's right on one table.

    Attributes:
        user_id: Who may.
        table: On which table; `*` for every one but the platform's own.
        right: What.
        granted_by: Id of the one who allowed it.
        granted_at: When.
    """

    user_id: str
    table: str
    right: Right
    granted_by: str
    granted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How many requests are allowed; None is no limit.

    Attributes:
        per_minute: In a minute of the clock.
        per_day: In a UTC day.
    """

    per_minute: int | None
    per_day: int | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key of a service account; the key itself is told once, when it is made.

    Attributes:
        key_id: Its id.
        label: What it is for.
        scopes: What it may, as far as its account may.
        user_id: Its account.
        created_at: When it was made.
        expires_at: When it ends.
        last_used_at: About when it was used last.
        revoked_at: When it was taken back.
        key: The key, where it is told.
    """

    key_id: str
    label: str
    scopes: tuple[str, ...]
    user_id: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One entry of the audit log, as reports show it; an erased one has an empty user id.

    Attributes:
        sequence: Its place in the chain.
        audit_id: Its id.
        timestamp: When it happened: RFC 3339, UTC.
        user_id: Who did it.
        action: What was done.
        outcome: How it ended.
        details: Description for people.
        resource: What was acted on.
        row_count: Rows read or written.
        ip_address: Where the request came from.
        door: The front end it came through.
        request_id: The request it belongs to.
    """

    sequence: int
    audit_id: str
    timestamp: str
    user_id: str
    action: str
    outcome: str
    details: str | None = None
    resource: str | None = None
    row_count: int | None = None
    ip_address: str | None = None
    door: str = ""
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Some entries, and how to go on.

    Attributes:
        entries: The entries, newest first.
        next_page: Hand this to the next call; None if these were the last.
    """

    entries: tuple[AuditRecord, ...]
    next_page: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingSummary:
    """What a user is billed for in a period.

    Attributes:
        user_id: The user.
        period_start: First UTC day, `YYYY-MM-DD`.
        period_end: Last UTC day.
        total_actions: How many billable actions.
        total_rows: How many rows they read or wrote.
        actions_by_type: How many of each kind that occurred.
    """

    user_id: str
    period_start: str
    period_end: str
    total_actions: int
    total_rows: int
    actions_by_type: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditProblem:
    """One thing that is wrong with the audit log.

    Attributes:
        sequence: At which entry; for a gap the first that is gone.
        kind: What kind of thing.
        message: In words.
    """

    sequence: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification of the audit log found.

    Attributes:
        version: The version of the table that was read.
        entries: Rows in it.
        erased: Entries whose personal fields were erased.
        head_sequence: Number of the last entry; 0 if there is none.
        head_hash: Its hash, in hex.
        problems: What is wrong, by sequence; empty if the log is whole.
    """

    version: int
    entries: int
    erased: int
    head_sequence: int
    head_hash: str
    problems: tuple[AuditProblem, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(VersionInfo):
    """One commit of a table, which can be read like a dictionary too: `entry["version"]`."""

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def keys(self) -> Iterator[str]:
        """Return the names of what it tells, so that `dict(entry)` works."""
        return iter(self)
