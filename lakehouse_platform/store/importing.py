"""Files into tables: new ones and existing ones, all rows in one commit or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lakehouse_platform.store.csv_source import CsvOptions, open_csv
from lakehouse_platform.store.parquet_source import ParquetOptions, open_parquet
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.source_files import is_uri

if TYPE_CHECKING:
    from lakehouse_platform.store.table import Table

T = TypeVar("T")


def csv_import(
    source: str | os.PathLike[str], options: CsvOptions | None = None, *, into: pa.Schema | None = None
) -> RowSource:
    """Open a CSV file for import.

    Args:
        source: A path or URI; gzip is recognised.
        options: How to read it.
        into: Columns of the table that the rows are for: the file's are matched by name, in any order.

    Raises:
        SourceNotFoundError, SourceFormatError, StoragePermissionError: See `open_csv`.
    """
    options = options or CsvOptions()
    opened = open_csv(source, options if into is None else replace(options, schema=into))
    return opened.ahead() if is_uri(os.fspath(source)) else opened


def parquet_import(
    source: str | os.PathLike[str], options: ParquetOptions | None = None, *, into: pa.Schema | None = None
) -> RowSource:
    """Open Parquet files for import: a file, a directory or a pattern.

    Args:
        source: A path, URI or pattern.
        options: How to read them.
        into: Columns of the table that the rows are for: the files' are matched by name, in any order.

    Raises:
        SourceNotFoundError, SourceFormatError, StoragePermissionError: See `open_parquet`.
    """
    options = options or ParquetOptions()
    opened = open_parquet(source, options if into is None else replace(options, schema=into))
    return opened.ahead() if is_uri(os.fspath(source)) else opened


def create_from_source(
    table: Table,
    source: RowSource,
    *,
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    description: str = "",
) -> Table:
    """Create a table with the rows of a source; if a row is refused, no table is left.

    Raises:
        SourceFormatError: A row cannot be read; line or file and column are named.
        StorageError: The table cannot be created; see `creation.create_table`.
    """
    return _landed(
        source,
        lambda rows: table.create(
            source.schema,
            primary_key=primary_key,
            partition_by=partition_by,
            properties=properties,
            description=description,
            data=rows,
        ),
    )


def append_from_source(table: Table, source: RowSource) -> int:
    """Append the rows of a source in one commit and return the version.

    Raises:
        SourceFormatError: A row cannot be read; line or file and column are named.
        StorageError: The rows do not fit the table; see `writes.append`.
    """
    return _landed(source, table.append)


def _landed(source: RowSource, write: Callable[[pa.RecordBatchReader], T]) -> T:
    with source:
        try:
            return write(source.reader)
        except Exception:
            source.raise_pending()
            raise
