"""The audit log asked of the lakehouse itself, as who is signed in there or as the owner of the files."""

from __future__ import annotations

from collections.abc import Callable

from lakehouse_platform.cli.accounts import Conditions, Facts, facts
from lakehouse_platform.cli.local_sign_in import LocalSignIn
from lakehouse_platform.cli.row_source import RowSource
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.services.audit_access import AuditAccess


class LocalReports:
    """See `Reports`."""

    # The audit log reaches its table within about a second.
    pause = 1.0

    def __init__(self, sign_in: LocalSignIn) -> None:
        self._sign_in = sign_in

    def search(self, conditions: Conditions, *, limit: int, after: int = 0) -> list[Facts]:
        """Return the entries that fit, in their order."""
        found = self._audit.search(actor=self._actor, limit=limit, after=after, **conditions.typed())
        return [facts(record) for record in found]

    def watch(self, conditions: Conditions, *, after: int) -> Callable[[], list[Facts]]:
        """Return what gives the entries that have come after a sequence number since it was last called."""
        look = self._audit.watch(actor=self._actor, **conditions.typed())
        last = after

        def newer() -> list[Facts]:
            nonlocal last
            # The actor anew each time: when the sign-in ends, so does the watching.
            found = look(self._actor, last)
            last = found[-1].sequence if found else last
            return [facts(record) for record in found]

        return newer

    def activity(
        self, user_id: str, since: str | None, until: str | None, limit: int, page: str | None
    ) -> tuple[list[Facts], str | None]:
        """Return what a user did, newest first, and where the next page begins."""
        found = self._audit.activity(user_id, since, until, limit, page, actor=self._actor)
        return [facts(record) for record in found.entries], found.next_page

    def billing_summary(self, user_id: str, start: str, end: str) -> Facts:
        """Return what a user is billed for."""
        return facts(self._audit.billing_summary(user_id, start, end, actor=self._actor))

    def verify(self) -> Facts:
        """Check the whole log."""
        found = self._audit.verify(actor=self._actor)
        return {"is_whole": found.is_whole, **facts(found), "head_hash": found.head_hash.hex()}

    def export(self, conditions: Conditions) -> RowSource:
        """Return all entries that fit, in their order, as a stream."""
        return self._audit.export(actor=self._actor, **conditions.typed())

    @property
    def _audit(self) -> AuditAccess:
        return self._sign_in.lakehouse.audit

    @property
    def _actor(self) -> Actor:
        return self._sign_in.actor()
