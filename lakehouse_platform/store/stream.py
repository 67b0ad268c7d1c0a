"""A stream of rows on its way into the engine, which would bury the error of whoever produces it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakehouse_platform.errors import InvalidRowsError, LakehouseError


class Stream:
    """Record batches that can be read once; remembers the error that ended them.

    Attributes:
        schema: Their columns.
        reader: The stream for the engine.
        rows: Rows handed out so far.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = schema
        self.rows = 0
        self._error: Exception | None = None
        self.reader = pa.RecordBatchReader.from_batches(schema, self._watched(batches))

    @contextmanager
    def source_errors(self) -> Generator[None]:
        """Raise the producer's own error in place of whatever the engine made of it.

        Raises:
            LakehouseError: The producer's error; one of a foreign kind becomes InvalidRowsError.
        """
        try:
            yield
        except Exception as error:
            if self._error is None:
                raise
            if isinstance(self._error, LakehouseError):
                raise self._error from None
            raise InvalidRowsError(
                f"The source of the rows failed: {self._error}. Nothing was written."
            ) from self._error if self._error is not error else None

    def _watched(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                self.rows += batch.num_rows
                yield batch
        except Exception as error:
            self._error = error
            raise
