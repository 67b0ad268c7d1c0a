"""Rows checked completely while their bytes arrive, so that a bad row fails its own WRITE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.edits.header import MAX_HEADER, header_end, read_header
from lakehouse_platform.nfs.edits.key_set import KeySet
from lakehouse_platform.nfs.edits.rows import RowSplitter
from lakehouse_platform.text.csv_edit import parse_columns, parse_lines, without_blank_end
from lakehouse_platform.text.csv_lines import first_fault, row_starts
from lakehouse_platform.text.json_values import shown

_PIECE = 1 << 22  # bytes checked at a time: the parser's best size, and a bound of memory
_MAX_ROW = 1 << 28  # bytes; the parser's largest block is four times that


@dataclass(frozen=True, slots=True)
class Violation:
    """A row, counted from 0, that breaks a rule of its table."""

    row: int
    reason: str


Violations: TypeAlias = Callable[[pa.Table], Violation | None]


class RowChecker:
    """Checks CSV bytes that arrive in order and in any pieces.

    What is checked: the header (unless told that there is none), quotes, UTF-8, number of fields, types, NOT NULL,
    CHECK constraints, and that a declared key neither is NULL nor stands twice among the rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key: Sequence[str] = (),
        violations: Violations | None = None,
        header: Sequence[str] | None = None,
        *,
        allow_missing: bool = False,
        first_line: int = 1,
        first_offset: int = 0,
    ) -> None:
        """Prepare to check.

        Args:
            schema: The table's columns.
            key: The declared key.
            violations: Finds the first row that breaks a CHECK constraint; see `constraints.violations_of`.
            header: The columns of the lines if no header comes first, as in an append; None to read the header.
            allow_missing: Whether the header may leave nullable columns out.
            first_line: Number of the first line, for errors.
            first_offset: Offset of the first byte, for errors.
        """
        self._schema = schema
        self._key = tuple(key)
        self._keys = KeySet(key)
        self._violations = violations
        self._allow_missing = allow_missing
        self._names = tuple(header) if header is not None else None
        self._line = first_line
        self._offset = first_offset
        self._splitter = RowSplitter()
        self._start = b""  # bytes before the header is whole
        self._blanks = b""  # empty lines, which are wrong only if a row follows
        self._sound = 0  # bytes of the unfinished row after which its quotes are checked next
        self._trusted = True
        self.rows = 0

    @property
    def names(self) -> tuple[str, ...] | None:
        """The columns of the lines in their order; None before the header is whole."""
        return self._names

    @property
    def is_whole(self) -> bool:
        """Whether all bytes so far are whole rows, the header included."""
        return self._names is not None and not self._start and self._splitter.is_whole

    def feed(self, data: Buffer, *, trusted: bool = False) -> None:
        """Check the next bytes as far as their rows are whole.

        Args:
            data: The bytes.
            trusted: They are the table's own at the same place. Only an unbroken run of such bytes from the beginning
                is believed (and only the keys of its rows are read): later, a changed quote could make other rows.

        Raises:
            RowError: A row is wrong; this checker cannot be used any further.
        """
        self._trusted = self._trusted and trusted
        chunk = memoryview(data)
        for start in range(0, len(chunk), _PIECE):
            self._take(bytes(chunk[start : start + _PIECE]))

    def finish(self) -> int:
        """Check what is left, a last row without line end included, and return the number of rows.

        Raises:
            RowError: It is wrong, or there is no header.
        """
        if self._names is None:
            self._read_header(self._start)
            self._start = b""
        rest = self._splitter.finish()
        if rest:
            self._check(rest)
        return self.rows

    def _take(self, chunk: bytes) -> None:
        if self._names is None:
            self._start += chunk
            end = header_end(self._start)
            if not end:
                self._check_header_size()
                return
            chunk, header = self._start[end:], self._start[:end]
            self._start = b""
            self._read_header(header)
        if rows := self._splitter.feed(chunk):
            self._sound = 0
            self._check(rows)
        self._check_rest()

    def _check_header_size(self) -> None:
        if len(self._start) > MAX_HEADER:
            raise RowError(
                1, None, f"the first line must be the header, but is longer than {MAX_HEADER} bytes", 0
            )

    def _read_header(self, line: bytes) -> None:
        header = read_header(line, self._schema, allow_missing=self._allow_missing)
        self._names = header.names
        self._line += header.lines
        self._offset += header.size

    def _check_rest(self) -> None:
        """Check the quotes of a row that is not whole yet, each time that it has doubled."""
        if self._trusted or self._splitter.rest_size <= self._sound:
            return
        rest = self._splitter.rest
        self._sound = 2 * len(rest)
        offset = self._offset + len(self._blanks)
        if fault := first_fault(rest, whole=False):
            raise RowError(self._line + self._blanks.count(b"\n"), None, fault.reason, offset)
        if len(rest) > _MAX_ROW:
            raise RowError(self._line, None, f"the row is longer than {_MAX_ROW} bytes", offset)

    def _check(self, rows: bytes) -> None:
        names = self._names or ()
        rows, self._blanks = self._blanks + rows, b""
        sound = without_blank_end(rows, len(names))
        self._blanks = rows[len(sound) :]
        if sound:
            self._check_sound_rows(sound, names)

    def _check_sound_rows(self, rows: bytes, names: tuple[str, ...]) -> None:
        if not self._trusted:
            table = parse_lines(rows, names, self._schema, first_line=self._line, first_offset=self._offset)
            self._check_constraints(rows, table)
            self._check_keys(rows, table)
            self.rows += table.num_rows
        elif self._key:
            table = parse_columns(rows, names, self._schema, self._key)
            self._check_keys(rows, table)
            self.rows += table.num_rows
        else:
            self.rows += len(row_starts(rows)) - 1
        self._line += rows.count(b"\n")
        self._offset += len(rows)

    def _check_constraints(self, rows: bytes, table: pa.Table) -> None:
        if self._violations and (found := self._violations(table)):
            raise self._refused(rows, found.row, None, found.reason)

    def _check_keys(self, rows: bytes, table: pa.Table) -> None:
        if not self._key:
            return
        for name in self._key:
            if table.column(name).null_count:
                row = pc.call_function(
                    "index", [table.column(name).is_null()], pc.IndexOptions(pa.scalar(True))
                ).as_py()
                raise self._refused(rows, row, name, "the key is empty, but every row needs one")
        row = self._keys.add(table)
        if row is not None:
            key = table.select(list(self._key)).slice(row, 1).to_pylist()[0]
            text = ", ".join(f"{name} = {shown(value)}" for name, value in key.items())
            raise self._refused(rows, row, self._key[0], f"key {text} stands twice in the file")

    def _refused(self, rows: bytes, row: int, column: str | None, reason: str) -> RowError:
        start = int(row_starts(rows)[row])
        return RowError(self._line + rows.count(b"\n", 0, start), column, reason, self._offset + start)
