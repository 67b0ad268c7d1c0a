"""One reading of a CSV file into batches of the final types.

pyarrow parses, but it is too generous in places and its errors name no line. So bytes and values that it may
have read too generously are noticed in passing, and only then the texts of the columns in question are read
and judged. The place of an error is looked for with `text.csv_records`, which is slow and exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pa_csv

from lakehouse_platform.errors import LakehouseError, SourceFormatError
from lakehouse_platform.model.schema import type_text
from lakehouse_platform.store.csv_tap import CsvTap, text_lines
from lakehouse_platform.store.source_files import Progress, SourceFile, reading
from lakehouse_platform.text.csv_columns import (
    convert_options,
    finish,
    first_bad,
    is_number,
    maybe_changed,
    parse_options,
    problem,
)
from lakehouse_platform.text.csv_records import Record, records
from lakehouse_platform.text.json_values import shown

# Bytes parsed at a time. 1 MB was the fastest for 40 MB on two cores (4 and 16 MB: 30 % slower). A record
# longer than a block makes pyarrow fail; then the next size is tried.
_BLOCKS = (2**20, 2**24, 2**28)
_COLUMN = re.compile(r"CSV column #(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is known of a CSV file before its rows are read.

    Attributes:
        delimiter: Its delimiter.
        names: Its columns, as in the header.
        schema: The columns to make.
        guessed: Whether their types were inferred, so that a text must come out of its type as it went in.
    """

    delimiter: str
    names: Sequence[str]
    schema: pa.Schema
    guessed: bool

    @property
    def fields(self) -> list[pa.Field]:
        """The fields of the file's columns, in the file's order."""
        return [self.schema.field(name) for name in self.names]


class CsvRows:
    """One reading of a CSV file."""

    def __init__(self, file: SourceFile, layout: Layout, on_progress: Progress | None = None) -> None:
        self._file = file
        self._layout = layout
        self._on_progress = on_progress
        self._rows = 0
        self._block = _BLOCKS[0]
        self._doubtful = set[str]()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the schema's columns.

        Raises:
            SourceFormatError: A line cannot be read as the schema says; the error names it.
        """
        with reading(self._file.shown):
            for self._block in _BLOCKS:
                try:
                    yield from self._read()
                    return
                except pa.ArrowInvalid as error:
                    if "straddling" not in str(error) or self._block == _BLOCKS[-1]:
                        raise self._located(error) from error

    def _read(self) -> Iterator[pa.RecordBatch]:
        types = {field.name: field.type for field in self._layout.fields}
        numbers = {name for name, data_type in types.items() if is_number(data_type)}
        with CsvTap(self._file, self._layout.delimiter if numbers else None) as tap:
            cut_off = False
            for batch in self._unseen(_parsed(tap, self._layout, types, self._block)):
                cut_off = _ends_in_line_end(batch.column(self._layout.names[-1]))
                finished = self._finished(batch)
                self._rows += len(batch)
                self._report(tap.bytes_read)
                yield finished
            if tap.quotes % 2 or cut_off:
                self._look_for_open_quote()
            self._doubtful |= numbers if tap.doubtful else set()
        self._judge_doubtful()

    def _unseen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Leave out the rows that were yielded before a larger block had to be taken."""
        to_skip = self._rows
        for batch in batches:
            skipped = min(to_skip, len(batch))
            to_skip -= skipped
            if skipped < len(batch):
                yield batch.slice(skipped)

    def _finished(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        present = set(self._layout.names)
        columns = [
            self._in_final_type(batch.column(field.name), field)
            if field.name in present
            else pa.nulls(len(batch), field.type)
            for field in self._layout.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._layout.schema)

    def _in_final_type(self, column: pa.Array, field: pa.Field) -> pa.Array:
        if maybe_changed(column):
            self._doubtful.add(field.name)
        try:
            return finish(column, field)
        except ValueError as error:
            raise self._located(error, field.name) from error

    def _report(self, done: int) -> None:
        if self._on_progress is not None:
            self._on_progress(done, self._file.size)

    def _judge_doubtful(self) -> None:
        """Read the texts of doubtful columns and refuse one that its type does not hold."""
        if not self._doubtful:
            return
        texts = {name: pa.string() for name in self._layout.names if name in self._doubtful}
        with CsvTap(self._file, None) as tap:
            row = 0
            for batch in _parsed(tap, self._layout, texts, self._block):
                for name in texts:
                    bad = first_bad(
                        batch.column(name), self._layout.schema.field(name), guessed=self._layout.guessed
                    )
                    if bad is not None:
                        raise self._located(SourceFormatError(f"column {name!r}"), name, row + bad)
                row += len(batch)

    def _look_for_open_quote(self) -> None:
        """Refuse a quoted field that the end of the file cuts off; pyarrow takes it as closed there."""
        with text_lines(self._file) as lines:
            for _ in records(lines, self._layout.delimiter):
                pass

    def _located(self, cause: Exception, column: str | None = None, row: int | None = None) -> LakehouseError:
        """Return the error at the first bad line from a row on, or the cause without a line."""
        if column is None and (match := _COLUMN.search(str(cause))):
            column = self._layout.names[int(match[1])]
        try:
            self._check_lines(self._rows if row is None else row, column)
        except SourceFormatError as error:
            return error
        return SourceFormatError(f"{self._file.shown!r} cannot be read: {cause}", source=self._file.shown)

    def _check_lines(self, first_row: int, column: str | None) -> None:
        width = len(self._layout.names)
        row = -1  # the header
        with text_lines(self._file) as lines:
            for record in records(lines, self._layout.delimiter):
                if not record.raw and width > 1:
                    continue
                if row >= first_row:
                    self._check_record(record, column)
                row += 1

    def _check_record(self, record: Record, column: str | None) -> None:
        check_utf8(record)
        values = record.values(self._layout.delimiter)
        check_width(record, len(values), len(self._layout.names))
        for value, field in zip(values, self._layout.fields, strict=True):
            if column not in {None, field.name}:
                continue
            if reason := problem(value, field, guessed=self._layout.guessed):
                raise self._refused(record.line, field, reason)

    def _refused(self, line: int, field: pa.Field, reason: str) -> SourceFormatError:
        hint = (
            " The type was inferred from the first rows: import with --infer all, or give a schema."
            if self._layout.guessed
            else " Correct the value or choose another type."
        )
        return SourceFormatError(
            f"Line {line}, column {field.name!r} ({type_text(field.type)}): {reason}.{hint}",
            line=line,
            column=field.name,
        )


def check_width(record: Record, found: int, wanted: int) -> None:
    """Check that a record has as many fields as the header.

    Raises:
        SourceFormatError: It has not.
    """
    if found != wanted:
        raise SourceFormatError(
            f"Line {record.line} has {found} field{'s' * (found != 1)}, but the header has {wanted}: "
            f"{shown(record.raw)}. Correct the line, or quote fields that hold the delimiter.",
            line=record.line,
        )


def check_utf8(record: Record) -> None:
    """Check that a record was UTF-8.

    Raises:
        SourceFormatError: It was not.
    """
    try:
        record.raw.encode()
    except UnicodeEncodeError as error:
        byte = ord(record.raw[error.start]) - 0xDC00
        raise SourceFormatError(
            f"Line {record.line} is not UTF-8 (byte 0x{byte:02X}): convert the file first, "
            "as with 'iconv -f WINDOWS-1252 -t UTF-8'.",
            line=record.line,
        ) from error


def _ends_in_line_end(column: pa.Array) -> bool:
    """Tell whether a column's last text ends in a line end, as one does whose quote was never closed."""
    last = column[-1].as_py()
    return isinstance(last, str) and last.endswith(("\n", "\r"))


def _parsed(
    tap: CsvTap, layout: Layout, types: Mapping[str, pa.DataType], block: int
) -> Iterator[pa.RecordBatch]:
    read = pa_csv.ReadOptions(block_size=block, column_names=list(layout.names), skip_rows_after_names=1)
    parse = parse_options(layout.delimiter, len(layout.names))
    yield from pa_csv.open_csv(tap.stream(), read, parse, convert_options(types))
