"""The audit log asked of a server, as who is signed in there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pyarrow as pa

from lakehouse_platform.cli.accounts import Conditions, Facts, facts
from lakehouse_platform.cli.row_source import RowSource
from lakehouse_platform.cli.server_sign_in import ServerSignIn
from lakehouse_platform.client.records import AuditRecord
from lakehouse_platform.model.actions import ActionType

# The most that the server gives at once.
_PAGE = 10_000
_NUMBERS = frozenset({"sequence", "row_count"})
_SCHEMA: pa.Schema = pa.schema(
    [
        (field.name, pa.int64() if field.name in _NUMBERS else pa.string())
        for field in dataclasses.fields(AuditRecord)
    ]
)


class ServerReports:
    """See `Reports`."""

    # Each look is a request, and an entry in the audit log.
    pause = 5.0

    def __init__(self, sign_in: ServerSignIn) -> None:
        self._sign_in = sign_in

    def search(self, conditions: Conditions, *, limit: int, after: int = 0) -> list[Facts]:
        """Return the entries that fit, in their order."""
        found = self._sign_in.ask(
            lambda client: client.search(limit=limit, after=after, **conditions.typed())
        )
        return [facts(record) for record in found]

    def watch(self, conditions: Conditions, *, after: int) -> Callable[[], list[Facts]]:
        """Return what gives the entries that have come after a sequence number since it was last called.

        The looks themselves are left out: each would find the one before.
        """
        kept = self._sign_in.current()
        me = kept.user_id if kept else ""
        last = after

        def newer() -> list[Facts]:
            nonlocal last
            found = self.search(conditions, limit=1000, after=last)
            last = found[-1]["sequence"] if found else last
            return [entry for entry in found if not _is_look(entry, me)]

        return newer

    def activity(
        self, user_id: str, since: str | None, until: str | None, limit: int, page: str | None
    ) -> tuple[list[Facts], str | None]:
        """Return what a user did, newest first, and where the next page begins."""
        found = self._sign_in.ask(lambda client: client.activity(user_id, since, until, limit, page))
        return [facts(record) for record in found.entries], found.next_page

    def billing_summary(self, user_id: str, start: str, end: str) -> Facts:
        """Return what a user is billed for."""
        return facts(self._sign_in.ask(lambda client: client.billing_summary(user_id, start, end)))

    def verify(self) -> Facts:
        """Check the whole log."""
        found = self._sign_in.ask(lambda client: client.verify_audit())
        return {"is_whole": found.is_whole, **facts(found)}

    def export(self, conditions: Conditions) -> RowSource:
        """Return all entries that fit, in their order, as a stream."""
        return _Entries(lambda after: self.search(conditions, limit=_PAGE, after=after))


class _Entries:
    """Entries, fetched a page at a time while they are read."""

    schema = _SCHEMA

    def __init__(self, page_after: Callable[[int], list[Facts]]) -> None:
        self._page_after = page_after

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        return pa.RecordBatchReader.from_batches(_SCHEMA, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        after = 0
        while page := self._page_after(after):
            yield pa.RecordBatch.from_pylist(page, schema=_SCHEMA)
            after = page[-1]["sequence"]


def _is_look(entry: Facts, me: str) -> bool:
    return (entry["user_id"], entry["action"], entry["details"]) == (
        me,
        ActionType.ADMIN_ACTION.value,
        "search",
    )
