"""The thread that moves entries from the journals to the tables: its own journal's, and those of writers that died."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

from lakehouse_platform.audit.delivery import AUDIT_LOG, USER_ACTIONS, Delivery, Numbered
from lakehouse_platform.audit.entries import Recorded
from lakehouse_platform.audit.journal import Journal
from lakehouse_platform.audit.segments import SEGMENT_SUFFIX
from lakehouse_platform.audit.writers import WriterLock, writers
from lakehouse_platform.errors import AuditWriteFailedError, StorageIoError
from lakehouse_platform.store.tables import SYSTEM_TABLES

_log = logging.getLogger(__name__)
# After a failure: the storage that is away is asked again after a second, later once a minute.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0


class Mover:
    """Moves entries in the background: a commit when the oldest entry has waited long enough, or on demand.

    The thread starts with the first entry, and at once if a dead writer left something.
    """

    def __init__(
        self, directory: Path, journal: Journal, delivery: Delivery, *, interval_s: float, batch_entries: int
    ) -> None:
        self._directory = directory
        self._journal = journal
        self._delivery = delivery
        self._interval_s = interval_s
        self._batch_entries = batch_entries
        self._changed = threading.Condition()
        self._due_at: float | None = None
        self._flushes: list[Future[None]] = []
        self._is_stopping = False
        self._failures = 0
        self._has_tables = False
        self._thread: threading.Thread | None = None
        if any(directory.glob(f"*{SEGMENT_SUFFIX}")):
            self.notice()

    def notice(self) -> None:
        """Say that the journal has entries: they are moved soon."""
        is_much = self._journal.waiting_count >= self._batch_entries
        with self._changed:
            if self._is_stopping:
                return
            self._start()
            wanted = time.monotonic() + (0 if is_much else self._interval_s)
            # While the storage is away, new entries do not make it be asked more often.
            if self._due_at is None or (wanted < self._due_at and not self._failures):
                self._due_at = wanted
                self._changed.notify_all()

    def flush(self) -> None:
        """Return when the tables have everything that was acknowledged before this call.

        Raises:
            AuditWriteFailedError: They could not be written; the entries are kept in the journal and tried again.
        """
        done = Future[None]()
        with self._changed:
            if self._is_stopping:
                raise AuditWriteFailedError("The audit log is closed: open a new one to flush.")
            self._start()
            self._flushes.append(done)
            self._changed.notify_all()
        done.result()

    def stop(self) -> None:
        """Move what is left and end the thread.

        Raises:
            AuditWriteFailedError: The tables could not be written; the entries are kept for the next writer.
        """
        done = Future[None]()
        with self._changed:
            if self._is_stopping:
                return
            self._is_stopping = True
            thread = self._thread
            self._flushes.append(done)
            self._changed.notify_all()
        if thread is not None:
            thread.join()
            done.result()

    def _start(self) -> None:
        if self._thread is None:
            # A daemon: what it has not moved when the program ends is in the journal.
            self._thread = threading.Thread(target=self._run, name="lakehouse-audit", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            flushes, is_last = self._wait()
            failure = self._round()
            for done in flushes:
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(_not_moved(self._directory, failure))

    def _wait(self) -> tuple[list[Future[None]], bool]:
        with self._changed:
            while not self._flushes and not self._is_stopping:
                left = None if self._due_at is None else self._due_at - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            self._due_at = None
            flushes, self._flushes = self._flushes, []
            return flushes, self._is_stopping

    def _round(self) -> Exception | None:
        """Move what there is; return why it could not be moved."""
        try:
            self._move_all()
        except Exception as error:  # noqa: BLE001 - the thread must go on; flush, close and the program's log tell it
            self._failures += 1
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (self._failures - 1))
            _log.warning("Audit entries wait in the journal: %s", type(error).__name__)
            with self._changed:
                self._due_at = time.monotonic() + pause
            return error
        self._failures = 0
        return None

    def _move_all(self) -> None:
        if not self._has_tables:
            for name in (AUDIT_LOG, USER_ACTIONS):
                self._delivery.store.ensure(SYSTEM_TABLES[name])
            self._has_tables = True
        last = self._journal.last
        while records := [one for one in self._journal.waiting(self._batch_entries) if one[0] <= last]:
            self._delivery.deliver(self._journal.writer, _decoded(records, self._directory))
            self._journal.landed(records[-1][0])
        for writer in writers(self._directory):
            if writer != self._journal.writer:
                self._replay(writer)

    def _replay(self, writer: str) -> None:
        """Move what a dead writer left; one that lives is let be."""
        lock = WriterLock.take(self._directory, writer)
        if lock is None:
            return
        try:
            last = 0
            for records in _batches(lock.records(), self._batch_entries):
                self._delivery.deliver(writer, _decoded(records, self._directory))
                last = records[-1][0]
            count = lock.count()
            if count is None and not last:
                lock.discard()
            elif count is None:
                # A table remembers every name for good: the next writer takes this one.
                lock.set_free(last)
            elif lock.segments():
                # A power failure brought back what was deleted.
                lock.set_free(max(count, last))
        finally:
            lock.close()


def _batches(records: Iterator[tuple[int, bytes]], most: int) -> Iterator[list[tuple[int, bytes]]]:
    while batch := list(islice(records, most)):
        yield batch


def _decoded(records: Sequence[tuple[int, bytes]], directory: Path) -> list[Numbered]:
    try:
        return [(number, Recorded.from_bytes(data)) for number, data in records]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageIoError(
            f"The audit journal in {directory} holds an entry that this version cannot read ({error}): "
            "run the version that wrote it once, so that it moves its entries.",
            path=str(directory),
        ) from error


def _not_moved(directory: Path, cause: Exception) -> AuditWriteFailedError:
    return AuditWriteFailedError(
        f"Audit entries could not be moved to their table yet ({cause}). They are safe in {directory} and will be "
        "tried again; look at the lakehouse's storage.",
        path=str(directory),
    )
