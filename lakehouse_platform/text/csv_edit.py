"""Edited CSV lines into rows of a table: the exact inverse of `csv_write`, strict, and precise about what is wrong.

The dialect is RFC 4180 with LF or CRLF in UTF-8. An empty field is NULL and `""` is the empty text. Clean data go
through the fast reader at once. If it refuses, halving finds the first row at fault, and only that row is judged field
by field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from lakehouse_platform.errors import RowError
from lakehouse_platform.model.schema import type_text
from lakehouse_platform.text.csv_columns import (
    convert_options,
    finish,
    first_bad,
    is_number,
    maybe_changed,
    parse_options,
    problem,
)
from lakehouse_platform.text.csv_lines import first_fault, row_at, row_starts
from lakehouse_platform.text.csv_records import Record
from lakehouse_platform.text.csv_write import csv_rows
from lakehouse_platform.text.json_values import shown

_BOM = b"\xef\xbb\xbf"
# Bytes parsed at a time: 1 MB and 4 MB were the fastest for 42 MB on one core (430 MB/s; 16 MB: 400). A record longer
# than a block makes pyarrow fail; then the next size is tried.
_BLOCKS = (2**20, 2**24, 2**28, 2**30)
_BLANK_LINE = "the line is empty, but the table has {columns} columns: remove the line"


def parse_lines(
    data: bytes,
    names: Sequence[str],
    schema: pa.Schema,
    *,
    first_line: int = 1,
    first_offset: int = 0,
    blank_end: bool = True,
) -> pa.Table:
    """Return the rows of CSV lines in the schema's columns and order.

    Args:
        data: Whole rows; the last may lack its line end.
        names: The columns of the lines, in their order; other columns of the schema are NULL.
        schema: The table's columns.
        first_line: Number of the first line, for errors.
        first_offset: Offset of the first byte, for errors.
        blank_end: Whether empty lines at the end are dropped where they cannot be rows: if there are more columns
            than one.

    Raises:
        RowError: A line does not fit; the first such line is named.
    """
    if blank_end:
        data = without_blank_end(data, len(names))
    return _Lines(data, tuple(names), schema, first_line, first_offset).table()


def parse_columns(data: bytes, names: Sequence[str], schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return some columns of lines that `parse_lines` accepts, as `parse_lines` would."""
    lines = _Lines(data, tuple(names), schema, 1, 0)
    return lines.columns([schema.field(name) for name in columns])


def render_table(rows: pa.Table) -> bytes:
    """Return the lines of a table's rows."""
    return b"".join(csv_rows(batch) for batch in rows.to_batches())


def without_blank_end(data: bytes, columns: int) -> bytes:
    """Return the data without empty lines at its end, which are rows only of a table with one column."""
    if columns == 1 or not data.endswith(b"\n"):
        return data
    last = data.rfind(b"\n", 0, len(data) - 1) + 1
    if len(data) - last > len(b"\r\n") or data[last:].strip(b"\r\n"):
        return data
    end = len(data.rstrip(b"\r\n"))
    return data[: data.index(b"\n", end) + 1] if end else b""


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines to parse, and where they stand."""

    data: bytes
    names: tuple[str, ...]
    schema: pa.Schema
    first_line: int
    first_offset: int

    def table(self) -> pa.Table:
        data = self.data
        if not data:
            return self.schema.empty_table()
        self._check_structure(data)
        try:
            return self._converted(data)
        except (pa.ArrowInvalid, ValueError) as error:
            raise self._first_refused(data, error) from error

    def columns(self, fields: Sequence[pa.Field]) -> pa.Table:
        schema = pa.schema(fields)
        if not self.data:
            return schema.empty_table()
        read = _read(self.data, self.names, {field.name: field.type for field in fields})
        return pa.Table.from_arrays(
            [_finished(read.column(field.name), field) for field in fields], schema=schema
        )

    def _check_structure(self, data: bytes) -> None:
        fault = first_fault(data)
        blank = _first_blank(data) if len(self.names) > 1 else None
        if fault is not None and (blank is None or fault.position < blank):
            raise self._row_error(data, row_at(data, fault.position), None, fault.reason)
        if blank is not None:
            raise self._row_error(data, blank, None, _BLANK_LINE.format(columns=len(self.names)))

    def _converted(self, data: bytes) -> pa.Table:
        fields = [field for field in self.schema if field.name in self.names]
        read = _read(data, self.names, {field.name: field.type for field in fields})
        self._check_doubtful(data, fields, read)
        columns = [self._column(read, field) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _column(self, read: pa.Table, field: pa.Field) -> pa.ChunkedArray:
        if field.name in self.names:
            return _finished(read.column(field.name), field)
        return pa.chunked_array([pa.nulls(read.num_rows, field.type)])

    def _check_doubtful(self, data: bytes, fields: Sequence[pa.Field], read: pa.Table) -> None:
        """Refuse numbers that the fast reader takes too generously: hexadecimal, or too large to be exact."""
        # One byte is looked for ten times as fast as two.
        hexadecimal = any(x in data and b"0" + x in data for x in (b"x", b"X"))
        doubtful = [
            field
            for field in fields
            if is_number(field.type)
            and (hexadecimal or any(maybe_changed(chunk) for chunk in read.column(field.name).chunks))
        ]
        if not doubtful:
            return
        texts = _read(data, self.names, {field.name: pa.string() for field in doubtful})
        for field in doubtful:
            if any(
                first_bad(chunk, field, guessed=False) is not None
                for chunk in texts.column(field.name).chunks
            ):
                raise ValueError(f"column {field.name!r} holds a number that its type does not")

    def _first_refused(self, data: bytes, error: ValueError) -> RowError:
        """Return the error of the first row that is refused; rows are independent, so halving finds it."""
        starts = row_starts(data)
        row = _first_within(
            len(starts) - 1, lambda low, high: self._refuses(data[starts[low] : starts[high]])
        )
        start, stop = int(starts[row]), int(starts[row + 1])
        column, reason = self._judge(data[start:stop])
        return self._row_error(data, start, column, reason or str(error))

    def _refuses(self, data: bytes) -> bool:
        try:
            self._converted(data)
        except (pa.ArrowInvalid, ValueError):
            return True
        return False

    def _judge(self, row: bytes) -> tuple[str | None, str | None]:
        raw = row.removesuffix(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")
        if (byte := _not_utf8(raw)) is not None:
            return None, f"the line is not UTF-8 (byte 0x{byte:02X}): save the file as UTF-8"
        values = Record(1, raw).values(",")
        if len(values) != len(self.names):
            return None, _wrong_width(len(values), len(self.names), raw)
        for value, name in zip(values, self.names, strict=True):
            field = self.schema.field(name)
            if reason := problem(value, field, guessed=False):
                return name, f"({type_text(field.type)}) {reason}"
        return None, None

    def _row_error(self, data: bytes, start: int, column: str | None, reason: str) -> RowError:
        line = self.first_line + data.count(b"\n", 0, start)
        return RowError(line, column, reason, self.first_offset + start)


def _read(data: bytes, names: Sequence[str], types: dict[str, pa.DataType]) -> pa.Table:
    parse = parse_options(",", len(names))
    convert = convert_options(types)
    data, lead = _protected(data)
    for block in _BLOCKS:
        read = pa_csv.ReadOptions(use_threads=False, block_size=block, column_names=list(names))
        try:
            table = pa_csv.read_csv(pa.py_buffer(data), read, parse, convert)
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block == _BLOCKS[-1]:
                raise
        else:
            return table.slice(lead if len(names) == 1 else 0)
    raise AssertionError("the last block size returns or raises")


def _protected(data: bytes) -> tuple[bytes, int]:
    """Return the data as pyarrow reads all of it, and how many empty lines were put in front.

    It drops a byte order mark at the beginning, which may be a text's first character, and may fail without a last line
    end (pyarrow 26).
    """
    lead = data.startswith(_BOM)
    end = b"" if data.endswith(b"\n") else b"\n"
    return (b"\n" * lead + data + end if lead or end else data), int(lead)


def _finished(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    return pa.chunked_array([finish(chunk, field) for chunk in column.chunks], field.type)


def _first_blank(data: bytes) -> int | None:
    """Return where the first empty line stands that is a row by its place."""
    if not (data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or (b"\r" in data and b"\n\r\n" in data)):
        return None
    starts = row_starts(data)
    short = np.flatnonzero(np.diff(starts) <= 2)
    for row in short.tolist():
        if not data[starts[row] : starts[row + 1]].strip(b"\r\n"):
            return int(starts[row])
    return None


def _first_within(count: int, refuses: Callable[[int, int], bool]) -> int:
    """Return the first row that is refused, if one among `count` is."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if refuses(low, middle):
            high = middle
        else:
            low = middle
    return low


def _not_utf8(raw: str) -> int | None:
    try:
        raw.encode()
    except UnicodeEncodeError as error:
        return ord(raw[error.start]) - 0xDC00
    return None


def _wrong_width(found: int, wanted: int, raw: str) -> str:
    fields = f"{found} field{'s' * (found != 1)}"
    return f"the line has {fields}, but the table has {wanted}: {shown(raw)}; quote fields that hold a comma"
