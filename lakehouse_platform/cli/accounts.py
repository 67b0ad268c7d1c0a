"""What the commands ask about accounts and the audit log, whether the lakehouse itself answers or a server.

Answers are plain values, with the names that the HTTP API gives them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lakehouse_platform.model.actions import ActionType, Outcome

if TYPE_CHECKING:
    from lakehouse_platform.cli.row_source import RowSource

Facts: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UserPage:
    """Some of the accounts.

    Attributes:
        users: In the order of their ids.
        next_after: Where the next page begins; None on the last one.
    """

    users: Sequence[Facts]
    next_after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Which entries of the audit log are wanted; None for no condition.

    Attributes:
        action: Kind of action.
        user_id: Who acted.
        outcome: How it ended.
        resource: On which table or object.
        since: First instant or UTC day.
        until: Last instant or UTC day.
    """

    action: str | None = None
    user_id: str | None = None
    outcome: str | None = None
    resource: str | None = None
    since: str | None = None
    until: str | None = None

    def typed(self) -> dict[str, Any]:
        """Return the conditions that there are, as the reports take them."""
        given = {name: value for name, value in facts(self).items() if value is not None}
        kinds = {"action": ActionType, "outcome": Outcome}
        return {name: kinds[name](value) if name in kinds else value for name, value in given.items()}


def facts(record: Any, names: Sequence[str] | None = None) -> Facts:
    """Return a record as plain values.

    Args:
        record: A data class.
        names: Only these of its fields; None for all.
    """
    chosen = names or [field.name for field in dataclasses.fields(record)]
    return {name: _plain(getattr(record, name)) for name in chosen}


class Accounts(Protocol):
    """Accounts, asked as who is signed in there. Every method raises what `AuthActor`'s of the same name does."""

    def whoami(self) -> Facts:
        """Return who acts, where, and through which door."""
        ...

    def login(self, login: str, password: str) -> Facts:
        """Sign in, keep the sign-in for the next commands, and return who it is."""
        ...

    def logout(self) -> bool:
        """End the sign-in and forget it; tell whether there was one."""
        ...

    def change_password(self, current: str, new: str) -> Facts:
        """Change the password of who is signed in."""
        ...

    def access_token(self) -> str:
        """Return the access token of who is signed in."""
        ...

    def mount_ticket(self) -> str:
        """Return the ticket with which who is signed in mounts tables."""
        ...

    def verify(self, token: str) -> Facts:
        """Return what an access token says."""
        ...

    def register(self, username: str, email: str, password: str, tier: str) -> Facts:
        """Make an account."""
        ...

    def bootstrap(self, username: str, email: str, password: str) -> Facts:
        """Make the first superadmin."""
        ...

    def users(self, *, after: str = "", limit: int = 100) -> UserPage:
        """Return a page of the accounts."""
        ...

    def user(self, user_id: str) -> Facts:
        """Return an account."""
        ...

    def move(self, verb: str, user_id: str) -> Facts:
        """Approve, reject, disable or enable an account."""
        ...

    def change_role(self, user_id: str, role: str) -> Facts:
        """Give a user another role."""
        ...

    def change_tier(self, user_id: str, tier: str) -> Facts:
        """Give a user another subscription."""
        ...

    def set_password(self, user_id: str, password: str) -> Facts:
        """Give a user a new password."""
        ...

    def sessions(self, user_id: str) -> list[Facts]:
        """Return a user's sign-ins."""
        ...

    def end_sessions(self, user_id: str) -> int:
        """End all sign-ins of a user and return how many there were."""
        ...

    def end_session(self, user_id: str, session_id: str) -> bool:
        """End one sign-in and tell whether it had not ended before."""
        ...

    def usage(self, user_id: str) -> Facts:
        """Return how much of the limits a user has used up."""
        ...

    def reset_usage(self, user_id: str) -> None:
        """Forget what a user has used up."""
        ...

    def override_limits(self, user_id: str, per_minute: int | None, per_day: int | None) -> None:
        """Give a user limits in place of the tier's."""
        ...

    def follow_tier(self, user_id: str) -> None:
        """Give a user the limits of the tier again."""
        ...

    def grants(self, user_id: str) -> list[Facts]:
        """Return a user's rights on tables."""
        ...

    def grant(self, user_id: str, table: str, right: str) -> Facts:
        """Give a user a right on a table."""
        ...

    def revoke_grant(self, user_id: str, table: str) -> bool:
        """Take a user's right on a table away and tell whether there was one."""
        ...

    def create_service_account(self, name: str, role: str, tier: str) -> Facts:
        """Make an account for a program."""
        ...

    def create_key(self, user_id: str, label: str, scopes: Sequence[str], days: int | None) -> Facts:
        """Make an API key for a program's account; only here is it told."""
        ...

    def keys(self, user_id: str) -> list[Facts]:
        """Return the keys of a program's account."""
        ...

    def revoke_key(self, user_id: str, key_id: str) -> bool:
        """Make a key void and tell whether it was not before."""
        ...


class Reports(Protocol):
    """The audit log, asked as who is signed in there. Every method raises what `AuditAccess`'s does.

    Attributes:
        pause: Seconds between two looks of one who watches the log.
    """

    pause: float

    def search(self, conditions: Conditions, *, limit: int, after: int = 0) -> list[Facts]:
        """Return the entries that fit, in their order."""
        ...

    def watch(self, conditions: Conditions, *, after: int) -> Callable[[], list[Facts]]:
        """Return what gives the entries that have come after a sequence number since it was last called."""
        ...

    def activity(
        self, user_id: str, since: str | None, until: str | None, limit: int, page: str | None
    ) -> tuple[list[Facts], str | None]:
        """Return what a user did, newest first, and where the next page begins."""
        ...

    def billing_summary(self, user_id: str, start: str, end: str) -> Facts:
        """Return what a user is billed for."""
        ...

    def verify(self) -> Facts:
        """Check the whole log."""
        ...

    def export(self, conditions: Conditions) -> RowSource:
        """Return all entries that fit, in their order, as a stream."""
        ...


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if dataclasses.is_dataclass(value):
        return facts(value)
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
