"""Streams of rows that are in the audit log: what is short before anything is handed out, what is long at its end too.

A stream that ends within the first rows is written down as done, with their number, before its first row is handed
out. Of a longer one the beginning is written down then, and how many rows were handed out when it ends.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Self
from weakref import WeakSet

import pyarrow as pa

from lakehouse_platform.errors import AuditWriteFailedError
from lakehouse_platform.services.gate import Passage
from lakehouse_platform.store.scan import Rows

# Two of the largest batches of a scan. Wide rows are looked ahead at less far, so that memory stays bounded.
_MOST_ROWS = 65_536
_MOST_BYTES = 64 * 2**20

Begin = Callable[[], tuple[Passage, Rows]]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GatedRows(Rows):
    """Rows that are in the audit log as often as they are read; a context manager that ends unfinished readings."""

    _unfinished: WeakSet[_Counted] = field(default_factory=WeakSet["_Counted"])

    def close(self) -> None:
        """Write down the end of readings that are given up; one that is dropped is written down a little later.

        Raises:
            AuditWriteFailedError: The audit log cannot be written.
        """
        for reading in list(self._unfinished):
            reading.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def gated_rows(first: Passage, rows: Rows, again: Callable[[], Passage]) -> GatedRows:
    """Return rows whose readings are written down; the first one begins at once.

    Args:
        first: The operation that let the first reading through.
        rows: What is read.
        again: Lets a further reading through.

    Raises:
        LakehouseError: The first reading failed before a row could be handed out.
        AuditWriteFailedError: The audit log cannot be written: no row is handed out.
    """
    unfinished: WeakSet[_Counted] = WeakSet()
    waiting = [_begin(first, rows, unfinished)]

    def reader() -> pa.RecordBatchReader:
        try:
            return waiting.pop()
        except IndexError:
            return _begin(again(), rows, unfinished)

    return GatedRows(rows.schema, reader, rows.version, unfinished)


def _begin(passage: Passage, rows: Rows, unfinished: WeakSet[_Counted]) -> pa.RecordBatchReader:
    try:
        source = iter(rows.reader())
        held, ended = _look_ahead(source)
    except BaseException as error:
        passage.failed(error)
        raise
    if ended:
        passage.note.row_count = sum(batch.num_rows for batch in held)
        passage.done()
        return pa.RecordBatchReader.from_batches(rows.schema, _emptied(held))
    passage.started()
    reading = _Counted(passage, held, source)
    unfinished.add(reading)
    return pa.RecordBatchReader.from_batches(rows.schema, reading)


def _look_ahead(source: Iterator[pa.RecordBatch]) -> tuple[deque[pa.RecordBatch], bool]:
    """Return the first batches, and whether there are no more."""
    held: deque[pa.RecordBatch] = deque()
    rows = size = 0
    for batch in source:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows > _MOST_ROWS or size > _MOST_BYTES:
            return held, False
    return held, True


def _emptied(held: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while held:
        yield held.popleft()


class _Counted:
    """The batches of a long stream; its end is written down, however it comes."""

    def __init__(
        self, passage: Passage, held: deque[pa.RecordBatch], source: Iterator[pa.RecordBatch]
    ) -> None:
        self._passage = passage
        self._held = held
        self._source = source
        self._rows = 0
        self._is_ended = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._is_ended:
            raise StopIteration
        try:
            batch = self._held.popleft() if self._held else next(self._source)
        except StopIteration:
            self._end()
            raise
        except BaseException as error:
            self._is_ended = True
            self._passage.note.row_count = self._rows
            self._passage.failed(error)
            raise
        self._rows += batch.num_rows
        return batch

    def close(self) -> None:
        """Write down that the stream is given up, unless it has ended."""
        if not self._is_ended:
            note = self._passage.note
            note.details = "; ".join(text for text in (note.details, "not read to its end") if text)
            self._end()

    def __del__(self) -> None:
        # A reader that is dropped half-read; there is nobody left to raise an error to.
        try:
            self.close()
        except AuditWriteFailedError:
            _log.warning(
                "The end of a reading could not be written into the audit log; its beginning is there."
            )

    def _end(self) -> None:
        self._is_ended = True
        self._held.clear()
        self._passage.note.row_count = self._rows
        self._passage.done()
