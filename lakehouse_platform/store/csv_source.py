"""CSV files to import: options, column names and types, and the stream of rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

import pyarrow as pa

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.store.csv_rows import CsvRows, Layout, check_utf8, check_width
from lakehouse_platform.store.csv_tap import text_lines
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.source_files import Progress, SourceFile, one_file
from lakehouse_platform.text.csv_infer import (
    SAMPLE_ROWS,
    ColumnGuess,
    guess_types,
    header_names,
    sniff_delimiter,
)
from lakehouse_platform.text.csv_records import Record, records
from lakehouse_platform.text.json_values import closest

_SNIFF_LINES = 50  # enough for a sample whose fields hold some line ends


class InferMode(StrEnum):
    """How much of a file decides the types of its columns."""

    SAMPLE = "sample"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How to read a CSV file.

    Attributes:
        schema: The columns to make, matched by header name in any order; None to infer them.
        infer: `sample` judges types by the first 10 rows, `all` by every row (the file is read twice).
        delimiter: One character, or None to find out.
        dates: Whether ISO dates and times are inferred as such rather than as text.
        storage_options: Credentials and endpoint for URIs.
        on_progress: Called with the bytes read and the bytes in total.
    """

    schema: pa.Schema | None = None
    infer: InferMode = InferMode.SAMPLE
    delimiter: str | None = None
    dates: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    on_progress: Progress | None = None


def open_csv(source: str | os.PathLike[str], options: CsvOptions | None = None) -> RowSource:
    """Open a CSV file, gzipped or not, with a header; the returned stream reads it once.

    Raises:
        SourceNotFoundError: No file is there.
        SourceFormatError: The header cannot be used or does not fit the schema, or inferring met a bad line.
        StoragePermissionError: Access is denied.
    """
    options = options or CsvOptions()
    return csv_rows_of(one_file(source, options.storage_options), options)


def csv_rows_of(file: SourceFile, options: CsvOptions) -> RowSource:
    """Return the rows of a CSV file; see `open_csv`."""
    layout = _layout(file, options)
    return RowSource(layout.schema, file.size, CsvRows(file, layout, options.on_progress).batches())


def csv_names(file: SourceFile, delimiter: str) -> list[str]:
    """Return the columns that the header of a CSV file names.

    Raises:
        SourceFormatError: The header cannot be used.
    """
    return header_names(_first_records(file, delimiter)[0], delimiter)


def _layout(file: SourceFile, options: CsvOptions) -> Layout:
    delimiter = _checked_delimiter(options.delimiter) if options.delimiter else _sniffed(file)
    first, *rows = _first_records(file, delimiter)
    names = header_names(first, delimiter)
    schema = options.schema
    if schema is not None:
        _check_names(names, schema, file)
        return Layout(delimiter=delimiter, names=names, schema=schema, guessed=False)
    if options.infer == InferMode.ALL:
        types = _types_of_all(file, delimiter, names, dates=options.dates)
    else:
        types = _types_of_sample(rows, delimiter, len(names), dates=options.dates)
    schema = pa.schema(list(zip(names, types, strict=True)))
    return Layout(delimiter=delimiter, names=names, schema=schema, guessed=True)


def _checked_delimiter(delimiter: str) -> str:
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\r\n':
        raise SourceFormatError(
            f"Delimiter {delimiter!r} cannot be used: give one ASCII character, such as ',' or ';'.",
            delimiter=delimiter,
        )
    return delimiter


def _sniffed(file: SourceFile) -> str:
    with text_lines(file) as lines:
        return sniff_delimiter(list(islice(lines, _SNIFF_LINES)))


def _first_records(file: SourceFile, delimiter: str) -> list[Record]:
    with text_lines(file) as lines:
        found = (record for record in records(lines, delimiter) if record.raw)
        first = list(islice(found, 1 + SAMPLE_ROWS))
    if not first:
        raise SourceFormatError(
            f"{file.shown!r} is empty: its first line must name the columns.", source=file.shown
        )
    if first[0].line != 1:
        raise SourceFormatError(
            f"Line 1 of {file.shown!r} is empty, but must name the columns: remove the empty lines above the header.",
            line=1,
        )
    for record in first:
        check_utf8(record)
    return first


def _check_names(names: Sequence[str], schema: pa.Schema, file: SourceFile) -> None:
    for name in names:
        if name not in schema.names:
            raise SourceFormatError(
                f"Column {name!r} of {file.shown!r} is no column: {closest(name, schema.names)}.",
                column=name,
            )
    for column in schema:
        if column.name not in names and not column.nullable:
            raise SourceFormatError(
                f"{file.shown!r} has no column {column.name!r}, which is NOT NULL: add it to the file.",
                column=column.name,
            )


def _types_of_sample(rows: Sequence[Record], delimiter: str, width: int, *, dates: bool) -> list[pa.DataType]:
    fields = [record.values(delimiter) for record in rows]
    for record, values in zip(rows, fields, strict=True):
        check_width(record, len(values), width)
    return guess_types(fields, width, dates=dates)


def _types_of_all(
    file: SourceFile, delimiter: str, names: Sequence[str], *, dates: bool
) -> list[pa.DataType]:
    guesses = [ColumnGuess(dates=dates) for _ in names]
    texts = pa.schema([(name, pa.string()) for name in names])
    layout = Layout(delimiter=delimiter, names=names, schema=texts, guessed=False)
    for batch in CsvRows(file, layout).batches():
        for guess, column in zip(guesses, batch.columns, strict=True):
            if not guess.settled:
                guess.observe(column)
    return [guess.data_type() for guess in guesses]
