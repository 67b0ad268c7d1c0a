"""The audit log for those who are not the owner of the files: the same reports, each through the gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.periods import Moment
from lakehouse_platform.audit.reports import DEFAULT_LIMIT, AuditRecord, BillingSummary, Page
from lakehouse_platform.audit.verify import Verification
from lakehouse_platform.identity.permissions import Permission, allows
from lakehouse_platform.model.actors import OWNER, Actor
from lakehouse_platform.services.audit_export import AuditExport
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.services.gate import Gate, Note
from lakehouse_platform.services.ownership import own_or_other, upon


class AuditAccess:
    """Reports of the audit log for an actor. Safe to share between threads.

    Users see what they did themselves and what they are billed for; administrators see everything. Each operation
    raises `PermissionDeniedError`, `RateLimitedError` and `AuditWriteFailedError` as the gate does, and what the
    operation of `AuditActor` raises that it stands for.
    """

    def __init__(self, audit: AuditActor, gate: Gate) -> None:
        """Put the parts together.

        Args:
            audit: The audit log.
            gate: What every report goes through.
        """
        self._audit = audit
        self._gate = gate

    def log(self, entry: AuditEntry, *, actor: Actor = OWNER) -> str:
        """Record an entry by hand; see `AuditActor.log`."""
        return self._gate.run(actor, Permission.WRITE_AUDIT, None, lambda _: self._audit.log(entry))

    def activity(
        self,
        user_id: str,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = DEFAULT_LIMIT,
        page: str | None = None,
        *,
        actor: Actor = OWNER,
    ) -> Page:
        """Return what a user did, newest first; see `AuditActor.activity`."""

        def act(note: Note) -> Page:
            found = self._audit.activity(user_id, since, until, limit, page)
            note.row_count = len(found.entries)
            return found

        return self._gate.run(
            actor, _reading(actor, user_id), None, act, details=f"activity of {upon(user_id)}"
        )

    def billing_summary(self, user_id: str, start: str, end: str, *, actor: Actor = OWNER) -> BillingSummary:
        """Return what a user is billed for; see `AuditActor.billing_summary`."""
        return self._gate.run(
            actor,
            _reading(actor, user_id),
            None,
            lambda _: self._audit.billing_summary(user_id, start, end),
            details=f"bill of {upon(user_id)}",
        )

    def search(self, *, actor: Actor = OWNER, **conditions: Any) -> list[AuditRecord]:
        """Return the entries that fit; see `AuditActor.search` for the conditions."""

        def act(note: Note) -> list[AuditRecord]:
            found = self._audit.search(**conditions)
            note.row_count = len(found)
            return found

        return self._gate.run(actor, Permission.READ_AUDIT, None, act, details="search")

    def watch(self, *, actor: Actor = OWNER, **conditions: Any) -> Callable[[Actor, int], list[AuditRecord]]:
        """Return what finds the entries after a sequence number, for one who looks again and again.

        That somebody watches is one entry in the audit log, not one for each look: every look would find the entry of
        the look before.

        Args:
            actor: Who begins to watch.
            conditions: See `search`.

        Returns:
            A function of who looks, which may have lost the permission meanwhile, and of the sequence number.
        """

        def look(who: Actor, after: int) -> list[AuditRecord]:
            if not allows(who, Permission.READ_AUDIT):
                return self.search(actor=who, after=after, **conditions)  # which the gate refuses and records
            return self._audit.search(after=after, **conditions)

        return self._gate.run(actor, Permission.READ_AUDIT, None, lambda _: look, details="watching")

    def export(self, *, actor: Actor = OWNER, **conditions: Any) -> AuditExport:
        """Return the entries that fit, as a stream; see `AuditActor.search` for the conditions.

        Nothing is read, and nobody is asked, before the stream is.
        """
        return AuditExport(self._audit, self._gate, actor, conditions)

    def verify(self, *, actor: Actor = OWNER) -> Verification:
        """Check the whole audit log; see `AuditActor.verify`."""

        def act(note: Note) -> Verification:
            found = self._audit.verify()
            note.row_count = found.entries
            return found

        return self._gate.run(actor, Permission.READ_AUDIT, None, act, details="verification")


def _reading(actor: Actor, user_id: str) -> Permission:
    return own_or_other(actor, user_id, Permission.SEE_OWN_ACCOUNT, Permission.READ_AUDIT)
