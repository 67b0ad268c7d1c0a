"""The audit log's face: record what was done, and ask what was done."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Self

from lakehouse_platform.audit import reports
from lakehouse_platform.audit.delivery import AUDIT_LOG, USER_ACTIONS
from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.periods import Moment
from lakehouse_platform.audit.reports import AuditRecord, BillingSummary, Page
from lakehouse_platform.audit.verify import Verification, verify
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.private_files import state_directory
from lakehouse_platform.store.delta_store import DeltaStore

# Below the state directory of the lakehouse.
AUDIT_DIRECTORY = "audit"


class AuditActor:
    """The audit log of a lakehouse; safe to share between threads, a context manager that closes it.

    An entry is durable when `log` returns. Reports see everything that was recorded before them: they first move it to
    the tables.

    Attributes:
        store: The lakehouse.

    Example:
        >>> with AuditActor(store) as audit:  # doctest: +SKIP
        ...     audit.log(AuditEntry(action=ActionType.DATA_EXPORT, user_id="user_123", row_count=1_000_000))
        ...     audit.billing_summary("user_123", "2026-02-01", "2026-02-28").total_rows
    """

    def __init__(self, store: DeltaStore, *, state_dir: Path | None = None) -> None:
        """Open the audit log.

        Args:
            store: The lakehouse.
            state_dir: Where the journal is, on a local disk; None for `audit` in the lakehouse's state directory.

        Raises:
            StoragePermissionError, StorageIoError: The state directory cannot be used.
        """
        self.store = store
        base = state_dir or state_directory(store.config.state_path, store.base.uri) / AUDIT_DIRECTORY
        self._log = AuditLog(store, base)

    @property
    def writer(self) -> AuditLog:
        """What the other services record their operations with."""
        return self._log

    def log(self, entry: AuditEntry) -> str:
        """Record an entry and return its id once it is durable.

        Raises:
            AuditWriteFailedError: It is not recorded: refuse the operation that it is about.
        """
        return self._log.record(entry)

    def submit(self, entry: AuditEntry) -> Future[str]:
        """Record an entry without waiting: the promise of its id is kept once it is durable.

        Raises:
            AuditWriteFailedError: The log is closed.
        """
        return self._log.submit(entry)

    def activity(
        self,
        user_id: str,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = reports.DEFAULT_LIMIT,
        page: str | None = None,
    ) -> Page:
        """Return what a user did, newest first; see `reports.activity`."""
        self._log.flush()
        return reports.activity(self.store.table(AUDIT_LOG), user_id, since, until, limit, page)

    def billing_summary(self, user_id: str, start: str, end: str) -> BillingSummary:
        """Return what a user is billed for from one UTC day to another; see `reports.billing_summary`."""
        self._log.flush()
        return reports.billing_summary(self.store.table(USER_ACTIONS), user_id, start, end)

    def search(
        self,
        *,
        action: ActionType | None = None,
        user_id: str | None = None,
        outcome: Outcome | None = None,
        resource: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = reports.DEFAULT_LIMIT,
        after: int = 0,
    ) -> list[AuditRecord]:
        """Return the entries that fit, in the order in which they were chained; see `reports.search`."""
        self._log.flush()
        return reports.search(
            self.store.table(AUDIT_LOG),
            action=action,
            user_id=user_id,
            outcome=outcome,
            resource=resource,
            since=since,
            until=until,
            limit=limit,
            after=after,
        )

    def verify(self) -> Verification:
        """Read the whole audit log and return what is wrong with it; nothing if it is as it was written.

        The end is compared with what the newest commit tells and with what this machine remembers.

        Raises:
            StorageIoError: What this machine remembers is damaged.
        """
        self._log.flush()
        # Read before the table's version is: an entry that arrives in between must not look cut off.
        remembered, lost = self._log.remembered.read(), self._log.remembered.lost()
        return verify(self.store.table(AUDIT_LOG), remembered, lost)

    def flush(self) -> None:
        """Return when everything recorded before is in the tables.

        Raises:
            AuditWriteFailedError: It is not yet; nothing is lost, and it is tried again.
        """
        self._log.flush()

    def close(self) -> None:
        """Move everything to the tables and end.

        Raises:
            AuditWriteFailedError: The tables could not be written; the entries are kept for the next audit log.
        """
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
