"""The gate: the only place that decides whether an operation may happen, and that writes it into the audit log.

Authorise, count towards the user's limit, act, audit. What is sensitive is in the audit log before it is done: if it
cannot be written there, it is not done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.errors import LakehouseError, PermissionDeniedError, RateLimitedError
from lakehouse_platform.identity.grants import EVERY_TABLE, Grants
from lakehouse_platform.identity.limits import Limits
from lakehouse_platform.identity.permissions import RULES, Permission, Rule, allows
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.model.names import check_table_name
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.services.sparse import Sparse

_T = TypeVar("_T")

# Who is over the limit may knock thousands of times a second; this many of them in a minute tell as much.
_MOST_REFUSALS = 10


class Recorder(Protocol):
    """Where entries go: the audit log."""

    def record(self, entry: AuditEntry) -> str:
        """Return the entry's id once it is durable."""
        ...


@dataclass(slots=True)
class Note:
    """What an operation tells about itself while it runs, for the audit log.

    Attributes:
        user_id: Who acted, if that is known better than the gate does: at a sign-in.
        details: Description for people; may hold ids of users, never a secret.
        row_count: Rows read or written.
        action: What the audit log calls it; None for what the permission's rule says.
    """

    user_id: str | None = None
    details: str | None = None
    row_count: int | None = None
    action: ActionType | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """One operation on its way through the gate."""

    actor: Actor
    permission: Permission
    resource: str | None
    note: Note
    began: float = field(default=0.0)

    @property
    def rule(self) -> Rule:
        return RULES[self.permission]


class Gate:
    """Lets operations through. Safe to share between threads."""

    def __init__(
        self,
        audit: Recorder,
        grants: Grants,
        limits: Limits,
        *,
        origin: Origin | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Put the parts together.

        Args:
            audit: Where every operation is recorded.
            grants: Who may do what on which table.
            limits: How much a user may ask for.
            origin: Through which door operations come, and their request.
            clock: The time.
            timer: Seconds that only grow, to measure operations.
        """
        self._audit = audit
        self._grants = grants
        self._limits = limits
        self._origin = origin or Origin()
        self._clock = clock
        self._timer = timer
        self._refusals = Sparse(_MOST_REFUSALS)

    def run(
        self,
        actor: Actor,
        permission: Permission,
        resource: str | None,
        act: Callable[[Note], _T],
        *,
        details: str | None = None,
        action: ActionType | None = None,
    ) -> _T:
        """Do an operation if its actor may, and return its result.

        Args:
            actor: Who asks.
            permission: What kind of operation it is.
            resource: The table that it concerns, `*` for every one; None if it concerns none.
            act: The operation; it is handed the note that it may add to.
            details: Description for the audit log; may hold ids of users, never a secret.
            action: What the audit log calls it, where one permission stands for several actions.

        Raises:
            InvalidNameError: No table can have this name.
            PermissionDeniedError: The actor may not; nothing was done.
            RateLimitedError: The actor's limit is reached; nothing was done.
            AuditWriteFailedError: The audit log cannot be written. A sensitive operation was not done then; another
                one may have been.
        """
        if resource is not None and resource != EVERY_TABLE:
            # The audit log keeps it for ever, so it is a name and nothing else that somebody may have typed.
            check_table_name(resource)
        case = _Case(actor, permission, resource, Note(details=details, action=action), self._timer())
        self._authorise(case)
        self._count(case)
        if case.rule.is_sensitive:
            self._record(case, Outcome.STARTED)
        result = self._attempt(case, act)
        self._record(case, Outcome.DONE)
        return result

    def _authorise(self, case: _Case) -> None:
        right = None
        if case.rule.right is not None and case.resource is not None:
            right = self._grants.right_of(case.actor, case.resource)
        if allows(case.actor, case.permission, right):
            return
        case.note.action = ActionType.PERMISSION_DENIED
        self._record(case, Outcome.DENIED, reason=case.permission)
        raise _denied(case)

    def _count(self, case: _Case) -> None:
        if case.actor.tier is None or case.rule.is_free:
            return
        try:
            self._limits.take(case.actor.id, case.actor.tier, self._clock())
        except RateLimitedError as error:
            self._record_refusal(case, error)
            raise

    def _attempt(self, case: _Case, act: Callable[[Note], _T]) -> _T:
        try:
            return act(case.note)
        except RateLimitedError as error:
            self._record_refusal(case, error)
            raise
        except BaseException as error:
            case.note.action = case.rule.failed or case.note.action
            denied = isinstance(error, PermissionDeniedError)
            self._record(case, Outcome.DENIED if denied else Outcome.FAILED, reason=_reason(error))
            raise

    def _record_refusal(self, case: _Case, error: RateLimitedError) -> None:
        left_out = self._refusals.admit(f"{case.actor.id} {case.actor.ip_address}", self._clock())
        if left_out is not None:
            case.note.action = ActionType.RATE_LIMITED
            more = f", {left_out} more left out" if left_out else ""
            self._record(case, Outcome.DENIED, reason=f"{case.permission}: {error.code}{more}")

    def _record(self, case: _Case, outcome: Outcome, *, reason: str | None = None) -> None:
        note = case.note
        entry = AuditEntry(
            action=note.action or case.rule.action,
            user_id=note.user_id or case.actor.id,
            details="; ".join(text for text in (note.details, reason) if text) or None,
            resource=case.resource,
            row_count=note.row_count,
            duration_ms=(self._timer() - case.began) * 1000,
            ip_address=case.actor.ip_address,
            outcome=outcome,
            door=self._origin.door,
            request_id=self._origin.run_id,
        )
        self._audit.record(entry)


def _reason(error: BaseException) -> str:
    # The code alone: a message may repeat what was typed.
    return error.code if isinstance(error, LakehouseError) else type(error).__name__


def _denied(case: _Case) -> PermissionDeniedError:
    where = f" on {case.resource}" if case.resource is not None else ""
    who = "Nobody is signed in" if case.actor.role is None else f"Your role ({case.actor.role})"
    verb = ": sign in" if case.actor.role is None else " does not allow it: ask an administrator"
    return PermissionDeniedError(
        f"You may not {case.rule.meaning}{where}. {who}{verb}.", permission=case.permission.value
    )
