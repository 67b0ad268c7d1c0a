"""One side of a comparison: the rows of a content, read in whole rows, with memory for the rows at hand only."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.content import Content
from lakehouse_platform.text.csv_edit import parse_columns, parse_lines, render_table
from lakehouse_platform.text.csv_lines import last_row_end

_TAIL = 1 << 16


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of a content. Offsets are the content's; a missing last line end is made up for.

    Attributes:
        content: The bytes.
        names: The columns of its lines.
        schema: The table's columns.
        start: Where its rows begin, after the header.
        end: Where they end, empty lines at the end left out; one more than the content has if it lacks a line end.
        is_canonical: Whether each line is to the byte as the table's view shows it.
    """

    content: Content
    names: tuple[str, ...]
    schema: pa.Schema
    start: int
    end: int
    is_canonical: bool

    @classmethod
    def of(
        cls, content: Content, names: tuple[str, ...], schema: pa.Schema, start: int, *, is_canonical: bool
    ) -> Side:
        """Return the rows of a content after its header."""
        return cls(content, names, schema, start, _rows_end(content, start, len(names)), is_canonical)

    def read(self, start: int, stop: int) -> bytes:
        """Return a range of bytes."""
        data = read_bytes(self.content, start, min(stop, self.content.size))
        return data + b"\n" if stop > self.content.size else data

    def rows(self, start: int, wanted: int, stop: int) -> bytes:
        """Return about `wanted` bytes of rows, at least one row, from a row's start on and none beyond `stop`."""
        while True:
            data = self.read(start, min(start + wanted, stop))
            if start + len(data) >= stop:
                return data
            if end := last_row_end(data):
                return data[:end]
            wanted *= 4

    def canonical(self, data: bytes, start: int) -> bytes:
        """Return lines as the table's view would show them; see `parse`."""
        return render_table(self.parse(data, start))

    def parse(self, data: bytes, start: int) -> pa.Table:
        """Return lines as rows.

        Raises:
            RowError: A line does not fit the table; lines are counted from the content's first.
        """
        try:
            return parse_lines(data, self.names, self.schema, first_offset=start, blank_end=False)
        except RowError as error:
            raise self.placed(error) from error

    def parse_columns(self, data: bytes, columns: tuple[str, ...]) -> pa.Table:
        """Return some columns of sound lines."""
        return parse_columns(data, self.names, self.schema, columns)

    def placed(self, error: RowError) -> RowError:
        """Return the error of a line with its number in the whole content, which is counted only now."""
        line, position = 1, 0
        while position < error.offset:
            data = read_bytes(self.content, position, min(position + (1 << 22), error.offset))
            line += data.count(b"\n")
            position += len(data)
        return RowError(line, error.column, error.reason, error.offset)


def read_bytes(content: Content, start: int, stop: int) -> bytes:
    """Return a range of a content in one piece."""
    buffers = content.read(start, stop - start) if stop > start else ()
    return bytes(buffers[0]) if len(buffers) == 1 else b"".join(buffers)


def _rows_end(content: Content, start: int, columns: int) -> int:
    if content.size <= start:
        return start
    ended = read_bytes(content, content.size - 1, content.size) == b"\n"
    if columns == 1 or not ended:
        return content.size + (not ended)
    stop = content.size
    while stop > start:
        low = max(start, stop - _TAIL)
        data = read_bytes(content, low, stop)
        if kept := len(data.rstrip(b"\r\n")):
            tail = read_bytes(content, low + kept, content.size)
            return low + kept + tail.index(b"\n") + 1
        stop = low
    return start
