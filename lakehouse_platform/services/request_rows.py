"""Rows of a request on their way into a table: counted, and digested where the request is to be served once.

A stream whose digest is needed before it is written is kept meanwhile: in memory, beyond a size in a private file.
"""

from __future__ import annotations

import hmac
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from lakehouse_platform.private_files import private_directory, reported
from lakehouse_platform.services.sent_rows import SentRows, read_whole
from lakehouse_platform.store.cast import plain_schema
from lakehouse_platform.store.merge import MergeSource
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.rows import Held, RowsIn, hold
from lakehouse_platform.store.table import Table

# Digested in pieces of so many rows, so that it does not matter in which pieces the rows arrive.
_PIECE_ROWS = 65_536
_PLACES = pa.array(range(_PIECE_ROWS), pa.int64())
_MOST_BYTES_IN_MEMORY = 64 * 2**20
# A write that is overtaken can be tried again with a table, and not with a stream; larger ones are streamed.
_MOST_BYTES_TRIED_AGAIN = 16 * 2**20


class RequestRows:
    """Rows that were handed in, once. A context manager that frees what is kept of them.

    Attributes:
        data: What to hand to the table.
    """

    def __init__(self, data: RowsIn | SentRows) -> None:
        """Take rows.

        Args:
            data: The rows; bytes are read when it is known for which table.

        Raises:
            InvalidRowsError: They have none of the accepted forms.
        """
        self._sent = data if isinstance(data, SentRows) else None
        self.data: Held = [] if isinstance(data, SentRows) else hold(data)
        self._source: RowSource | None = None
        self._kept: IO[bytes] | None = None
        self._count = 0
        if isinstance(self.data, pa.RecordBatchReader):
            self.data = self._counted(self.data)

    @property
    def count(self) -> int:
        """How many rows there are; of a stream, how many were read."""
        return self._count if isinstance(self.data, pa.RecordBatchReader) else len(self.data)

    def into(self, table: Table, *, evolve: bool = False) -> Held:
        """Return the rows as a table takes them.

        Args:
            table: The table.
            evolve: Whether rows that were sent as bytes may have columns that the table lacks.

        Raises:
            InvalidRowsError, SourceFormatError: The bytes do not fit; line or row and column are named.
        """
        if self._sent is not None:
            if self._source is not None:
                self._source.close()
            self._source = self._sent.opened(table.arrow_schema(), evolve=evolve)
            is_small = self._sent.size <= _MOST_BYTES_TRIED_AGAIN
            self._count = 0
            self.data = read_whole(self._source) if is_small else self._counted(self._source.reader)
        return self.data

    def to_merge(self, table: Table) -> RowsIn | MergeSource:
        """Return the rows as a merge takes them; see `into`."""
        return self.data if self._sent is None else self._sent.to_merge(table.arrow_schema())

    def digest_into(self, digest: hmac.HMAC, directory: Path) -> None:
        """Feed the rows to a digest; they can be read afterwards.

        Args:
            digest: What to feed.
            directory: Where a long stream is kept, for this user alone.

        Raises:
            StorageIoError, StoragePermissionError: It cannot be kept.
        """
        if self._sent is not None:
            self._sent.digest_into(digest)
            return
        if isinstance(self.data, list):
            for row in self.data:
                digest.update(repr(list(row.items())).encode("utf-8", "surrogatepass"))
            return
        if isinstance(self.data, pa.Table):
            _digest(digest, self.data.schema, iter(self.data.to_batches()))
            return
        self.data = self._kept_stream(self.data, digest, directory)

    def close(self) -> None:
        """Free what is kept."""
        if self._source is not None:
            self._source.close()
        if self._kept is not None:
            self._kept.close()

    def __enter__(self) -> RequestRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _counted(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                self._count += batch.num_rows
                yield batch

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def _kept_stream(
        self, reader: pa.RecordBatchReader, digest: hmac.HMAC, directory: Path
    ) -> pa.RecordBatchReader:
        private_directory(directory)
        with reported(directory):
            kept: Any = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - closed by `close`
                max_size=_MOST_BYTES_IN_MEMORY, dir=str(directory)
            )
            self._kept = kept
            with pa.ipc.new_stream(kept, reader.schema) as writer:
                _digest(digest, reader.schema, _written(reader, writer))
            kept.seek(0)
            return pa.ipc.open_stream(kept)


def _written(
    reader: pa.RecordBatchReader, writer: pa.ipc.RecordBatchStreamWriter
) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        writer.write_batch(batch)
        yield batch


class _Sink(io.RawIOBase):
    """A file that feeds a digest."""

    def __init__(self, digest: hmac.HMAC) -> None:
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return memoryview(data).nbytes


def _digest(digest: hmac.HMAC, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    plain = plain_schema(pa.schema([field.with_type(_decoded(field.type)) for field in schema]))
    # As a stream, which also holds what dictionaries inside of nested columns stand for.
    with pa.ipc.new_stream(pa.PythonFile(_Sink(digest), "w"), plain) as writer:
        for piece in _pieces(batches):
            whole = piece.cast(plain).combine_chunks()
            # Taken anew: what stands in the bytes of NULLs and beyond the ends is then always the same.
            writer.write_table(whole.take(_PLACES.slice(0, len(whole))).combine_chunks())


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if isinstance(kind, pa.DictionaryType) else kind


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while rows + batch.num_rows >= _PIECE_ROWS:
            held.append(batch.slice(0, _PIECE_ROWS - rows))
            batch = batch.slice(_PIECE_ROWS - rows)  # noqa: PLW2901 - what is left of it
            yield pa.Table.from_batches(held)
            held, rows = [], 0
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
    if held:
        yield pa.Table.from_batches(held)
