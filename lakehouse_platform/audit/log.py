"""The audit log as a writer sees it: record an entry, and when the call returns it is durable."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Self

from lakehouse_platform.audit.delivery import Delivery
from lakehouse_platform.audit.entries import AuditEntry, Recorded, take, utc_now
from lakehouse_platform.audit.heads import RememberedHead
from lakehouse_platform.audit.journal import Journal
from lakehouse_platform.audit.mover import Mover
from lakehouse_platform.errors import AuditWriteFailedError
from lakehouse_platform.private_files import private_directory
from lakehouse_platform.store.delta_store import DeltaStore

_MB = 2**20
# Submitted entries that are not on the disk yet: a hundred syncs' worth when each takes a hundred along.
_MOST_SUBMITTED = 10_000

_Submitted = tuple[Recorded, "Future[str]"]


class AuditLog:
    """One writer of a lakehouse's audit log; safe to share between threads, a context manager that closes it.

    An entry is acknowledged once it is in a journal on the local disk. A background thread moves the journal to the
    table. What a process left behind that died is moved by the next audit log with the same state directory.

    Attributes:
        store: The lakehouse.
        remembered: The end of the chain as this machine knows it.
    """

    def __init__(
        self,
        store: DeltaStore,
        state_dir: Path,
        *,
        interval_s: float = 1.0,
        batch_entries: int = 20_000,
        capacity_mb: int = 64,
        room_timeout_s: float = 30.0,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Open the log; the tables are first touched when entries are moved.

        Args:
            store: The lakehouse.
            state_dir: Private directory on a local disk, shared by all processes of this user on this lakehouse.
            interval_s: How long an entry waits for others, and so how often there is a commit at most.
            batch_entries: So many entries are moved without waiting, and at most so many in one commit.
            capacity_mb: How many MB of entries may wait for the table.
            room_timeout_s: How long a caller waits if more would wait.
            now: The time.

        Raises:
            StoragePermissionError, StorageIoError: The state directory cannot be used.
        """
        directory = private_directory(state_dir)
        self.store = store
        self.remembered = RememberedHead(directory)
        self._now = now
        self._journal = Journal(directory, capacity_bytes=capacity_mb * _MB, room_timeout_s=room_timeout_s)
        self._mover = Mover(
            directory,
            self._journal,
            Delivery(store, self.remembered),
            interval_s=interval_s,
            batch_entries=batch_entries,
        )
        self._submitting = threading.Lock()
        self._submitted: list[_Submitted] = []
        self._free = threading.BoundedSemaphore(_MOST_SUBMITTED)
        self._writer = ThreadPoolExecutor(1, "lakehouse-audit-submit")

    def record(self, entry: AuditEntry) -> str:
        """Return the entry's id once it is durable.

        Raises:
            AuditWriteFailedError: It could not be made durable: refuse the operation that it is about.
        """
        return self.record_all([entry])[0]

    def record_all(self, entries: Sequence[AuditEntry]) -> list[str]:
        """Return the ids of several entries once all of them are durable.

        Raises:
            AuditWriteFailedError: They could not be made durable.
        """
        recorded = [take(entry, self._now) for entry in entries]
        self._append(recorded)
        return [one.audit_id for one in recorded]

    def submit(self, entry: AuditEntry) -> Future[str]:
        """Return at once with the promise of the entry's id, kept when it is durable.

        Waits only while very many promises are open.

        Raises:
            AuditWriteFailedError: The log is closed.
        """
        self._journal.check_owner()
        submitted = (take(entry, self._now), Future[str]())
        # An entry cannot be taken back, and a promise that was taken back would leave all others unanswered.
        submitted[1].set_running_or_notify_cancel()
        self._free.acquire()
        with self._submitting:
            try:
                # One task takes along all that is submitted until it has begun.
                if not self._submitted:
                    self._writer.submit(self._append_submitted)
            except RuntimeError as error:
                self._free.release()
                raise AuditWriteFailedError(
                    "The audit log is closed: open a new one to record entries."
                ) from error
            self._submitted.append(submitted)
        return submitted[1]

    @property
    def waiting_count(self) -> int:
        """How many acknowledged entries wait for the table."""
        return self._journal.waiting_count

    def check_writable(self) -> None:
        """Make sure that an entry could be recorded now, without recording one.

        Raises:
            AuditWriteFailedError: It could not.
        """
        self._journal.check_writable()

    def flush(self) -> None:
        """Return when the tables have everything acknowledged before this call, and what dead writers left.

        Raises:
            AuditWriteFailedError: They could not be written; nothing is lost, and it is tried again.
        """
        self._journal.check_owner()
        self._mover.flush()

    def close(self) -> None:
        """Move everything to the tables and end; a closed log stays closed.

        In a process that was forked from the one that opened it nothing happens.

        Raises:
            AuditWriteFailedError: The tables could not be written; the entries are kept for the next audit log.
        """
        if self._journal.is_anothers:
            return
        self._writer.shutdown()
        try:
            self._mover.stop()
        finally:
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, recorded: Sequence[Recorded]) -> None:
        if recorded:
            self._journal.append([one.to_bytes() for one in recorded])
            self._mover.notice()

    def _append_submitted(self) -> None:
        """Make all durable that were submitted meanwhile, with one sync."""
        with self._submitting:
            taken, self._submitted = self._submitted, []
        if not taken:
            return
        try:
            self._append([recorded for recorded, _ in taken])
        except Exception as error:  # noqa: BLE001 - every promise is answered, whatever it was
            for _, promise in taken:
                promise.set_exception(error)
        else:
            for recorded, promise in taken:
                promise.set_result(recorded.audit_id)
        self._free.release(len(taken))
