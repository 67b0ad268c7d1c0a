"""DeltaStore: the tables of one lakehouse by name, and any other table by place."""

from __future__ import annotations

import copy
import difflib
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable

from lakehouse_platform.errors import LakehouseError, TableExistsError, TableNotFoundError
from lakehouse_platform.model.names import check_table_name, is_table_name
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.model.results import (
    DeleteResult,
    MergeResult,
    OptimizeResult,
    SkippingStats,
    TableInfo,
    UpdateResult,
    VacuumResult,
    VersionInfo,
)
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.completing import complete
from lakehouse_platform.store.creation import check_free
from lakehouse_platform.store.csv_source import CsvOptions
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.importing import create_from_source, csv_import, parquet_import
from lakehouse_platform.store.limits import sql_limits
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.merge import MergeSource
from lakehouse_platform.store.newest import NewestTables
from lakehouse_platform.store.parquet_source import ParquetOptions
from lakehouse_platform.store.rows import RowsIn
from lakehouse_platform.store.scan import Rows
from lakehouse_platform.store.sql import SqlGuard, SqlResult, run_sql
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import TableSpec
from lakehouse_platform.store.transaction import Transaction

if TYPE_CHECKING:
    from pathlib import Path


class DeltaStore:
    """The tables of one lakehouse. Synchronous, and safe to share between threads.

    Attributes:
        config: Its settings.
        origin: Stamped into every commit.
        base: Where the lakehouse stands.
    """

    def __init__(
        self, config: LakehouseConfig | str | Path | None = None, *, origin: Origin | None = None
    ) -> None:
        if config is None or isinstance(config, LakehouseConfig):
            self.config = config or LakehouseConfig()
        else:
            self.config = LakehouseConfig(base_path=os.fspath(config))
        self.origin = origin or Origin()
        self.base = Location.parse(self.config.base_path, self.config.plain_storage_options)
        self._newest = NewestTables()

    def through(self, origin: Origin) -> DeltaStore:
        """Return this store with another origin of its changes."""
        other = copy.copy(self)
        other.origin = origin
        return other

    # ── Catalog ───────────────────────────────────────────────────────────────────────────────────

    def tables(self) -> list[str]:
        """Return the names of the lakehouse's tables, sorted; what is no Delta table is left out."""
        with translated(self.base):
            found = self.base.entries()
        return sorted(
            info.base_name for info in found if _is_directory(info) and self._is_table(info.base_name)
        )

    def table(self, name: str) -> Table:
        """Return a table of the lakehouse, without looking whether it exists.

        Raises:
            InvalidNameError: No table can have this name.
        """
        return self._table(self.base.child(check_table_name(name)))

    def at(self, place: str | os.PathLike[str]) -> Table:
        """Return the table at any path or URI, without looking whether it exists.

        Raises:
            InvalidNameError: The path cannot hold a table.
        """
        return self._table(Location.parse(place, self.config.plain_storage_options))

    def create(
        self,
        name: str,
        schema: Schema | pa.Schema,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Table:
        """Create an empty table and return it; see `creation.create_table`."""
        return self.table(name).create(
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            properties=properties,
            description=description,
        )

    def create_from_csv(
        self,
        name: str,
        source: str | os.PathLike[str],
        options: CsvOptions | None = None,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
    ) -> Table:
        """Create a table from a CSV file, all rows in one commit, and return it.

        Raises:
            SourceNotFoundError, SourceFormatError: The file is missing or a value does not fit: line and column.
            TableExistsError, DirectoryNotEmptyError: The place is taken.
        """
        table = self.table(name)
        check_free(table.location)
        opened = csv_import(source, options or CsvOptions(storage_options=self.config.plain_storage_options))
        return create_from_source(table, opened, primary_key=primary_key, partition_by=partition_by)

    def create_from_parquet(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
    ) -> Table:
        """Create a table from a Parquet file or a pattern of them, all rows in one commit, and return it.

        Raises:
            SourceNotFoundError, SourceFormatError: Nothing matches, or the files' columns differ.
            TableExistsError, DirectoryNotEmptyError: The place is taken.
        """
        table = self.table(name)
        check_free(table.location)
        options = ParquetOptions(storage_options=self.config.plain_storage_options)
        opened = parquet_import(source, options)
        return create_from_source(table, opened, primary_key=primary_key, partition_by=partition_by)

    def open(self, name: str) -> Table:
        """Return a table that exists.

        Raises:
            TableNotFoundError: It does not; the message names the nearest that do.
        """
        table = self.table(name)
        try:
            open_table(table.location)
        except TableNotFoundError as error:
            raise self._unknown(name) from error
        return table

    def describe(self, name: str) -> TableInfo:
        """Return everything worth knowing about a table's newest version."""
        return self.open(name).info()

    def drop(self, name: str) -> None:
        """Delete a table with all its versions.

        Raises:
            TableNotFoundError: There is none.
        """
        self.table(name).drop()

    def ensure(self, spec: TableSpec) -> Table:
        """Return a registered table: created if it is missing, and with the columns that later versions brought."""
        table = self.table(spec.name)
        if table.exists():
            return complete(table, spec)
        try:
            return table.create(
                spec.schema,
                primary_key=spec.primary_key,
                partition_by=spec.partition_by,
                properties=spec.properties(),
                description=spec.description,
            )
        except TableExistsError:
            return complete(table, spec)

    # ── Reading ───────────────────────────────────────────────────────────────────────────────────

    def scan(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        version: int | None = None,
    ) -> Rows:
        """Return a table's rows; see `scan.scan` for the arguments and errors."""
        return self.table(name).scan(columns, predicate, limit, version)

    def query(self, name: str, predicate: str) -> Rows:
        """Return the rows that fulfil a predicate, such as `role = 'admin'`."""
        return self.table(name).query(predicate)

    def sql(
        self,
        text: str,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        guard: SqlGuard | None = None,
    ) -> SqlResult:
        """Run one read-only query over all tables of the lakehouse, each visible under its name.

        Args:
            text: One SELECT.
            max_rows: Rows it may return; None for the configured limit.
            timeout: Seconds it may take; None for the configured limit.
            guard: Which of the tables and columns are there for the caller; None for all.

        Raises:
            InvalidSqlError, SqlNotAllowedError, QueryLimitError: See `sql.run_sql`.
        """
        limits = sql_limits(self.config, max_rows, timeout)
        if guard is None:
            return run_sql(text, self._open_for_sql, limits, names=self.tables)

        def admitted(name: str) -> DeltaTable:
            guard.admit(name)
            table = self._open_for_sql(name)
            guard.opened(name)
            return table

        return run_sql(text, admitted, limits, names=guard.names, hidden=guard.hidden)

    def read_version(self, name: str, version: int) -> Rows:
        """Return a table's rows as a version had them.

        Raises:
            VersionNotFoundError: There is no such version.
        """
        return self.table(name).scan(version=version)

    def read_timestamp(self, name: str, moment: str | datetime) -> Rows:
        """Return a table's rows as they were at an RFC 3339 time.

        Raises:
            TimestampOutOfRangeError: The table was not there yet.
        """
        table = self.table(name)
        return table.scan(version=table.version_at(moment))

    def history(self, name: str, limit: int | None = None) -> list[VersionInfo]:
        """Return a table's newest commits, newest first."""
        return self.table(name).history(limit)

    def diff(self, name: str, before: int, after: int) -> pa.Table:
        """Return the rows that differ between two versions; see `diff.diff`."""
        return self.table(name).diff(before, after)

    def skipping(self, name: str, predicate: str | None = None) -> SkippingStats:
        """Return how many files and bytes the engine leaves unread for a predicate."""
        return self.table(name).skipping(predicate)

    # ── Writing ───────────────────────────────────────────────────────────────────────────────────

    def append(
        self, name: str, data: RowsIn, *, evolve: bool = False, transaction: AppTransaction | None = None
    ) -> int:
        """Add rows to a table and return the version; see `writes.append`."""
        return self.table(name).append(data, evolve=evolve, transaction=transaction)

    def overwrite(self, name: str, data: RowsIn, *, evolve: bool = False) -> int:
        """Replace a table's rows and return the version; see `writes.overwrite`."""
        return self.table(name).overwrite(data, evolve=evolve)

    def overwrite_where(self, name: str, predicate: str, data: RowsIn) -> int:
        """Replace the rows that fulfil a predicate and return the version; see `writes.overwrite_where`."""
        return self.table(name).overwrite_where(predicate, data)

    def delete(self, name: str, predicate: str) -> DeleteResult:
        """Delete the rows that fulfil a predicate; see `writes.delete`."""
        return self.table(name).delete(predicate)

    def update(self, name: str, assignments: Mapping[str, str], predicate: str | None = None) -> UpdateResult:
        """Set columns to expressions; see `writes.update`."""
        return self.table(name).update(assignments, predicate)

    def merge(
        self, name: str, data: RowsIn | MergeSource, on: Sequence[str] | None = None, *, evolve: bool = False
    ) -> MergeResult:
        """Insert, update and delete by key; see `merge.merge`."""
        return self.table(name).merge(data, on, evolve=evolve)

    def transaction(self, name: str) -> Transaction:
        """Return a context manager that makes several changes of a table one commit or none."""
        return self.table(name).transaction()

    def restore(self, name: str, version: int | str | datetime) -> int:
        """Make the rows of an old version, or of a time, the newest version; return that."""
        return self.table(name).restore(version)

    # ── Maintenance ───────────────────────────────────────────────────────────────────────────────

    def compact(
        self, name: str, target_file_mb: int | None = None, where: str | None = None
    ) -> OptimizeResult:
        """Merge a table's small files; see `optimize.compact`."""
        return self.table(name).compact(target_file_mb, where)

    def z_order(self, name: str, columns: Sequence[str]) -> OptimizeResult:
        """Cluster a table's rows by columns; see `optimize.z_order`."""
        return self.table(name).z_order(columns)

    def vacuum(self, name: str, retention_hours: int | None = None, dry_run: bool = False) -> VacuumResult:
        """Delete a table's files that old versions alone need; see `optimize.vacuum`."""
        return self.table(name).vacuum(retention_hours, dry_run)

    def _table(self, location: Location) -> Table:
        return Table(location, self.config, self.origin, tables=self._newest)

    def _open_for_sql(self, name: str) -> DeltaTable:
        if not is_table_name(name):
            raise self._unknown(name)
        try:
            return self._newest.open(self.base.child(name))
        except TableNotFoundError as error:
            raise self._unknown(name) from error

    def _is_table(self, name: str) -> bool:
        if not is_table_name(name):
            return False
        # Object stores may keep the "directories" of a dropped table: only a log with entries makes one.
        place = self.base.child(name)
        try:
            with translated(place):
                return DeltaTable.is_deltatable(place.uri, place.storage_options)
        except LakehouseError:
            # One damaged table must not hide the others: it is listed, and opening it tells the reason.
            return True

    def _unknown(self, name: str) -> TableNotFoundError:
        names = self.tables()
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"Did you mean {', '.join(near)}?" if near else f"It has {', '.join(names) or 'none yet'}."
        return TableNotFoundError(
            f"The lakehouse at {self.base.uri} has no table {name!r}. {hint}", table=name
        )


def _is_directory(info: pafs.FileInfo) -> bool:
    return info.type == pafs.FileType.Directory
