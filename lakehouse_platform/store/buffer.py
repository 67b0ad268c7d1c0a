"""Group commit: small batches gathered and written as one commit, bounded in rows, bytes and time.

`flush` returning means that everything added before is committed. Rows whose commit fails stay in the buffer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pyarrow as pa

from lakehouse_platform.errors import LakehouseError

_MB = 1_000_000


class WriteBuffer:
    """Gathers rows of one schema for one table; safe to share between threads.

    Args:
        write: Commits rows and returns the version.
        max_rows: Rows that make it commit.
        max_mb: Size that makes it commit, in MB.
        max_seconds: Age of the oldest row that makes it commit, in seconds.
    """

    def __init__(
        self, write: Callable[[pa.Table], int], *, max_rows: int, max_mb: int, max_seconds: float
    ) -> None:
        self._write = write
        self._max_rows = max_rows
        self._max_bytes = max_mb * _MB
        self._max_seconds = max_seconds
        self._lock = threading.RLock()
        self._parts: list[pa.Table] = []
        self._rows = self._bytes = 0
        self._timer: threading.Timer | None = None
        self._failure: LakehouseError | None = None

    @property
    def pending_rows(self) -> int:
        """Rows that are not committed yet."""
        with self._lock:
            return self._rows

    def add(self, rows: pa.Table) -> None:
        """Take rows in; commits if the buffer is full.

        Raises:
            LakehouseError: A commit failed, now or in the background since the last call; all its rows are kept.
        """
        with self._lock:
            self._parts.append(rows)
            self._rows += rows.num_rows
            self._bytes += rows.nbytes
            self._raise_failure()
            if self._rows >= self._max_rows or self._bytes >= self._max_bytes:
                self.flush()
            elif self._timer is None and self._rows:
                self._start_timer()

    def flush(self) -> int | None:
        """Commit everything that was added and return the version; None if there was nothing.

        Raises:
            LakehouseError: The commit failed; the rows are kept for the next try.
        """
        with self._lock:
            self._stop_timer()
            self._failure = None
            if not self._rows:
                return None
            # Columns may have been added to the table between two parts: earlier rows have NULL in them.
            version = self._write(pa.concat_tables(self._parts, promote_options="default"))
            self._parts, self._rows, self._bytes = [], 0, 0
            return version

    def close(self) -> None:
        """Commit what is left.

        Raises:
            LakehouseError: The commit failed; the rows are kept.
        """
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start_timer(self) -> None:
        self._timer = threading.Timer(self._max_seconds, self._flush_by_time)
        self._timer.daemon = True
        self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush_by_time(self) -> None:
        with self._lock:
            try:
                self.flush()
            except LakehouseError as error:
                # Nobody listens on this thread: the next call raises it, unless a further try succeeds before.
                self._failure = error
                self._start_timer()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
