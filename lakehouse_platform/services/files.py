"""Files into tables and rows into files, for every front end: which form a file has, and how much went through."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import BinaryIO, Protocol, runtime_checkable

import pyarrow as pa

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.model.results import MergeResult
from lakehouse_platform.services.json_source import open_json
from lakehouse_platform.store.creation import check_free
from lakehouse_platform.store.csv_source import CsvOptions, InferMode
from lakehouse_platform.store.database import merge_source
from lakehouse_platform.store.exporting import ExportFormat, export
from lakehouse_platform.store.importing import csv_import, parquet_import
from lakehouse_platform.store.parquet_source import ParquetOptions
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.source_files import Progress, is_uri
from lakehouse_platform.store.table import Table
from lakehouse_platform.text.json_rows import rows_from_json


class FileForm(StrEnum):
    """A form of files that rows can be imported from."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"

    @classmethod
    def of(cls, source: str) -> FileForm:
        """Return the form that a file's name means; a directory or pattern without an ending means Parquet.

        Raises:
            SourceFormatError: It means none.
        """
        name = source.rstrip("/").rpartition("/")[2].lower().removesuffix(".gz")
        ending = name.rpartition(".")[2] if "." in name else ""
        forms = {"csv": cls.CSV, "tsv": cls.CSV, "parquet": cls.PARQUET, "": cls.PARQUET}
        forms |= dict.fromkeys(("jsonl", "ndjson"), cls.JSONL)
        if ending not in forms:
            raise SourceFormatError(
                f"{source!r} ends in none of .csv, .tsv, .jsonl, .ndjson and .parquet: rename it, or give JSON to "
                "`lakehouse insert`.",
                source=source,
            )
        return forms[ending]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How to read a file.

    Attributes:
        delimiter: What separates CSV fields; None to find out.
        infer_all: Whether all rows of a CSV file decide its types, not the first ten.
        evolve: Whether columns that the table lacks are added.
        on_progress: Called with the bytes read and the bytes in total.
    """

    delimiter: str | None = None
    infer_all: bool = False
    evolve: bool = False
    on_progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """An import: the version that it made and its rows."""

    version: int
    rows: int


@runtime_checkable
class Readable(Protocol):
    """Rows that can be read as a stream of record batches."""

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        ...


def create_from_file(
    table: Table,
    source: str,
    form: FileForm,
    options: FileOptions,
    *,
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    description: str = "",
) -> FileResult:
    """Create a table with the columns and rows of a file; if a row is refused, no table is left.

    Raises:
        TableExistsError, DirectoryNotEmptyError: The place is taken.
        SourceNotFoundError, SourceFormatError: The file is missing or wrong; line and column are named.
        StorageError: The table cannot be created with these rows.
    """
    check_free(table.location)
    opened = _open(table, source, form, options, into=None)

    def create(rows: pa.RecordBatchReader) -> int:
        return table.create(
            opened.schema,
            primary_key=primary_key,
            partition_by=partition_by,
            properties=properties,
            description=description,
            data=rows,
        ).version()

    return _landed(opened, create)


def append_file(table: Table, source: str, form: FileForm, options: FileOptions) -> FileResult:
    """Append the rows of a file to a table in one commit.

    Raises:
        SourceNotFoundError, SourceFormatError: The file is missing or wrong; line and column are named.
        StorageError: The rows do not fit the table.
    """
    into = table.arrow_schema()
    if options.evolve:
        into = _widened(into, table, source, form, options)
    opened = _open(table, source, form, options, into=into)
    return _landed(opened, lambda rows: table.append(rows, evolve=options.evolve))


def insert_json(table: Table, text: str | bytes) -> FileResult:
    """Append rows given as JSON in one commit.

    Raises:
        InvalidRowsError: The text is not JSON, or a row does not fit; row and column are named.
        StorageError: The table refuses the rows.
    """
    rows = rows_from_json(text, table.arrow_schema())
    return FileResult(version=table.append(rows), rows=rows.num_rows)


def merge_json(table: Table, text: str | bytes, on: Sequence[str] | None) -> MergeResult:
    """Merge rows given as JSON, each with an optional `_op`, in one commit.

    Raises:
        InvalidRowsError, DuplicateKeyError, SchemaMismatchError: See `merge.merge`.
    """
    return table.merge(merge_source(text, table.arrow_schema()), on)


def export_rows(
    rows: Readable | pa.Table,
    destination: str | os.PathLike[str] | BinaryIO,
    form: str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Write rows to a file, a URI or a binary stream and return how many there were; see `exporting.export`.

    Raises:
        InvalidArgumentError: The form is not known, or the place cannot be written to.
        StorageIoError, StoragePermissionError: Writing failed.
    """
    reader = rows.reader() if isinstance(rows, Readable) else rows.to_reader()
    kind = ExportFormat(form) if form else None
    return export(reader, destination, kind, storage_options=storage_options, on_progress=on_progress)


def _open(
    table: Table, source: str, form: FileForm, options: FileOptions, *, into: pa.Schema | None
) -> RowSource:
    storage_options = table.config.plain_storage_options
    if form is FileForm.PARQUET:
        wanted = ParquetOptions(storage_options=storage_options, on_progress=options.on_progress)
        return parquet_import(source, wanted, into=into)
    if form is FileForm.CSV:
        return csv_import(source, _csv_options(options, storage_options), into=into)
    if into is None:
        raise SourceFormatError(
            "JSON Lines do not say which types their columns have: create the table first."
        )
    rows = open_json(source, into, storage_options, options.on_progress)
    return rows.ahead() if is_uri(source) else rows


def _csv_options(options: FileOptions, storage_options: Mapping[str, str]) -> CsvOptions:
    return CsvOptions(
        infer=InferMode.ALL if options.infer_all else InferMode.SAMPLE,
        delimiter=options.delimiter,
        storage_options=storage_options,
        on_progress=options.on_progress,
    )


def _widened(into: pa.Schema, table: Table, source: str, form: FileForm, options: FileOptions) -> pa.Schema:
    """Return the table's columns and those that only the file has, in the types that the file suggests."""
    if form is FileForm.JSONL:
        raise SourceFormatError("JSON Lines cannot add columns: add them first with `lakehouse add-columns`.")
    with _open(table, source, form, replace(options, on_progress=None), into=None) as found:
        new = [column.with_nullable(True) for column in found.schema if column.name not in into.names]
    return pa.schema([*into, *new])


def _landed(opened: RowSource, write: Callable[[pa.RecordBatchReader], int]) -> FileResult:
    rows = 0

    def counted() -> Generator[pa.RecordBatch]:
        nonlocal rows
        for batch in opened.reader:
            rows += batch.num_rows
            yield batch

    stream = counted()
    with opened, contextlib.closing(stream):
        try:
            version = write(pa.RecordBatchReader.from_batches(opened.schema, stream))
        except Exception:
            opened.raise_pending()
            raise
    return FileResult(version=version, rows=rows)
