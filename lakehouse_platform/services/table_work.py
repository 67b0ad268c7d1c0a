"""What a person asks of a table with one command, through the gate as one operation, whatever it takes to do it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.results import TableInfo
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.reading import GatedRows
from lakehouse_platform.services.table_reads import TableReads
from lakehouse_platform.store.scan import Rows
from lakehouse_platform.store.table import Table

# What the platform does with its own tables, roles do not.
_MAKES_OR_DELETES = frozenset({Permission.CREATE_TABLE, Permission.DROP_TABLE})


@dataclass(frozen=True, slots=True)
class TableUse:
    """One command's work on a table.

    Attributes:
        table: The table, as who acts may see it.
        note: What the audit log is told besides.
    """

    table: Table
    note: Note = field(default_factory=Note)


class TableWork(TableReads):
    """The tables of one lakehouse for one actor, with one entry in the audit log for each command.

    The caller does with the table what the permission says, and nothing else. For the errors see `TableAccess`.
    """

    @contextmanager
    def using(
        self, name: str, permission: Permission, what: str, *, also: Permission | None = None
    ) -> Generator[TableUse]:
        """Hand out a table for what an actor may do, and write down how it ended.

        Args:
            name: The table.
            permission: What is done.
            what: The same for the audit log.
            also: A further permission that it needs.

        Raises:
            PermissionDeniedError: The actor may not; nothing was done.
            AuditWriteFailedError: The audit log cannot be written; nothing was done.
        """
        passage = self._gate.enter(self.actor, permission, name, details=what)
        if permission is not Permission.READ_TABLE:
            # A person who is told that it failed does it again. One flush of the disk is nothing beside a command.
            self._gate.check_writable()
        # The owner may know everything, and is told where the table was looked for.
        known = nullcontext() if self._is_owner else self._known(name)
        try:
            if also is not None:
                self._gate.require(self.actor, also, name, passage.note)
            if permission in _MAKES_OR_DELETES:
                self._refuse_system_table(name, permission)
            if permission is Permission.RESTORE_TABLE:
                self._refuse_to_rewind(name)
            with known:
                yield TableUse(self._table(name), passage.note)
        except BaseException as error:
            passage.failed(error)
            raise
        passage.done()

    def rows(self, name: str, permission: Permission, look: Callable[[Table], Rows], what: str) -> GatedRows:
        """Return the rows that a look at a table finds; each reading of them is in the audit log.

        Args:
            name: The table.
            permission: What is done.
            look: Finds the rows.
            what: The same for the audit log.

        Raises:
            PermissionDeniedError: The actor may not.
        """
        return self._rows(name, look, what, permission)

    def overview(self, *, opened: bool = True) -> dict[str, TableInfo | LakehouseError | None]:
        """Return what is worth knowing about each table that the actor may read, by name.

        Args:
            opened: False for the names alone, which opens no table.

        Returns:
            For each table its description, why there is none, or None if none was asked for.
        """

        def act(note: Note) -> dict[str, TableInfo | LakehouseError | None]:
            names = self._readable()
            note.row_count = len(names)
            return {name: described(self._table(name)) if opened else None for name in names}

        return self._gate.run(self.actor, Permission.LIST_TABLES, None, act, details="tables")


def described(table: Table) -> TableInfo | LakehouseError:
    """Return what is worth knowing about a table, or why it cannot be told: one damaged table hides no other."""
    try:
        return table.info()
    except LakehouseError as error:
        return error


def difference(table: Table, before: int, after: int | None) -> Rows:
    """Return the rows that differ between two versions; None for the newest. See `diff.diff`."""
    changes = table.diff(before, table.version() if after is None else after)
    return Rows(changes.schema, changes.to_reader)
