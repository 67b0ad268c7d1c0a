"""What a short-lived process records entries with: they go to the journal, and a later process moves them to the table.

So a command that is over in a moment pays for the journal alone. What many of them left is moved by one of them, so
that it never becomes much.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from lakehouse_platform.audit.entries import AuditEntry, take
from lakehouse_platform.audit.journal import Journal
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.segments import SEGMENT_SUFFIX
from lakehouse_platform.errors import AuditWriteFailedError
from lakehouse_platform.private_files import private_directory
from lakehouse_platform.store.delta_store import DeltaStore

_log = logging.getLogger(__name__)
# One process records a few entries; far more than that means that the table cannot be written.
_CAPACITY_BYTES = 64 * 2**20
_ROOM_TIMEOUT_S = 30.0
# Each that is left takes up to two commits to move, together some tens of milliseconds.
_MOST_LEFT = 32


class Spool:
    """A writer of the audit log that leaves its entries in the journal; safe to share between threads."""

    def __init__(self, store: DeltaStore, state_dir: Path, *, most_left: int = _MOST_LEFT) -> None:
        """Make nothing yet: the journal begins with the first entry.

        Args:
            store: The lakehouse.
            state_dir: Where its audit log has the journal.
            most_left: How many journals may be left before they are moved.
        """
        self._store = store
        self._directory = state_dir
        self._most_left = most_left
        self._lock = threading.Lock()
        self._journal: Journal | None = None

    def record(self, entry: AuditEntry) -> str:
        """Return the entry's id once it is durable.

        Raises:
            AuditWriteFailedError: It could not be made durable: refuse the operation that it is about.
            StoragePermissionError, StorageIoError: The state directory cannot be used.
        """
        recorded = take(entry)
        self._begun().append([recorded.to_bytes()])
        return recorded.audit_id

    def check_writable(self) -> None:
        """Make sure that an entry could be recorded now, without recording one.

        Raises:
            AuditWriteFailedError, StoragePermissionError, StorageIoError: It could not.
        """
        self._begun().check_writable()

    def close(self) -> None:
        """End, and leave the entries to the next process; if many are left by now, move them all."""
        with self._lock:
            journal, self._journal = self._journal, None
        if journal is None:
            return
        journal.close()
        if sum(1 for _ in self._directory.glob(f"*{SEGMENT_SUFFIX}")) < self._most_left:
            return
        try:
            AuditLog(self._store, self._directory).close()
        except AuditWriteFailedError as error:
            # What was asked for is done, and its entries are safe: the next one tries again.
            _log.warning("Audit entries wait in the journal: %s", error)

    def _begun(self) -> Journal:
        with self._lock:
            if self._journal is None:
                self._journal = Journal(
                    private_directory(self._directory),
                    capacity_bytes=_CAPACITY_BYTES,
                    room_timeout_s=_ROOM_TIMEOUT_S,
                )
            return self._journal
