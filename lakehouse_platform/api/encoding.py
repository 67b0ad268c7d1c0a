"""Rows into the bytes of an answer, piece by piece, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.types as pt

from lakehouse_platform.api.formats import RowForm
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.distinct import require_distinct
from lakehouse_platform.text.json_write import json_lines, json_members

# Large enough that the hand-over between a thread and the event loop (some 0.3 ms) does not count beside making a piece
# (2 ms as Arrow), small enough that a slow client holds little. 256 KB to 4 MB were as fast for 1 M rows of 50 bytes.
PIECE_BYTES = 2**20


def pieces(batches: Iterator[pa.RecordBatch], schema: pa.Schema, form: RowForm) -> Iterator[bytes]:
    """Yield rows in a form, in pieces of about `PIECE_BYTES`; at least one, and the last ends the form.

    Args:
        batches: The rows; the next is asked for when its bytes are.
        schema: Their columns.
        form: What to write.

    Raises:
        InvalidSqlError: The form cannot hold columns, or fields, of one name; before the first piece.
    """
    return _gathered(_WRITERS[form](batches, schema))


def _gathered(parts: Iterator[bytes | pa.Buffer]) -> Iterator[bytes]:
    """Join small parts; a large one is not copied more than once."""
    held: list[bytes | pa.Buffer] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _json(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    """Yield what `table_to_json` returns."""
    require_distinct(schema)
    is_first = True
    for batch in _texts(batches):
        members = json_members(batch)
        yield b"[" + members[1:] if is_first else members
        is_first = False
    yield b"[]\n" if is_first else b"\n]\n"


def _ndjson(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    require_distinct(schema)
    for batch in _texts(batches):
        yield json_lines(batch)


def _csv(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    yield csv_header(schema)
    for batch in _texts(batches):
        yield csv_rows(batch)


def _arrow(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes | pa.Buffer]:
    sink = _Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema) as writer:
        for batch in batches:
            # A batch that is a little larger is not worth the copy of its texts that cutting it costs.
            for part in [batch] if batch.nbytes < 2 * PIECE_BYTES else _cut(batch, batch.nbytes):
                writer.write_batch(part)
                yield from sink.taken()
    yield from sink.taken()


class _Sink:
    """A file for pyarrow that keeps the buffers which it is given, without copying them."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes | pa.Buffer] = []

    def write(self, part: bytes | pa.Buffer) -> int:
        self._parts.append(part)
        return len(part)

    def taken(self) -> list[bytes | pa.Buffer]:
        parts, self._parts = self._parts, []
        return parts

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Do nothing: what was written is there."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _texts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut batches so that the text of each is some `PIECE_BYTES`."""
    for batch in batches:
        # Numbers and times grow two- to threefold, binary by a third, and keys come with each row of JSON.
        is_text = all(pt.is_string(field.type) for field in batch.schema)
        yield from _cut(batch, batch.nbytes * (1 if is_text else 2))


def _cut(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch of that many bytes into parts of at most `PIECE_BYTES`, if its rows allow; none if it is empty."""
    rows = max(1, PIECE_BYTES * batch.num_rows // max(1, size))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


_WRITERS: dict[
    RowForm, Callable[[Iterator[pa.RecordBatch], pa.Schema], Iterator[bytes] | Iterator[bytes | pa.Buffer]]
] = {
    RowForm.JSON: _json,
    RowForm.NDJSON: _ndjson,
    RowForm.CSV: _csv,
    RowForm.ARROW: _arrow,
}
