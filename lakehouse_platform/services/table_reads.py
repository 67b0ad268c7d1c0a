"""Reading tables through the gate: rows, the past, SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from lakehouse_platform.errors import InvalidArgumentError, PermissionDeniedError
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import Role
from lakehouse_platform.model.results import SkippingStats, TableInfo, VersionInfo
from lakehouse_platform.services.gate import Passage
from lakehouse_platform.services.reading import GatedRows, gated_rows
from lakehouse_platform.services.table_scope import TableScope, numbered
from lakehouse_platform.store.scan import Rows
from lakehouse_platform.store.sql import SqlGuard
from lakehouse_platform.store.table import Table

_READ = Permission.READ_TABLE
# Of so many tables the entry of a query tells the names; each has an entry of its own beside.
_MOST_NAMED = 20


class TableReads(TableScope):
    """Reads tables for an actor; see `TableAccess`."""

    def describe(self, name: str) -> TableInfo:
        """Return everything worth knowing about a table's newest version.

        Where the table stands is told to the owner and administrators only.
        """
        info = self._run(_READ, name, lambda _: self._table(name).info(), details="description")
        is_near = self._is_owner or self.actor.role in {Role.ADMIN, Role.SUPERADMIN}
        return info if is_near else replace(info, uri=info.name)

    def scan(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
    ) -> GatedRows:
        """Return a table's rows, at one version or time; see `scan.scan` for what is raised."""
        if version is not None and timestamp is not None:
            raise InvalidArgumentError("Name a version or a time, not both.")

        def look(table: Table) -> Rows:
            at = version if timestamp is None else table.version_at(timestamp)
            return table.scan(columns, predicate, limit, at)

        past = numbered("version", version) if version is not None else "by time" if timestamp else None
        return self._rows(name, look, past)

    def query(self, name: str, predicate: str) -> GatedRows:
        """Return the rows that fulfil a predicate, such as `role = 'admin'`."""
        return self._rows(name, lambda table: table.query(predicate))

    def read_version(self, name: str, version: int) -> GatedRows:
        """Return a table's rows as a version had them.

        Raises:
            VersionNotFoundError: There is no such version.
        """
        return self._rows(name, lambda table: table.scan(version=version), numbered("version", version))

    def read_timestamp(self, name: str, moment: str | datetime) -> GatedRows:
        """Return a table's rows as they were at an RFC 3339 time.

        Raises:
            TimestampOutOfRangeError: The table was not there yet.
        """
        return self._rows(name, lambda table: table.scan(version=table.version_at(moment)), "by time")

    def diff(self, name: str, before: int, after: int) -> GatedRows:
        """Return the rows that differ between two versions; see `diff.diff`."""

        def look(table: Table) -> Rows:
            changes = table.diff(before, after)
            return Rows(changes.schema, changes.to_reader)

        return self._rows(name, look, numbered("changes from version", before, after))

    def change_feed(self, name: str, start: int, end: int | None = None) -> GatedRows:
        """Return the recorded row changes of a range of versions; see `feed.change_feed`."""
        return self._rows(
            name, lambda table: table.change_feed(start, end), numbered("change feed from version", start)
        )

    def history(self, name: str, limit: int | None = None) -> list[VersionInfo]:
        """Return a table's newest commits, newest first."""
        return self._run(_READ, name, lambda _: self._table(name).history(limit), details="history")

    def skipping(self, name: str, predicate: str | None = None) -> SkippingStats:
        """Return how many files and bytes the engine leaves unread for a predicate."""
        return self._run(
            _READ, name, lambda _: self._table(name).skipping(predicate), details="files skipped"
        )

    def sql(self, text: str, *, max_rows: int | None = None, timeout: float | None = None) -> GatedRows:
        """Run one read-only query over the tables that the actor may read; see `sql.run_sql`.

        Args:
            text: One SELECT.
            max_rows: Rows it may return; None for the configured limit.
            timeout: Seconds it may take; None for the configured limit.

        Raises:
            PermissionDeniedError: It reads a table that the actor may not read, whether or not there is one.
            TableNotFoundError, InvalidSqlError, SqlNotAllowedError, QueryLimitError: See `sql.run_sql`.
        """
        passage = self._gate.enter(self.actor, Permission.RUN_SQL, None, asks_by_table=True)
        tables: list[str] = []
        guard = SqlGuard(passage.require, tables.append, self._readable, self._hidden)
        try:
            with self._known():
                rows = self._store.sql(text, max_rows=max_rows, timeout=timeout, guard=guard)
        except BaseException as error:
            passage.failed(error)
            raise

        def again() -> Passage:
            renewed = self._gate.enter(self.actor, Permission.RUN_SQL, None, asks_by_table=True)
            try:
                for table in tables:
                    renewed.require(table)
            except PermissionDeniedError as error:
                renewed.failed(error)
                raise
            return _named(renewed, tables)

        return gated_rows(_named(passage, tables), rows, again)

    def _rows(
        self,
        name: str,
        look: Callable[[Table], Rows],
        details: str | None = None,
        permission: Permission = _READ,
    ) -> GatedRows:
        def enter() -> Passage:
            return self._gate.enter(self.actor, permission, name, details=details)

        passage = enter()
        try:
            with self._known(name):
                rows = look(self._table(name))
        except BaseException as error:
            passage.failed(error)
            raise
        return gated_rows(passage, rows, enter)


def _named(passage: Passage, tables: Sequence[str]) -> Passage:
    """Tell a query's tables to its passage: one is what it concerns, several have an entry each."""
    if len(tables) == 1:
        passage.note.resource = tables[0]
    elif tables:
        more = len(tables) - _MOST_NAMED
        passage.note.details = f"tables {', '.join(tables[:_MOST_NAMED])}" + (
            f" and {more} more" if more > 0 else ""
        )
        passage.started(tables)
    return passage
