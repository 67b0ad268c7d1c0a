"""The journal: an entry is acknowledged once it is on the local disk, and stays there until the table has it.

Many threads append at once and share one sync: the first of those that wait writes for all of them (leader and
followers). What was acknowledged and is not in the table yet is also held in memory, within a bound; callers wait
while the bound is reached.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from lakehouse_platform.audit.segments import PRIVATE, Segment, encode_record
from lakehouse_platform.audit.writers import WriterLock
from lakehouse_platform.errors import AuditWriteFailedError, StorageIoError

# A segment that is full is deleted as a whole once the table has its records.
_SEGMENT_BYTES = 4 * 2**20


@dataclass(slots=True)
class _Batch:
    """What one caller appends, and what became of it."""

    payloads: Sequence[bytes]
    size: int
    is_done: bool = False
    failure: BaseException | None = None


class Journal:
    """The journal of one writer.

    Attributes:
        writer: Its name, unique for all time.
    """

    def __init__(
        self,
        directory: Path,
        *,
        capacity_bytes: int,
        room_timeout_s: float,
        begin: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """Begin a journal.

        Args:
            directory: Private, on a local disk.
            capacity_bytes: How much may wait for the table.
            room_timeout_s: How long a caller waits for room before it is refused.
            begin: A number that grows faster than records are written: the microseconds since 1970.

        Raises:
            StorageIoError: The disk refused.
        """
        self._directory = directory
        self._capacity = capacity_bytes
        self._room_timeout_s = room_timeout_s
        self._changed = threading.Condition()
        self._queue: list[_Batch] = []
        self._is_writing = False
        self._is_closed = False
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._sealed: list[Segment] = []
        self._current: Segment | None = None
        self._lock, counted = _own_lock(directory)
        self._last = max(counted, begin())
        self._process = os.getpid()
        self.writer = self._lock.writer

    def append(self, payloads: Sequence[bytes]) -> None:
        """Return when the records are on the disk, all of them.

        Raises:
            AuditWriteFailedError: The disk refused, too much waits for the table, or the journal is closed. The records
                are not acknowledged; after a failed sync they may still turn up.
        """
        self.check_owner()
        batch = _Batch(payloads, sum(map(len, payloads)))
        with self._changed:
            self._await_room(batch.size)
            self._queue.append(batch)
            self._bytes += batch.size
            while not batch.is_done:
                if self._is_writing:
                    self._changed.wait()
                else:
                    self._write_queue()
        if batch.failure is not None:
            raise _refused(self._directory, batch.failure) from batch.failure

    @property
    def is_anothers(self) -> bool:
        """Whether this process was forked from the one that began the journal, and must leave it alone."""
        return self._process != os.getpid()

    def check_owner(self) -> None:
        """Refuse to be used by a forked process.

        Raises:
            AuditWriteFailedError: This process was forked from the one that began the journal.
        """
        if self.is_anothers:
            raise AuditWriteFailedError(
                "This process was forked from the one that opened the audit log: open a new one here."
            )

    def check_writable(self) -> None:
        """Make sure that a record could be written now: there is room, and the disk takes and keeps bytes.

        Raises:
            AuditWriteFailedError: It could not.
        """
        self.check_owner()
        with self._changed:
            if self._is_closed or self._bytes >= self._capacity:
                raise AuditWriteFailedError(
                    "The audit log is closed, or full of entries that wait for their table."
                )
        probe = self._directory / f"{self.writer}.probe"
        try:
            file = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
            try:
                os.write(file, b"\0")
                os.fsync(file)
            finally:
                os.close(file)
                probe.unlink(missing_ok=True)
        except OSError as error:
            raise _refused(self._directory, error) from error

    @property
    def last(self) -> int:
        """Index of the newest record on the disk; without one, what the count begins after."""
        with self._changed:
            return self._last

    @property
    def waiting_count(self) -> int:
        """How many records on the disk the table has not."""
        with self._changed:
            return len(self._waiting)

    def waiting(self, most: int) -> list[tuple[int, bytes]]:
        """Return the oldest records that the table has not, with their indexes."""
        with self._changed:
            return list(islice(self._waiting, most))

    def landed(self, index: int) -> None:
        """Forget the records up to an index: the table has them."""
        with self._changed:
            while self._waiting and self._waiting[0][0] <= index:
                self._bytes -= len(self._waiting.popleft()[1])
            if not self._is_writing and not self._waiting:
                # Entries hold personal data: none stays in the journal longer than it must.
                self._seal()
            for segment in [one for one in self._sealed if one.last <= index]:
                self._sealed.remove(segment)
                segment.path.unlink(missing_ok=True)
            self._changed.notify_all()

    def close(self) -> None:
        """End the journal; its records are deleted if the table has all of them, and else left for the next writer."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_writing and not self._queue)
            self._seal()
            if not self._waiting:
                # A full disk costs the name, which is then given up, and must not hide what else went wrong.
                with suppress(OSError):
                    self._lock.set_free(self._last)
            self._lock.close()

    def _await_room(self, size: int) -> None:
        def has_room() -> bool:
            # A batch larger than all room must get through too, alone.
            return self._is_closed or self._bytes == 0 or self._bytes + size <= self._capacity

        if not self._changed.wait_for(has_room, self._room_timeout_s):
            raise AuditWriteFailedError(
                f"The audit log cannot take more: {self._bytes} bytes of entries in {self._directory} wait for their "
                "table, which cannot be written. Look at the lakehouse's storage.",
                path=str(self._directory),
            )
        if self._is_closed:
            raise AuditWriteFailedError("The audit log is closed: open a new one to record entries.")

    def _write_queue(self) -> None:
        """Write what all callers appended so far; called and left with the lock held."""
        batches, self._queue = self._queue, []
        if self._current is not None and self._current.size >= _SEGMENT_BYTES:
            self._seal()
        self._is_writing = True
        self._changed.release()
        failure: BaseException | None = None
        try:
            self._write(batches)
        except BaseException as error:  # noqa: BLE001 - whoever waits for this batch must be told, whatever it was
            failure = error
        finally:
            self._changed.acquire()
        self._is_writing = False
        if failure is not None:
            self._abandon()
        self._settle(batches, failure)
        self._changed.notify_all()
        if failure is not None and not isinstance(failure, Exception):
            raise failure

    def _settle(self, batches: Sequence[_Batch], failure: BaseException | None) -> None:
        for batch in batches:
            batch.is_done, batch.failure = True, failure
            if failure is not None:
                self._bytes -= batch.size
                continue
            self._waiting.extend(enumerate(batch.payloads, self._last + 1))
            self._last += len(batch.payloads)

    def _write(self, batches: Sequence[_Batch]) -> None:
        payloads = [payload for batch in batches for payload in batch.payloads]
        if self._current is None:
            self._current = Segment(self._directory, self.writer, self._last + 1)
        self._current.append(b"".join(map(encode_record, payloads)), len(payloads))

    def _abandon(self) -> None:
        """Write to the segment no more: after a failed sync nobody knows what of it is on the disk."""
        segment, self._current = self._current, None
        if segment is None:
            return
        if not segment.count:
            segment.discard()
            return
        # If the disk refuses this too, the next segment's name tells where this one ends.
        with suppress(OSError):
            segment.cut()
        segment.close()
        self._sealed.append(segment)

    def _seal(self) -> None:
        if self._current is not None:
            self._current.close()
            self._sealed.append(self._current)
            self._current = None


def _own_lock(directory: Path) -> tuple[WriterLock, int]:
    """Return a lock, and how far the writer of that name has counted."""
    try:
        if free := WriterLock.take_free(directory):
            return free
        while True:
            lock = WriterLock.take(directory, f"{os.getpid()}-{secrets.token_hex(8)}")
            if lock is not None:
                return lock, 0
    except OSError as error:
        raise StorageIoError(
            f"The audit journal in {directory} cannot be begun: {error}.", path=str(directory)
        ) from error


def _refused(directory: Path, cause: BaseException) -> AuditWriteFailedError:
    return AuditWriteFailedError(
        f"The audit entry could not be written to {directory} ({cause}), so it is not recorded. "
        "Check the disk (free space), then repeat the operation.",
        path=str(directory),
    )
