"""The tables of a lakehouse for those who are not the owner of the files: every operation goes through the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.results import Written
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.reading import GatedRows
from lakehouse_platform.services.table_changes import TableChanges
from lakehouse_platform.services.table_reads import TableReads
from lakehouse_platform.services.table_upkeep import TableUpkeep

# In an audit entry; the history of the grants has them all.
_MOST_HOLDERS = 50

__all__ = ["GatedRows", "TableAccess", "Written"]


class TableAccess(TableReads, TableChanges, TableUpkeep):
    """The tables of one lakehouse for one actor: all that doors other than raw Python may do with them.

    Names, arguments and errors are those of `DeltaStore` and `Table`. Besides, every operation raises
    `PermissionDeniedError` if the actor may not, whether or not there is such a table; `RateLimitedError` if the
    actor's limit is reached; `AuditWriteFailedError` if the audit log cannot be written.

    The platform's own tables are read by administrators, without their secret columns, and written by the owner of
    the files alone. Safe to share between threads.
    """

    def names(self) -> list[str]:
        """Return the names of the tables that the actor may read, sorted."""

        def act(note: Note) -> list[str]:
            found = self._readable()
            note.row_count = len(found)
            return found

        return self._gate.run(self.actor, Permission.LIST_TABLES, None, act, details="tables")

    def create(
        self,
        name: str,
        schema: Schema | pa.Schema,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        description: str = "",
    ) -> int:
        """Create an empty table and return its version; see `creation.create_table`."""

        def act(_: Note) -> int:
            self._refuse_system_table(name, Permission.CREATE_TABLE)
            table = self._store.create(
                name,
                schema,
                primary_key=primary_key,
                partition_by=partition_by,
                properties=properties,
                description=description,
            )
            return table.version()

        return self._gate.run(self.actor, Permission.CREATE_TABLE, name, act, details="create")

    def drop(self, name: str) -> None:
        """Delete a table with all its versions, and take away every right that was granted on it.

        A right on every table stays, and so does what the scopes of API keys name: they give no right of their own.

        Raises:
            TableNotFoundError: There is none.
        """

        def act(note: Note) -> None:
            self._refuse_system_table(name, Permission.DROP_TABLE)
            grants, holders = Grants(self._store), list[str]()
            if self._store.table(name).exists():
                # First: what ends in between must not leave rights for a later table of the same name.
                holders = grants.revoke_all(name, learn=lambda found: _tell(note, found))
            self._store.drop(name)
            # Whoever was granted one meanwhile was granted it on the table that is gone.
            late = grants.revoke_all(name)
            _tell(note, sorted({*holders, *late}))

        self._run(Permission.DROP_TABLE, name, act, details="drop")


def _tell(note: Note, holders: Sequence[str]) -> None:
    if holders:
        more = f" and {len(holders) - _MOST_HOLDERS} more" if len(holders) > _MOST_HOLDERS else ""
        named = ", ".join(holders[:_MOST_HOLDERS]) + more
        note.details = f"drop; takes the rights of {len(holders)} users on it: {named}"
