"""DatabaseOps: one table anywhere, with JSON in and out, as the second seed knows it."""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

import pyarrow as pa

from lakehouse_platform.model.origin import Origin
from lakehouse_platform.model.results import OptimizeResult, SkippingStats, VacuumResult
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.model.times import from_epoch_ms
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.buffer import WriteBuffer
from lakehouse_platform.store.creation import check_free
from lakehouse_platform.store.csv_source import CsvOptions
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.importing import create_from_source, csv_import, parquet_import
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.merge import OPERATION_COLUMN, MergeSource
from lakehouse_platform.store.parquet_source import ParquetOptions
from lakehouse_platform.store.rows import RowsIn
from lakehouse_platform.store.sql import SqlResult
from lakehouse_platform.store.table import Table
from lakehouse_platform.text.json_rows import objects_from_json, rows_from_json, rows_from_objects
from lakehouse_platform.text.json_write import table_to_json

_GIVEN = "__given_"


class DatabaseOps:
    """One Delta table at any path or URI.

    Use as a context manager, or call `close`, so that buffered rows are committed.

    Attributes:
        table: The table itself, with everything that has no JSON form here.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._buffer_lock = threading.Lock()
        self._buffer: WriteBuffer | None = None

    # ── Creating and opening ──────────────────────────────────────────────────────────────────────

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Schema,
        *,
        partition_by: Sequence[str] = (),
        config: LakehouseConfig | None = None,
    ) -> Self:
        """Create an empty table in a new or empty directory.

        Raises:
            TableExistsError, DirectoryNotEmptyError: The place is taken.
            InvalidSchemaTextError: The schema is wrong.
        """
        return cls(_table(path, config).create(schema, partition_by=partition_by))

    @classmethod
    def create_from_csv(
        cls,
        path: str | os.PathLike[str],
        csv: str | os.PathLike[str],
        *,
        options: CsvOptions | None = None,
        primary_key: Sequence[str] = (),
        config: LakehouseConfig | None = None,
    ) -> Self:
        """Create a table from a CSV file, its columns inferred, all rows in one commit.

        Raises:
            SourceNotFoundError, SourceFormatError: The file is missing or a value does not fit: line and column.
            TableExistsError, DirectoryNotEmptyError: The place is taken.
        """
        table = _table(path, config)
        check_free(table.location)
        options = options or CsvOptions(storage_options=table.config.plain_storage_options)
        create_from_source(table, csv_import(csv, options), primary_key=primary_key)
        return cls(table)

    @classmethod
    def create_from_parquet(
        cls,
        path: str | os.PathLike[str],
        parquet: str | os.PathLike[str],
        *,
        primary_key: Sequence[str] = (),
        config: LakehouseConfig | None = None,
    ) -> Self:
        """Create a table from a Parquet file or a glob of them, all rows in one commit.

        Raises:
            SourceNotFoundError, SourceFormatError: Nothing matches, or the files' columns differ.
            TableExistsError, DirectoryNotEmptyError: The place is taken.
        """
        table = _table(path, config)
        check_free(table.location)
        options = ParquetOptions(storage_options=table.config.plain_storage_options)
        create_from_source(table, parquet_import(parquet, options), primary_key=primary_key)
        return cls(table)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, config: LakehouseConfig | None = None) -> Self:
        """Open any existing Delta table, whoever wrote it.

        Raises:
            TableNotFoundError, NotADeltaTableError: There is none; the message says why.
        """
        table = _table(path, config)
        open_table(table.location)
        return cls(table)

    # ── Writing ───────────────────────────────────────────────────────────────────────────────────

    def insert(self, data: RowsIn) -> int:
        """Add rows in one commit and return the version."""
        return self.table.append(data)

    def insert_json(self, rows: str | bytes) -> int:
        """Add rows given as JSON (array, object or lines) in one commit and return the version.

        Raises:
            InvalidRowsError: The JSON is wrong, or a row does not fit; row and column are named.
        """
        return self.table.append(self._from_json(rows))

    def insert_buffered_json(self, rows: str | bytes) -> int:
        """Put rows into the write buffer and return how many are waiting; they are checked now, committed later.

        The buffer commits when it is full or old (see the `buffer_*` settings), at `flush_write_buffer` and at `close`.
        """
        buffer = self._open_buffer()
        buffer.add(self._from_json(rows))
        return buffer.pending_rows

    def flush_write_buffer(self) -> int | None:
        """Commit all buffered rows and return the version; None if there were none.

        Raises:
            LakehouseError: The commit failed; the rows are kept for the next flush.
        """
        return self._open_buffer().flush()

    def merge_json(self, rows: str | bytes, on: str | Sequence[str] | None = None) -> str:
        """Merge rows given as JSON, each with an optional `_op`, in one commit; return the metrics as JSON.

        A field that a row leaves out keeps its value when the row updates, and is NULL when it inserts.

        Raises:
            InvalidRowsError, DuplicateKeyError, SchemaMismatchError: See `DeltaStore.merge`.
        """
        key = (on,) if isinstance(on, str) else on
        result = self.table.merge(merge_source(rows, self.table.arrow_schema()), key)
        return json.dumps(
            {
                "rows_inserted": result.rows_inserted,
                "rows_updated": result.rows_updated,
                "rows_deleted": result.rows_deleted,
            }
        )

    def delete_rows_where(self, predicate: str) -> int:
        """Delete the rows that fulfil a predicate and return how many there were."""
        return self.table.delete(predicate).rows_deleted

    def set_primary_key(self, column: str | Sequence[str]) -> int:
        """Declare the primary key and return the version."""
        return self.table.set_primary_key((column,) if isinstance(column, str) else column)

    def primary_key(self) -> str | tuple[str, ...] | None:
        """Return the declared key: its column, its columns if there are several, or None."""
        key = self.table.primary_key()
        return (key[0] if len(key) == 1 else key) or None if key else None

    # ── Reading ───────────────────────────────────────────────────────────────────────────────────

    def query_json(self, text: str) -> str:
        """Run a read-only query over `data` and return a JSON array of row objects, NULL fields included."""
        return _json(self.table.sql(text))

    def query_version(self, text: str, version: int) -> pa.Table:
        """Run a query over an old version."""
        return self.table.sql(text, version=version).to_arrow()

    def query_version_json(self, text: str, version: int) -> str:
        """Run a query over an old version and return JSON."""
        return _json(self.table.sql(text, version=version))

    def query_timestamp(self, text: str, moment: int | str | datetime) -> pa.Table:
        """Run a query over the table as it was at a time: RFC 3339 text, datetime, or milliseconds since 1970."""
        return self.table.sql(text, version=self._version_at(moment)).to_arrow()

    def query_timestamp_json(self, text: str, moment: int | str | datetime) -> str:
        """Run a query over the table as it was at a time and return JSON."""
        return _json(self.table.sql(text, version=self._version_at(moment)))

    def list_parquet_files(self) -> list[str]:
        """Return the live data files' paths, relative to the table, oldest first."""
        return [file.path for file in self.table.data_files()]

    def get_schema(self) -> Schema:
        """Return the columns and the declared key."""
        return self.table.schema()

    def get_data_skipping_stats(self, predicate: str | None = None) -> SkippingStats:
        """Return how many files and bytes the engine leaves unread for a predicate."""
        return self.table.skipping(predicate)

    # ── Maintenance ───────────────────────────────────────────────────────────────────────────────

    def optimize(self, target_size: int | None = None, where: str | None = None) -> OptimizeResult:
        """Merge small files.

        Args:
            target_size: Size to aim at, in bytes; None for the configured one.
            where: Condition over partition columns; None for all files.
        """
        megabytes = None if target_size is None else max(1, round(target_size / 1_000_000))
        return self.table.compact(megabytes, where)

    def zorder(self, columns: Sequence[str]) -> OptimizeResult:
        """Cluster rows by columns."""
        return self.table.z_order(columns)

    def vacuum(self, retention_hours: int | None = None) -> VacuumResult:
        """Delete files that only versions older than the retention need."""
        return self.table.vacuum(retention_hours)

    def vacuum_dry_run(self, retention_hours: int | None = None) -> list[str]:
        """Return the files that `vacuum` would delete."""
        return list(self.table.vacuum(retention_hours, dry_run=True).files)

    # ── Closing ───────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Commit what is buffered; the object can be used further.

        Raises:
            LakehouseError: The commit failed; the rows are kept.
        """
        with self._buffer_lock:
            if self._buffer is None:
                return
            self._buffer.flush()
            atexit.unregister(self._buffer.flush)
            self._buffer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _from_json(self, rows: str | bytes) -> pa.Table:
        return rows_from_json(rows, self.table.arrow_schema())

    def _version_at(self, moment: int | str | datetime) -> int:
        return self.table.version_at(from_epoch_ms(moment) if isinstance(moment, int) else moment)

    def _open_buffer(self) -> WriteBuffer:
        with self._buffer_lock:
            if self._buffer is None:
                config = self.table.config
                self._buffer = WriteBuffer(
                    self.table.append,
                    max_rows=config.buffer_max_rows,
                    max_mb=config.buffer_max_mb,
                    max_seconds=config.buffer_max_seconds,
                )
                # A program that ends without close() still commits, as an open file would be flushed.
                atexit.register(self._buffer.flush)
            return self._buffer


def _table(path: str | os.PathLike[str], config: LakehouseConfig | None) -> Table:
    config = config or LakehouseConfig()
    return Table(Location.parse(path, config.plain_storage_options), config, Origin())


def _json(result: SqlResult) -> str:
    return table_to_json(result.to_arrow())


def merge_source(text: str | bytes, schema: pa.Schema) -> MergeSource:
    """Return merge rows with only the columns that occur, and for those that some rows leave out, which gave them."""
    extra = [] if OPERATION_COLUMN in schema.names else [pa.field(OPERATION_COLUMN, pa.string())]
    every = pa.schema([*(field.with_nullable(True) for field in schema), *extra])
    objects = objects_from_json(text, every)
    rows = rows_from_objects(objects, every)
    counts = {name: sum(name in row for row in objects) for name in every.names}
    rows = rows.select([name for name in every.names if counts[name] or not objects])
    given: dict[str, str] = {}
    for name in rows.column_names:
        if name != OPERATION_COLUMN and counts[name] < len(objects):
            given[name] = _GIVEN + name
            rows = rows.append_column(given[name], pa.array([name in row for row in objects]))
    return MergeSource(rows, given)
