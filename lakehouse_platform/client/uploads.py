"""Rows as the body of a request: Arrow streamed as it is, rows of Python values as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias, cast

import pyarrow as pa

from lakehouse_platform.errors import InvalidRowsError

ARROW_ROWS = "application/vnd.apache.arrow.stream"
JSON_ROWS, JSON_LINES = "application/json", "application/x-ndjson"
# A JSON array is read by the server as a whole, and refused beyond its limit; its errors are those of rows in-process.
_LARGEST_ARRAY = 2**20
# Below this, the cost of each piece in the HTTP library shows; above it, memory is held for nothing.
_PIECE_BYTES = 2**20
# What JSON has only texts for: sent as Arrow, so that a column of texts refuses them as it does in-process.
_TYPED = (date, bytes, bytearray, memoryview)


class ArrowStreamable(Protocol):
    """Anything that hands out an Arrow stream: Polars and pandas frames, results of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream's capsule."""
        ...


RowsIn: TypeAlias = (
    pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStreamable | Iterable[Mapping[str, Any]]
)


class RowsBody:
    """Rows that are sent in pieces, again if need be; those of a reader only once.

    Attributes:
        content_type: The form of the pieces.
    """

    def __init__(self, content_type: str, make: Callable[[], Iterator[bytes]], *, is_once: bool) -> None:
        self.content_type = content_type
        self._make = make
        self._is_once = is_once
        self._begun = False

    @property
    def is_spent(self) -> bool:
        """Whether the rows are gone: they were read from a reader, and were begun to be sent."""
        return self._is_once and self._begun

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, from the beginning."""
        self._begun = True
        yield from self._make()


def rows_body(data: RowsIn, *, with_types: bool = False) -> RowsBody:
    """Return rows as the body of a request.

    Args:
        data: An Arrow, Polars or pandas table, a reader of record batches, which is sent as it is read, or rows as
            dictionaries.
        with_types: Rows must tell the types of columns that the table has not yet.

    Raises:
        InvalidRowsError: `data` is none of these, or a value has no form that can be sent.
    """
    if isinstance(data, pa.RecordBatchReader):
        return _reader_body(data)
    if isinstance(data, pa.RecordBatch):
        return _table_body(pa.Table.from_batches([data]))
    if isinstance(data, pa.Table):
        return _table_body(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _table_body(pa.table(cast("Any", data)))
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)):
        rows = list(cast("Iterable[Any]", data))
        if all(isinstance(row, Mapping) for row in rows):
            return _mappings_body(cast("list[Mapping[str, Any]]", rows), with_types)
    raise InvalidRowsError(
        f"Rows cannot be taken from {type(data).__name__}: give an Arrow, Polars or pandas table, "
        "a record batch reader, or a list of dictionaries."
    )


def _reader_body(reader: pa.RecordBatchReader) -> RowsBody:
    return RowsBody(ARROW_ROWS, lambda: _arrow_pieces(reader.schema, reader), is_once=True)


def _table_body(table: pa.Table) -> RowsBody:
    rows = max(1, _PIECE_BYTES * table.num_rows // max(1, table.nbytes))
    return RowsBody(
        ARROW_ROWS,
        lambda: _arrow_pieces(table.schema, table.to_batches(max_chunksize=rows)),
        is_once=False,
    )


def _mappings_body(rows: list[Mapping[str, Any]], with_types: bool) -> RowsBody:
    try:
        is_typed = with_types or any(_holds_typed(value) for row in rows for value in row.values())
    except RecursionError as error:
        raise InvalidRowsError("A value is nested too deeply to be sent.") from error
    if is_typed:
        return _table_body(_inferred(rows))
    # At once, not while they are sent: a value that cannot be sent is told before anything is.
    texts = [_row_text(row, number) for number, row in enumerate(rows, 1)]
    if sum(map(len, texts)) <= _LARGEST_ARRAY:
        return RowsBody(JSON_ROWS, lambda: iter([b"[" + b",\n".join(texts) + b"]"]), is_once=False)
    return RowsBody(JSON_LINES, lambda: _gathered(text + b"\n" for text in texts), is_once=False)


def _arrow_pieces(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    sink = _Pieces()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            if sink.size >= _PIECE_BYTES:
                yield sink.taken()
    yield sink.taken()


class _Pieces:
    """A file for pyarrow that keeps what is written until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, part: bytes | pa.Buffer) -> int:
        self._parts.append(bytes(part))
        self.size += len(part)
        return len(part)

    def taken(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts, self.size = [], 0
        return whole

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Do nothing: what was written is there."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _gathered(lines: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= _PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _holds_typed(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_typed, cast("Mapping[Any, Any]", value).values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_typed, cast("Sequence[Any]", value)))
    return isinstance(value, _TYPED)


def _inferred(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: list[pa.Array] = []
    for name in names:
        try:
            columns.append(pa.array([row.get(name) for row in rows]))
        except (pa.ArrowException, OverflowError) as error:
            raise InvalidRowsError(
                f"No one type holds the values of column {name!r} ({error}): give an Arrow table.",
                column=name,
            ) from error
    return pa.Table.from_arrays(columns, names=names)


def _row_text(row: Mapping[str, Any], number: int) -> bytes:
    try:
        return _json_text(row).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidRowsError(f"Row {number} cannot be sent: {error}.", row=number) from error


def _json_text(value: Any) -> str:
    """Return a value as JSON from which the server makes the same value, to the last digit."""
    if value is None or isinstance(value, bool | str):
        return json.dumps(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else json.dumps(str(value))
    if isinstance(value, Real):
        return _float_text(float(value))
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        if all(isinstance(key, str) for key, _ in pairs):
            return "{" + ",".join(f"{json.dumps(key)}:{_json_text(item)}" for key, item in pairs) + "}"
        # A map whose keys are no texts: JSON has it as pairs.
        return _json_text([list(pair) for pair in pairs])
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_json_text, cast("Sequence[Any]", value))) + "]"
    raise InvalidRowsError(
        f"A value of type {type(value).__name__} cannot be sent: give a number, a text, a date, or an Arrow table.",
        type=type(value).__name__,
    )


def _float_text(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'
