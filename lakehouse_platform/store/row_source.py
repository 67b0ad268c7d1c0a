"""Rows on their way into a table: a stream that is read once and keeps its own error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import pyarrow as pa

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.store.read_ahead import read_ahead


class RowSource:
    """A stream of record batches from files.

    The engine replaces an exception that a stream raises by its own, so whoever hands `reader` to it calls
    `raise_pending` when it failed.

    Attributes:
        schema: The columns of every batch.
        total_bytes: Size of the files.
        error: Why the stream broke off, if it did.
    """

    def __init__(self, schema: pa.Schema, total_bytes: int, batches: Iterator[pa.RecordBatch]) -> None:
        self.schema = schema
        self.total_bytes = total_bytes
        self.error: LakehouseError | None = None
        self._batches = batches
        self.reader: pa.RecordBatchReader = pa.RecordBatchReader.from_batches(schema, self._watched())

    def ahead(self) -> Self:
        """Read the files in a thread of their own, as those in an object store must be; return this source."""
        self._batches = read_ahead(self._batches)
        return self

    def raise_pending(self) -> None:
        """Raise the error that broke the stream off, if there is one."""
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Close the files; the stream ends."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watched(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except LakehouseError as error:
            self.error = error
            raise
