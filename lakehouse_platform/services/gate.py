"""The gate: the only place that decides whether an operation may happen, and that writes it into the audit log.

Authorise, count towards the user's limit, act, audit. What is sensitive is in the audit log before it is done: if it
cannot be written there, it is not done.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol, Self, TypeVar

from lakehouse_platform.audit.entries import MOST_DETAILS, AuditEntry
from lakehouse_platform.errors import AuthError, LakehouseError, PermissionDeniedError, RateLimitedError
from lakehouse_platform.identity.grants import EVERY_TABLE, Grants
from lakehouse_platform.identity.permissions import RULES, Permission, Right, Rule, allows
from lakehouse_platform.identity.throttle import network_of
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import Actor, SubscriptionTier
from lakehouse_platform.model.names import check_table_name, is_table_name
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.services.sparse import Sparse

_T = TypeVar("_T")

# Who is over the limit, or may not at all, may knock thousands of times a second; this many in a minute tell as much.
_MOST_REFUSALS = 10
# Anybody may ask, and nothing slows them down, as it does those who guess passwords.
_ON_TOKENS = frozenset({Permission.REFRESH, Permission.LOGOUT})


class Recorder(Protocol):
    """Where entries go: the audit log."""

    def record(self, entry: AuditEntry) -> str:
        """Return the entry's id once it is durable."""
        ...

    def check_writable(self) -> None:
        """Make sure that an entry could be recorded now.

        Raises:
            AuditWriteFailedError: It could not.
        """
        ...


class Counter(Protocol):
    """What counts the requests of who has a subscription."""

    def take(self, user_id: str, tier: SubscriptionTier, now: datetime) -> object:
        """Count one request.

        Raises:
            RateLimitedError: The limit is reached.
        """
        ...


@dataclass(slots=True)
class Note:
    """What an operation tells about itself while it runs, for the audit log.

    Attributes:
        user_id: Who acted, if that is known better than the gate does: at a sign-in.
        details: Description for people; may hold ids of users, never a secret.
        row_count: Rows read or written.
        action: What the audit log calls it; None for what the permission's rule says.
        resource: The table that it concerns, where only the operation finds that out.
    """

    user_id: str | None = None
    details: str | None = None
    row_count: int | None = None
    action: ActionType | None = None
    resource: str | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """One operation on its way through the gate."""

    actor: Actor
    permission: Permission
    resource: str | None
    note: Note
    began: float = field(default=0.0)
    asks_by_table: bool = False

    @property
    def rule(self) -> Rule:
        return RULES[self.permission]


class Passage:
    """An operation that was let through and whose end is still to be written down: by `done` or by `failed`.

    Attributes:
        note: What the operation tells about itself.
    """

    def __init__(self, gate: Gate, case: _Case) -> None:
        self._gate = gate
        self._case = case
        self._is_started = False
        self.note = case.note

    def require(self, table: str) -> None:
        """Refuse to go on with an operation that was let through before its tables were known.

        Raises:
            PermissionDeniedError: Its actor may not do it on this table, whether or not there is one of that name.
        """
        if not self._gate.may(self._case.actor, self._case.permission, table):
            raise _denied(replace(self._case, resource=table))

    def started(self, resources: Sequence[str] = ()) -> None:
        """Write down that it begins, if that is not written yet.

        Args:
            resources: The tables that it concerns, one entry for each, where they are several.

        Raises:
            AuditWriteFailedError: The audit log cannot be written: nothing must be done.
        """
        if self._is_started:
            return
        for resource in resources or (None,):
            self._gate.record(self._case, Outcome.STARTED, resource=resource)
        self._is_started = True

    def done(self) -> None:
        """Write down that it is done.

        Raises:
            AuditWriteFailedError: The audit log cannot be written.
        """
        self._gate.record(self._case, Outcome.DONE)

    def failed(self, error: BaseException) -> None:
        """Write down what ended it.

        Raises:
            AuditWriteFailedError: The audit log cannot be written.
        """
        if isinstance(error, RateLimitedError):
            self._gate.record_refusal(self._case, error)
            return
        self.note.action = self._case.rule.failed or self.note.action
        denied = isinstance(error, PermissionDeniedError)
        if self._case.permission in _ON_TOKENS and isinstance(error, AuthError) and not denied:
            self._gate.record_sparsely(self._case, Outcome.FAILED, error.code)
            return
        reason = _reason(error)
        if denied and self._case.asks_by_table:
            self.note.action, self.note.resource = ActionType.PERMISSION_DENIED, _named_table(error)
            reason = self._case.permission
        self._gate.record(self._case, Outcome.DENIED if denied else Outcome.FAILED, reason=reason)


class Gate:
    """Lets operations through. Safe to share between threads."""

    def __init__(
        self,
        audit: Recorder,
        grants: Grants,
        limits: Counter,
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
            InvalidArgumentError: The audit log cannot hold what is told of the actor; nothing was done.
            PermissionDeniedError: The actor may not; nothing was done.
            RateLimitedError: The actor's limit is reached; nothing was done.
            AuditWriteFailedError: The audit log cannot be written. A sensitive operation was not done then; another
                one may have been.
        """
        passage = self.enter(actor, permission, resource, details=details, action=action)
        try:
            result = act(passage.note)
        except BaseException as error:
            passage.failed(error)
            raise
        passage.done()
        return result

    def enter(
        self,
        actor: Actor,
        permission: Permission,
        resource: str | None,
        *,
        details: str | None = None,
        action: ActionType | None = None,
        asks_by_table: bool = False,
    ) -> Passage:
        """Let an operation through whose end comes later, if its actor may do it; see `run`.

        Args:
            actor: Who asks.
            permission: What kind of operation it is.
            resource: The table that it concerns; None if it concerns none, or if it does not know yet.
            details: Description for the audit log.
            action: What the audit log calls it.
            asks_by_table: Whether the operation asks `Passage.require` for each table before it touches it.

        Raises:
            InvalidNameError, InvalidArgumentError, PermissionDeniedError, RateLimitedError, AuditWriteFailedError: See
                `run`.
        """
        if resource is not None and resource != EVERY_TABLE:
            # The audit log keeps it for ever, so it is a name and nothing else that somebody may have typed.
            check_table_name(resource)
        note = Note(details=details, action=action)
        case = _Case(actor, permission, resource, note, self._timer(), asks_by_table)
        # What no entry can hold must not be found out when everything is done.
        self._entry(case, Outcome.STARTED)
        self._authorise(case)
        self._count(case)
        passage = Passage(self, case)
        if case.rule.is_sensitive:
            passage.started()
        return passage

    def may(self, actor: Actor, permission: Permission, resource: str) -> bool:
        """Tell whether an actor may do an operation on a table; nothing is written down."""
        return allows(actor, permission, self._grants.right_of(actor, resource))

    def require(self, actor: Actor, permission: Permission, resource: str, note: Note) -> None:
        """Refuse to go on with an operation that finds out only while it runs that it concerns a further table.

        Args:
            actor: Who asks.
            permission: What kind of operation it is.
            resource: The table.
            note: The operation's, which is told what was denied.

        Raises:
            PermissionDeniedError: The actor may not, whether or not there is such a table.
        """
        if not self.may(actor, permission, resource):
            error = _denied(_Case(actor, permission, resource, note))
            note.action, note.resource = ActionType.PERMISSION_DENIED, _named_table(error)
            raise error

    def note_done(self, actor: Actor, permission: Permission, resource: str, note: Note) -> None:
        """Write down that an operation was done which was let through, but could not be written down then.

        Raises:
            AuditWriteFailedError, StoragePermissionError, StorageIoError: It cannot be yet.
        """
        self.record(_Case(actor, permission, resource, note, self._timer()), Outcome.DONE)

    def check_writable(self) -> None:
        """Refuse to go on if what is done now could not be written down.

        Raises:
            AuditWriteFailedError, StoragePermissionError, StorageIoError: It could not.
        """
        self._audit.check_writable()

    def through(self, origin: Origin) -> Self:
        """Return this gate for operations that come from elsewhere: through another door, with another request."""
        other = copy.copy(self)
        other._origin = origin  # noqa: SLF001 - of a copy of this very object
        return other

    def _authorise(self, case: _Case) -> None:
        right = None
        if case.asks_by_table:
            # Whether there is anything that the actor may do it on; for each table it is asked again.
            right = Right.MAINTAIN
        elif case.rule.right is not None and case.resource is not None:
            right = self._grants.right_of(case.actor, case.resource)
        if allows(case.actor, case.permission, right):
            return
        case.note.action = ActionType.PERMISSION_DENIED
        self.record_sparsely(case, Outcome.DENIED, case.permission)
        raise _denied(case)

    def _count(self, case: _Case) -> None:
        if case.actor.tier is None or case.rule.is_free:
            return
        try:
            self._limits.take(case.actor.id, case.actor.tier, self._clock())
        except RateLimitedError as error:
            self.record_refusal(case, error)
            raise

    def record_refusal(self, case: _Case, error: RateLimitedError) -> None:
        """Write down that a limit was reached, unless that stands there often enough."""
        case.note.action = ActionType.RATE_LIMITED
        self.record_sparsely(case, Outcome.DENIED, f"{case.permission}: {error.code}")

    def record_sparsely(self, case: _Case, outcome: Outcome, reason: str) -> None:
        """Write down a refusal, unless enough of its kind stand there: of who asked, from where, for what.

        What is left out is counted, and told with the next one that is written.
        """
        who, where = case.note.user_id or case.actor.id, network_of(case.actor.ip_address or "")
        kind = case.note.action or case.rule.action
        # A limit is one for all operations, so its refusals are too.
        what = "" if kind is ActionType.RATE_LIMITED else case.permission
        left_out = self._refusals.admit(f"{who} {where} {kind} {what}", self._clock())
        if left_out is None:
            return
        more = f", {left_out} more left out" if left_out else ""
        self.record(case, outcome, reason=reason + more)

    def record(
        self, case: _Case, outcome: Outcome, *, reason: str | None = None, resource: str | None = None
    ) -> None:
        """Write down how far a case has come."""
        duration_ms = (self._timer() - case.began) * 1000
        self._audit.record(self._entry(case, outcome, reason, resource, duration_ms))

    def _entry(
        self,
        case: _Case,
        outcome: Outcome,
        reason: str | None = None,
        resource: str | None = None,
        duration_ms: float | None = None,
    ) -> AuditEntry:
        note = case.note
        key = case.actor.key_id and f"key {case.actor.key_id}"
        return AuditEntry(
            action=note.action or case.rule.action,
            user_id=note.user_id or case.actor.id,
            details=_details(note.details, reason, key),
            resource=resource or note.resource or case.resource,
            row_count=note.row_count,
            duration_ms=duration_ms,
            ip_address=case.actor.ip_address,
            outcome=outcome,
            door=self._origin.door,
            request_id=case.actor.request_id or self._origin.run_id,
        )


def _details(told: str | None, *ours: str | None) -> str | None:
    """Return what an entry says in words: what the operation told, as far as there is room for it, and our part."""
    ending = "; ".join(filter(None, ours))
    room = MOST_DETAILS - len(ending) - len("; ")
    if told and len(told) > room:
        told = told[: room - 1] + "…"
    return "; ".join(filter(None, (told, ending))) or None


def _reason(error: BaseException) -> str:
    # The code alone: a message may repeat what was typed.
    return error.code if isinstance(error, LakehouseError) else type(error).__name__


def _named_table(error: BaseException) -> str | None:
    name = str(error.details.get("table", "")) if isinstance(error, LakehouseError) else ""
    # A query may name anything, and the audit log keeps it for ever.
    return name if is_table_name(name) else None


def _denied(case: _Case) -> PermissionDeniedError:
    where = f" on {case.resource}" if case.resource is not None else ""
    who = "Nobody is signed in" if case.actor.role is None else f"Your role ({case.actor.role})"
    verb = ": sign in" if case.actor.role is None else " does not allow it: ask an administrator"
    if case.actor.scopes is not None:
        who, verb = (
            "The scopes of this API key",
            ", or the rights of its account, do not allow it: ask an administrator",
        )
    about = {} if case.resource is None else {"table": case.resource}
    return PermissionDeniedError(
        f"You may not {case.rule.meaning}{where}. {who}{verb}.", permission=case.permission.value, **about
    )
