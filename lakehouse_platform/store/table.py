"""One table: every operation on it, each on the newest version, each change one commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.errors import NotADeltaTableError, TableNotFoundError
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
from lakehouse_platform.store import creation, evolve, feed, history, optimize, snapshot, writes
from lakehouse_platform.store.commit import AppTransaction, Committer, Once
from lakehouse_platform.store.describe import describe
from lakehouse_platform.store.diff import diff
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.key_index import KeyIndex
from lakehouse_platform.store.limits import sql_limits
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import list_log
from lakehouse_platform.store.merge import MergeSource, is_unique, merge
from lakehouse_platform.store.newest import NewestTables
from lakehouse_platform.store.rows import RowsIn
from lakehouse_platform.store.scan import Rows, scan, without
from lakehouse_platform.store.skipping import measure_skipping
from lakehouse_platform.store.snapshot import DataFile
from lakehouse_platform.store.splice import FileSplices, SpliceCounts, SpliceResult, splice
from lakehouse_platform.store.sql import SqlResult, run_sql
from lakehouse_platform.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table at one location: every call works on the version that is the newest then.

    Attributes:
        location: Where it stands.
        config: Durability, retries, retention, limits.
        origin: Stamped into every commit.
        hidden: Columns that reading treats as if the table did not have them.
        request: The request that the next change is made for, at most once; None for any number of changes.
        tables: Keeps the opened table from one change to the next.
    """

    location: Location
    config: LakehouseConfig
    origin: Origin
    hidden: frozenset[str] = frozenset()
    request: Once | None = None
    tables: NewestTables = field(default_factory=NewestTables, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The table's name: the last part of its location."""
        return self.location.name

    @property
    def key_index(self) -> KeyIndex | None:
        """The index of its keys, if the settings name a directory for one."""
        return self._committer.key_index

    def through(self, origin: Origin) -> Table:
        """Return this table with another origin of its changes."""
        return replace(self, origin=origin)

    def hiding(self, columns: Collection[str]) -> Table:
        """Return this table as one who must not see some columns sees it; its data files still hold them."""
        return replace(self, hidden=frozenset(columns))

    def once(self, request: Once) -> Table:
        """Return this table for one change, which is made at most once however often it is asked for."""
        return replace(self, request=request)

    # ── What it is ────────────────────────────────────────────────────────────────────────────────

    def create(
        self,
        schema: Schema | pa.Schema,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        description: str = "",
        data: pa.RecordBatchReader | None = None,
    ) -> Table:
        """Create the table and return it; see `creation.create_table` for the arguments and errors."""
        creation.create_table(
            self._committer,
            schema.to_arrow() if isinstance(schema, Schema) else schema,
            primary_key=tuple(primary_key)
            or (tuple(schema.primary_key) if isinstance(schema, Schema) else ()),
            partition_by=partition_by,
            properties=properties,
            description=description,
            data=data,
        )
        return self

    def exists(self) -> bool:
        """Tell whether a readable table stands at the location."""
        try:
            open_table(self.location)
        except (TableNotFoundError, NotADeltaTableError):
            return False
        return True

    def drop(self) -> None:
        """Delete the table with all its versions.

        Raises:
            TableNotFoundError, NotADeltaTableError: There is none; nothing was deleted.
        """
        if list_log(self.location).is_empty:
            open_table(self.location)
        creation.remove(self.location)

    def info(self) -> TableInfo:
        """Return everything worth knowing about the newest version."""
        return describe(self.location, self._opened(), self.hidden)

    def version(self) -> int:
        """Return the newest version."""
        return self._opened().version()

    def landed(self, app_id: str) -> tuple[int, int | None]:
        """Return the newest version, and the number of the application's last transaction in it, if it has any."""
        table = self._opened()
        return table.version(), table.transaction_version(app_id)

    def commit_info(self, version: int) -> Mapping[str, Any] | None:
        """Return what the commit of a version says about itself; None if the log has no entry for it (any more)."""
        return history.commit_info_at(self.location, version)

    def arrow_schema(self, version: int | None = None) -> pa.Schema:
        """Return the columns as an Arrow schema."""
        return without(snapshot.arrow_schema(self._opened(version)), self.hidden)

    def schema(self, version: int | None = None) -> Schema:
        """Return the columns in our type texts, with the declared primary key."""
        table = self._opened(version)
        return Schema.from_arrow(
            without(snapshot.arrow_schema(table), self.hidden), snapshot.primary_key(table)
        )

    def primary_key(self) -> tuple[str, ...]:
        """Return the declared primary key; empty if none is declared."""
        return snapshot.primary_key(self._opened())

    def is_unique(self, columns: Sequence[str]) -> bool:
        """Tell whether every row has its own, non-NULL values in these columns."""
        with translated(self.location):
            return is_unique(self._opened(), columns)

    def data_files(self) -> list[DataFile]:
        """Return the live data files, oldest first."""
        return snapshot.data_files(self._opened())

    def skipping(self, predicate: str | None = None) -> SkippingStats:
        """Return how many files and bytes the engine leaves unread for a predicate."""
        return measure_skipping(self.location, self._opened(), predicate, self.hidden)

    # ── Reading ───────────────────────────────────────────────────────────────────────────────────

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        version: int | None = None,
    ) -> Rows:
        """Return rows; see `scan.scan` for the arguments and errors."""
        table = self._opened(version)
        return scan(
            self.location, table, columns=columns, predicate=predicate, limit=limit, hidden=self.hidden
        )

    def query(self, predicate: str, version: int | None = None) -> Rows:
        """Return the rows that fulfil a predicate."""
        return self.scan(predicate=predicate, version=version)

    def sql(
        self,
        text: str,
        *,
        version: int | None = None,
        max_rows: int | None = None,
        timeout: float | None = None,
    ) -> SqlResult:
        """Run one read-only query; the table is visible as `data` and under its own name.

        Args:
            text: One SELECT.
            version: Version to read; None for the newest.
            max_rows: Rows it may return; None for the configured limit.
            timeout: Seconds it may take; None for the configured limit.

        Raises:
            InvalidSqlError, SqlNotAllowedError, QueryLimitError: See `sql.run_sql`.
        """
        table = self._opened(version)
        limits = sql_limits(self.config, max_rows, timeout)
        return run_sql(text, {self.name: table, "data": table}, limits, hidden=lambda _: self.hidden)

    # ── Time ──────────────────────────────────────────────────────────────────────────────────────

    def history(self, limit: int | None = None) -> list[VersionInfo]:
        """Return the newest commits, newest first."""
        found = history.history(self.location, limit)
        # What a commit was made with may hold values of hidden columns.
        return [replace(one, parameters={}) for one in found] if self.hidden else found

    def version_at(self, moment: str | datetime) -> int:
        """Return the version that was the newest at an RFC 3339 time; see `history.version_at`."""
        return history.version_at(self.location, moment)

    def restore(self, version: int | str | datetime) -> int:
        """Make the rows of an old version, or of a time, the newest version; return that.

        Raises:
            VersionNotFoundError, TimestampOutOfRangeError: There is no such version.
            DataFilesMissingError: Its files were vacuumed.
        """
        return history.restore(
            self._committer, version if isinstance(version, int) else self.version_at(version)
        )

    def diff(self, before: int, after: int) -> pa.Table:
        """Return the rows that differ between two versions; see `diff.diff`."""
        changes = diff(self.location, before, after)
        return changes.drop_columns([name for name in changes.column_names if name in self.hidden])

    def change_feed(self, start: int, end: int | None = None) -> Rows:
        """Return the recorded row changes of a range of versions; see `feed.change_feed`."""
        return feed.change_feed(self.location, start, end).without(self.hidden)

    # ── Writing ───────────────────────────────────────────────────────────────────────────────────

    def append(
        self,
        data: RowsIn,
        *,
        evolve: bool = False,
        transaction: AppTransaction | None = None,
        expected_version: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """Add rows and return the version; see `writes.append`."""
        return writes.append(
            self._committer,
            data,
            evolve=evolve,
            transaction=transaction,
            expected_version=expected_version,
            metadata=metadata,
        )

    def overwrite(self, data: RowsIn, *, evolve: bool = False) -> int:
        """Replace all rows and return the version; see `writes.overwrite`."""
        return writes.overwrite(self._committer, data, evolve=evolve)

    def overwrite_where(self, predicate: str, data: RowsIn) -> int:
        """Replace the rows that fulfil a predicate and return the version; see `writes.overwrite_where`."""
        return writes.overwrite_where(self._committer, predicate, data)

    def delete(self, predicate: str) -> DeleteResult:
        """Delete the rows that fulfil a predicate; see `writes.delete`."""
        return writes.delete(self._committer, predicate)

    def update(self, assignments: Mapping[str, str], predicate: str | None = None) -> UpdateResult:
        """Set columns to expressions; see `writes.update`."""
        return writes.update(self._committer, assignments, predicate)

    def merge(
        self,
        data: RowsIn | MergeSource,
        on: Sequence[str] | None = None,
        *,
        evolve: bool = False,
        expected_version: int | None = None,
    ) -> MergeResult:
        """Insert, update and delete by key; see `merge.merge`."""
        return merge(self._committer, data, on, evolve=evolve, expected_version=expected_version)

    def splice(
        self,
        version: int,
        files: Sequence[FileSplices],
        appended: pa.Table | None = None,
        *,
        transaction: AppTransaction | None = None,
        counts: SpliceCounts | None = None,
    ) -> SpliceResult:
        """Replace rows of data files by position and add rows at the end; see `splice.splice`."""
        return splice(self._committer, version, files, appended, transaction=transaction, counts=counts)

    def delete_all(self, *, transaction: AppTransaction | None = None) -> DeleteResult:
        """Delete all rows by removing every data file; see `writes.delete`."""
        return writes.delete(self._committer, "TRUE", transaction=transaction)

    def transaction(self) -> Transaction:
        """Return a context manager that makes several changes one commit or none."""
        return Transaction(self._committer)

    # ── Definition ────────────────────────────────────────────────────────────────────────────────

    def set_primary_key(self, columns: Sequence[str]) -> int:
        """Declare the primary key; see `evolve.set_primary_key`."""
        return evolve.set_primary_key(self._committer, columns)

    def set_properties(self, properties: Mapping[str, str]) -> int:
        """Set table properties; see `evolve.set_properties`."""
        return evolve.set_properties(self._committer, properties)

    def add_constraint(self, name: str, predicate: str) -> int:
        """Add a CHECK constraint; see `evolve.add_constraint`."""
        return evolve.add_constraint(self._committer, name, predicate)

    def drop_constraint(self, name: str) -> int:
        """Drop a CHECK constraint; see `evolve.drop_constraint`."""
        return evolve.drop_constraint(self._committer, name)

    def add_columns(self, columns: Schema | pa.Schema) -> int:
        """Add nullable columns; see `evolve.add_columns`."""
        return evolve.add_columns(
            self._committer, columns.to_arrow() if isinstance(columns, Schema) else columns
        )

    # ── Maintenance ───────────────────────────────────────────────────────────────────────────────

    def compact(self, target_file_mb: int | None = None, where: str | None = None) -> OptimizeResult:
        """Merge small files; see `optimize.compact`."""
        return optimize.compact(self._committer, target_file_mb, where)

    def z_order(
        self, columns: Sequence[str], target_file_mb: int | None = None, where: str | None = None
    ) -> OptimizeResult:
        """Cluster rows by columns; see `optimize.z_order`."""
        return optimize.z_order(self._committer, columns, target_file_mb, where)

    def vacuum(self, retention_hours: int | None = None, dry_run: bool = False) -> VacuumResult:
        """Delete files that old versions alone need; see `optimize.vacuum`."""
        return optimize.vacuum(self._committer, retention_hours, dry_run)

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version; see `optimize.checkpoint`."""
        return optimize.checkpoint(self._committer)

    def clean_up_log(self) -> int:
        """Delete log entries beyond the log retention; see `optimize.clean_up_log`."""
        return optimize.clean_up_log(self._committer)

    def _opened(self, version: int | None = None) -> DeltaTable:
        """Open the newest or another version to read from it."""
        return self.tables.open(self.location) if version is None else open_table(self.location, version)

    @property
    def _committer(self) -> Committer:
        return Committer(self.location, self.config, self.origin, self.request, self.tables)
