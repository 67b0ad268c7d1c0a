"""Operations on the audit log of the asynchronous client."""

from __future__ import annotations

from abc import abstractmethod

from lakehouse_platform.client import audit_calls as calls
from lakehouse_platform.client.audit_calls import Moment
from lakehouse_platform.client.records import AuditPage, AuditRecord, BillingSummary, Verification
from lakehouse_platform.client.requests import Call, T
from lakehouse_platform.model.actions import ActionType, Outcome

# As many as the reports themselves give if nothing is said.
_LIMIT = 100


class AsyncAuditOperations:
    """The part of the client that is about the audit log; names, arguments and errors are those of `AuditActor`."""

    @abstractmethod
    async def _run(self, call: Call[T]) -> T:
        """Go through one operation."""

    async def log(
        self,
        action: ActionType,
        *,
        user_id: str | None = None,
        details: str | None = None,
        row_count: int | None = None,
        resource: str | None = None,
    ) -> str:
        """Record an entry by hand and return its id once it is durable; without a user it is one's own."""
        return await self._run(calls.log(action, user_id, details, row_count, resource))

    async def activity(
        self,
        user_id: str,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = _LIMIT,
        page: str | None = None,
    ) -> AuditPage:
        """Return what a user did, newest first.

        Args:
            user_id: Who.
            since: First instant or UTC day; None for no beginning.
            until: Last instant or UTC day; None for no end.
            limit: The most entries to return.
            page: `next_page` of the page before; None for the first.
        """
        return await self._run(calls.activity(user_id, since, until, limit, page))

    async def billing_summary(self, user_id: str, start: str, end: str) -> BillingSummary:
        """Return what a user is billed for from one UTC day to another."""
        return await self._run(calls.billing_summary(user_id, start, end))

    async def search(
        self,
        *,
        action: ActionType | None = None,
        user_id: str | None = None,
        outcome: Outcome | None = None,
        resource: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = _LIMIT,
        after: int = 0,
    ) -> list[AuditRecord]:
        """Return the entries that fit, in the order in which they were chained, those after a sequence number."""
        return await self._run(calls.search(action, user_id, outcome, resource, since, until, limit, after))

    async def verify_audit(self) -> Verification:
        """Read the whole audit log and return what is wrong with it."""
        return await self._run(calls.verify_audit())
