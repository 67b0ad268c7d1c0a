"""Changing what a table is, bringing back its past and keeping it in order, through the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.results import OptimizeResult, VacuumResult
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.table_scope import TableScope, numbered
from lakehouse_platform.store.table import Table

_MAINTAIN = Permission.MAINTAIN_TABLE


class TableUpkeep(TableScope):
    """Defines and maintains tables for an actor; see `TableAccess`."""

    def restore(self, name: str, version: int | str | datetime) -> int:
        """Make the rows of an old version, or of a time, the newest version; return that.

        Raises:
            VersionNotFoundError, TimestampOutOfRangeError: There is no such version.
            DataFilesMissingError: Its files were vacuumed.
        """

        def act(_: Note) -> int:
            self._refuse_to_rewind(name)
            return self._table(name).restore(version)

        what = numbered("version", version) if isinstance(version, int) else "by time"
        return self._run(Permission.RESTORE_TABLE, name, act, details=what)

    # ── Maintenance ───────────────────────────────────────────────────────────────────────────────

    def compact(
        self, name: str, target_file_mb: int | None = None, where: str | None = None
    ) -> OptimizeResult:
        """Merge a table's small files; see `optimize.compact`."""
        return self._run(
            _MAINTAIN, name, lambda _: self._table(name).compact(target_file_mb, where), details="compact"
        )

    def z_order(self, name: str, columns: Sequence[str]) -> OptimizeResult:
        """Cluster a table's rows by columns; see `optimize.z_order`."""
        return self._run(_MAINTAIN, name, lambda _: self._table(name).z_order(columns), details="z-order")

    def vacuum(self, name: str, retention_hours: int | None = None, dry_run: bool = False) -> VacuumResult:
        """Delete a table's files that old versions alone need; see `optimize.vacuum`."""
        details = "vacuum, dry run" if dry_run else "vacuum"
        return self._run(
            _MAINTAIN, name, lambda _: self._table(name).vacuum(retention_hours, dry_run), details=details
        )

    # ── Definition ────────────────────────────────────────────────────────────────────────────────

    def set_primary_key(self, name: str, columns: Sequence[str]) -> int:
        """Declare the primary key and return the version; see `evolve.set_primary_key`."""
        return self._alter(name, lambda table: table.set_primary_key(columns), "primary key")

    def set_properties(self, name: str, properties: Mapping[str, str]) -> int:
        """Set table properties and return the version; see `evolve.set_properties`."""
        return self._alter(name, lambda table: table.set_properties(properties), "properties")

    def add_constraint(self, name: str, constraint: str, predicate: str) -> int:
        """Add a CHECK constraint and return the version; see `evolve.add_constraint`."""
        return self._alter(name, lambda table: table.add_constraint(constraint, predicate), "add constraint")

    def drop_constraint(self, name: str, constraint: str) -> int:
        """Drop a CHECK constraint and return the version; see `evolve.drop_constraint`."""
        return self._alter(name, lambda table: table.drop_constraint(constraint), "drop constraint")

    def add_columns(self, name: str, schema: Schema | pa.Schema) -> int:
        """Add nullable columns and return the version; see `evolve.add_columns`."""
        return self._alter(name, lambda table: table.add_columns(schema), "add columns")

    def _alter(self, name: str, change: Callable[[Table], int], details: str) -> int:
        return self._run(Permission.ALTER_TABLE, name, lambda _: change(self._table(name)), details=details)
