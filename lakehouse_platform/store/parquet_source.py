"""Parquet files to import: one file, a directory or a pattern, as one stream of record batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.store.parquet_types import table_type, widens
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.source_files import Progress, SourceFile, many_files, reading
from lakehouse_platform.text.json_values import closest

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """How to read Parquet files.

    Attributes:
        schema: The columns to make, matched by name in any order; None to take the files' own.
        storage_options: Credentials and endpoint for URIs.
        on_progress: Called with the bytes read and the bytes in total.
    """

    schema: pa.Schema | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    on_progress: Progress | None = None


def open_parquet(source: str | os.PathLike[str], options: ParquetOptions | None = None) -> RowSource:
    """Open the Parquet files that a path, URI, directory or pattern names, in order of their paths.

    All files must have the same columns, in any order. Types that a table does not have are taken as the
    nearest that holds every value.

    Raises:
        SourceNotFoundError: Nothing matches.
        SourceFormatError: A file is not Parquet, has a type no table can hold, or other columns than the
            first.
        StoragePermissionError: Access is denied.
    """
    options = options or ParquetOptions()
    files = many_files(source, ".parquet", options.storage_options)
    schema = _union(files)
    if options.schema is not None:
        _check_fits(schema, options.schema)
        schema = options.schema
    total = sum(file.size for file in files)
    return RowSource(schema, total, _batches(files, schema, total, options.on_progress))


def _union(files: Sequence[SourceFile]) -> pa.Schema:
    first = _schema_of(files[0])
    nullable = {column.name: column.nullable for column in first}
    for file in files[1:]:
        other = _schema_of(file)
        _check_same(first, files[0], other, file)
        for column in other:
            nullable[column.name] |= column.nullable
    return pa.schema([column.with_nullable(nullable[column.name]) for column in first])


def _schema_of(file: SourceFile) -> pa.Schema:
    with reading(file.shown), file.open() as opened:
        found = pq.ParquetFile(opened).schema_arrow
    lowered = [name.lower() for name in found.names]
    for column in found:
        if lowered.count(column.name.lower()) > 1:
            raise SourceFormatError(
                f"{file.shown!r} has column {column.name!r} twice: rename one of them.", column=column.name
            )
    return pa.schema([_table_field(column, file) for column in found])


def _table_field(column: pa.Field, file: SourceFile) -> pa.Field:
    data_type = table_type(column.type)
    if data_type is None:
        raise SourceFormatError(
            f"Column {column.name!r} of {file.shown!r} is {column.type}, which no table holds: cast it.",
            column=column.name,
            source=file.shown,
        )
    return pa.field(column.name, data_type, column.nullable)


def _check_same(first: pa.Schema, first_file: SourceFile, other: pa.Schema, file: SourceFile) -> None:
    for name in [*first.names, *other.names]:
        here, there = _type_in(first, name), _type_in(other, name)
        if here != there:
            raise SourceFormatError(
                f"Column {name!r} is {here or 'absent'} in {first_file.shown!r}, but {there or 'absent'} in "
                f"{file.shown!r}: import files of one kind at a time.",
                column=name,
            )


def _type_in(schema: pa.Schema, name: str) -> pa.DataType | None:
    return schema.field(name).type if name in schema.names else None


def _check_fits(found: pa.Schema, wanted: pa.Schema) -> None:
    for column in found:
        target = _type_in(wanted, column.name)
        if target is None:
            raise SourceFormatError(
                f"Column {column.name!r} of the files is no column of the table: "
                f"{closest(column.name, wanted.names)}.",
                column=column.name,
            )
        if not widens(column.type, target):
            raise SourceFormatError(
                f"Column {column.name!r} is {column.type} in the files, but {target} in the table: cast it.",
                column=column.name,
            )
    for column in wanted:
        if column.name not in found.names and not column.nullable:
            raise SourceFormatError(
                f"The files have no column {column.name!r}, which is NOT NULL: add it to them.",
                column=column.name,
            )


def _batches(
    files: Sequence[SourceFile], schema: pa.Schema, total: int, on_progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    done = 0
    for file in files:
        rows = 0
        with reading(file.shown), file.open() as opened:
            parquet = pq.ParquetFile(opened)
            for batch in parquet.iter_batches(_BATCH_ROWS):
                yield _conformed(batch, schema, file, rows)
                rows += len(batch)
                if on_progress is not None:
                    on_progress(done + file.size * rows // parquet.metadata.num_rows, total)
        done += file.size


def _conformed(
    batch: pa.RecordBatch, schema: pa.Schema, file: SourceFile, rows_before: int
) -> pa.RecordBatch:
    columns: list[pa.Array] = []
    for wanted in schema:
        if wanted.name not in batch.schema.names:
            columns.append(pa.nulls(len(batch), wanted.type))
            continue
        try:
            columns.append(_in_type(batch.column(wanted.name), wanted))
        except (pa.ArrowInvalid, ValueError) as error:
            raise SourceFormatError(
                f"Column {wanted.name!r} of {file.shown!r}, in rows {rows_before + 1} to "
                f"{rows_before + len(batch)}: "
                f"a value does not fit {wanted.type}: {error}. Cast the column first.",
                column=wanted.name,
                source=file.shown,
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _in_type(column: pa.Array, wanted: pa.Field) -> pa.Array:
    if column.null_count and not wanted.nullable:
        raise ValueError("NULL stands in a NOT NULL column")
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    return column.cast(wanted.type)
