"""Operations on tables of the synchronous client."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, overload

import pyarrow as pa

from lakehouse_platform.client import table_calls as calls
from lakehouse_platform.client.records import Version
from lakehouse_platform.client.requests import Call, T
from lakehouse_platform.client.uploads import RowsIn
from lakehouse_platform.model.results import (
    DeleteResult,
    MergeResult,
    OptimizeResult,
    SkippingStats,
    TableInfo,
    UpdateResult,
    VacuumResult,
    Written,
)
from lakehouse_platform.model.schema import Schema

Rows = list[dict[str, Any]]


class TableOperations:
    """The part of the client that is about tables; names, arguments and errors are those of the store."""

    @abstractmethod
    def _run(self, call: Call[T]) -> T:
        """Go through one operation."""

    @abstractmethod
    def _key(self, wanted: str | None) -> str:
        """Return the idempotency key of a write."""

    # ── Catalog ───────────────────────────────────────────────────────────────────────────────────

    def names(self) -> list[str]:
        """Return the names of the tables that one may read."""
        return self._run(calls.names())

    def describe(self, name: str) -> TableInfo:
        """Return everything worth knowing about a table's newest version."""
        return self._run(calls.describe(name))

    def create(
        self,
        name: str,
        schema: Schema | pa.Schema,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        description: str = "",
    ) -> int:
        """Create an empty table and return its version."""
        return self._run(calls.create(name, schema, primary_key, partition_by, description))

    def drop(self, name: str) -> None:
        """Delete a table with all its versions."""
        self._run(calls.drop(name))

    # ── Reading ───────────────────────────────────────────────────────────────────────────────────

    @overload
    def scan(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        rows: Literal[False] = False,
    ) -> pa.Table: ...
    @overload
    def scan(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        rows: Literal[True],
    ) -> Rows: ...
    def scan(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        rows: bool = False,
    ) -> pa.Table | Rows:
        """Return a table's rows; see `stream` for those that are too many to be in memory at once.

        Args:
            name: The table.
            columns: Columns to return, in that order; None for all.
            predicate: Condition over any column; NULL counts as not fulfilled.
            limit: The most rows to return.
            version: Version to read; None for the newest.
            timestamp: In place of a version, an RFC 3339 time.
            rows: Whether to return dictionaries in place of an Arrow table.
        """
        found = self._run(calls.scan(name, columns, predicate, limit, version, timestamp))
        return found.to_pylist() if rows else found

    def query(self, name: str, predicate: str) -> pa.Table:
        """Return the rows that fulfil a predicate, such as `role = 'admin'`."""
        return self._run(calls.scan(name, None, predicate, None))

    def sql(self, text: str, *, max_rows: int | None = None, timeout: float | None = None) -> pa.Table:
        """Run one read-only query over the tables that one may read, each visible under its name.

        Args:
            text: One SELECT.
            max_rows: Rows it may return; None for the server's limit.
            timeout: Seconds it may take; None for the server's limit.
        """
        return self._run(calls.sql(text, max_rows, timeout))

    def read_version(self, name: str, version: int) -> pa.Table:
        """Return a table's rows as a version had them."""
        return self._run(calls.scan(name, None, None, None, version))

    def read_timestamp(self, name: str, moment: str | datetime) -> pa.Table:
        """Return a table's rows as they were at an RFC 3339 time."""
        return self._run(calls.scan(name, None, None, None, None, moment))

    def history(self, name: str, limit: int | None = None) -> list[Version]:
        """Return a table's newest commits, newest first."""
        return self._run(calls.history(name, limit))

    def diff(self, name: str, before: int, after: int) -> pa.Table:
        """Return the rows that differ between two versions."""
        return self._run(calls.diff(name, before, after))

    def change_feed(self, name: str, start: int, end: int | None = None) -> pa.Table:
        """Return the changes of rows from one version to another, the newest if none is said."""
        return self._run(calls.change_feed(name, start, end))

    def skipping(self, name: str, predicate: str | None = None) -> SkippingStats:
        """Return how many files and bytes the engine leaves unread for a predicate."""
        return self._run(calls.skipping(name, predicate))

    # ── Writing ───────────────────────────────────────────────────────────────────────────────────

    def append(
        self, name: str, data: RowsIn, *, evolve: bool = False, idempotency_key: str | None = None
    ) -> Written:
        """Add rows to a table.

        Args:
            name: The table.
            data: An Arrow, Polars or pandas table, a reader of record batches, or rows as dictionaries.
            evolve: Whether columns that the table lacks are added to it.
            idempotency_key: With the same key and rows the change is made once, however often it is asked for; None
                for a new one, which covers the repetitions that the client makes by itself.
        """
        return self._run(calls.append(name, data, evolve, self._key(idempotency_key)))

    def overwrite(
        self, name: str, data: RowsIn, *, evolve: bool = False, idempotency_key: str | None = None
    ) -> Written:
        """Replace a table's rows; see `append` for the arguments."""
        return self._run(calls.overwrite(name, data, evolve, self._key(idempotency_key)))

    def overwrite_where(
        self, name: str, predicate: str, data: RowsIn, *, idempotency_key: str | None = None
    ) -> Written:
        """Replace the rows that fulfil a predicate; see `append` for the arguments."""
        return self._run(calls.overwrite_where(name, predicate, data, self._key(idempotency_key)))

    def delete(self, name: str, predicate: str, *, idempotency_key: str | None = None) -> DeleteResult:
        """Delete the rows that fulfil a predicate."""
        return self._run(calls.delete(name, predicate, self._key(idempotency_key)))

    def update(
        self,
        name: str,
        assignments: Mapping[str, str],
        predicate: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> UpdateResult:
        """Set columns to expressions, in the rows that fulfil a predicate."""
        return self._run(calls.update(name, assignments, predicate, self._key(idempotency_key)))

    def merge(
        self,
        name: str,
        data: RowsIn,
        on: Sequence[str] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> MergeResult:
        """Insert, update and delete by key; a column `_op` tells which, for each row.

        Args:
            name: The table.
            data: The rows; see `append`.
            on: The columns that tell rows apart; None for the table's key.
            idempotency_key: See `append`.
        """
        return self._run(calls.merge(name, data, on, self._key(idempotency_key)))

    def restore(self, name: str, version: int | str | datetime) -> int:
        """Make the rows of an old version, or of a time, the newest version; return that."""
        return self._run(calls.restore(name, version))

    # ── Upkeep and rules ──────────────────────────────────────────────────────────────────────────

    def compact(
        self, name: str, target_file_mb: int | None = None, where: str | None = None
    ) -> OptimizeResult:
        """Merge a table's small files."""
        return self._run(calls.compact(name, target_file_mb, where))

    def z_order(self, name: str, columns: Sequence[str]) -> OptimizeResult:
        """Cluster a table's rows by columns."""
        return self._run(calls.z_order(name, columns))

    def vacuum(self, name: str, retention_hours: int | None = None, dry_run: bool = False) -> VacuumResult:
        """Delete a table's files that old versions alone need."""
        return self._run(calls.vacuum(name, retention_hours, dry_run))

    def set_primary_key(self, name: str, columns: Sequence[str]) -> int:
        """Declare a table's primary key and return the version."""
        return self._run(calls.set_primary_key(name, columns))

    def set_properties(self, name: str, properties: Mapping[str, str]) -> int:
        """Set table properties and return the version."""
        return self._run(calls.set_properties(name, properties))

    def add_constraint(self, name: str, constraint: str, predicate: str) -> int:
        """Add a CHECK constraint that every row must fulfil, and return the version."""
        return self._run(calls.add_constraint(name, constraint, predicate))

    def drop_constraint(self, name: str, constraint: str) -> int:
        """Remove a CHECK constraint and return the version."""
        return self._run(calls.drop_constraint(name, constraint))

    def add_columns(self, name: str, schema: Schema | pa.Schema) -> int:
        """Add columns, NULL in all rows, and return the version."""
        return self._run(calls.add_columns(name, schema))
