"""The header line of edited CSV: columns by name, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_platform.errors import RowError
from lakehouse_platform.text.csv_lines import first_fault
from lakehouse_platform.text.csv_records import Record
from lakehouse_platform.text.csv_write import csv_header
from lakehouse_platform.text.json_values import closest, shown

_BOM = b"\xef\xbb\xbf"
MAX_HEADER = 1 << 20  # bytes; far beyond real tables, whose names end at 255 bytes


@dataclass(frozen=True, slots=True)
class Header:
    """A header line that fits a table.

    Attributes:
        names: The columns in the line's order.
        size: Bytes of the line, its end and a byte order mark included.
        lines: How many lines it spans; more than one if a name holds a line end.
        is_plain: Whether it is, to the byte, the header that the table is shown with.
    """

    names: tuple[str, ...]
    size: int
    lines: int
    is_plain: bool


def header_end(data: bytes) -> int:
    """Return where the header line at the beginning of data ends, 0 if it is not whole yet."""
    end = data.find(b"\n") + 1
    while end and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end) + 1
    return end


def read_header(line: bytes, schema: pa.Schema, *, allow_missing: bool = False) -> Header:
    """Return what a header line says.

    Args:
        line: The whole line; its end may be missing, a byte order mark may be in front.
        schema: The table's columns.
        allow_missing: Whether nullable columns may be left out.

    Raises:
        RowError: The line is no header of the table.
    """
    names = _names(line, schema)
    for position, name in enumerate(names):
        if name in names[:position]:
            raise RowError(1, name, "the header names the column twice", 0)
    for field in schema:
        if field.name not in names and not (allow_missing and field.nullable):
            raise RowError(1, field.name, _missing(field, schema), 0)
    return Header(names, len(line), max(1, line.count(b"\n")), line == csv_header(schema))


def _names(line: bytes, schema: pa.Schema) -> tuple[str, ...]:
    raw = line.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")
    if fault := first_fault(raw):
        raise RowError(1, None, f"in the header {fault.reason}", 0)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise RowError(1, None, "the header is not UTF-8: save the file as UTF-8", 0) from error
    values = Record(1, text).values(",")
    names = tuple(value.text if value.quoted else value.text.strip() for value in values)
    _check_known(names, text, schema)
    return names


def _check_known(names: Sequence[str], text: str, schema: pa.Schema) -> None:
    if not any(name in schema.names for name in names):
        raise RowError(1, None, f"{_expected(schema)}, but it is {shown(text)}", 0)
    for name in names:
        if name not in schema.names:
            raise RowError(1, name or None, f"the header has {name!r}, but {closest(name, schema.names)}", 0)


def _expected(schema: pa.Schema) -> str:
    return f"the first line must be the header {csv_header(schema).decode().rstrip()!r}"


def _missing(field: pa.Field, schema: pa.Schema) -> str:
    hint = "; table property lakehouse.allowMissingColumns=true makes it NULL" if field.nullable else ""
    return f"the header leaves the column out: {_expected(schema)}{hint}"
