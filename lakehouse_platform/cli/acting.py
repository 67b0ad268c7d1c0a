"""Commands on tables act as who is signed in: on tables of the lakehouse through the gate, with one audit entry each.

A table that stands elsewhere is a directory of the caller's like any other. So are the tables of a lakehouse that was
never initialised, as long as nobody is signed in: it has no audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse_platform.cli.session import Session
from lakehouse_platform.identity.permissions import Permission

if TYPE_CHECKING:  # the engine takes a third of a second to import: only commands that use it pay
    from lakehouse_platform.cli.row_source import RowSource
    from lakehouse_platform.errors import LakehouseError
    from lakehouse_platform.model.results import TableInfo
    from lakehouse_platform.services.table_work import Rows, Table, TableUse


@contextmanager
def using(
    session: Session, target: str, permission: Permission, what: str, *, also: Permission | None = None
) -> Generator[TableUse]:
    """Hand out the table that a text means, for what who is signed in may do with it.

    Args:
        session: This run.
        target: A table's name, path or URI.
        permission: What is done.
        what: The same for the audit log.
        also: A further permission that it needs.

    Raises:
        InvalidNameError: The text can mean no table.
        AuthError: The sign-in does not count any more.
        PermissionDeniedError: Who is signed in may not; nothing was done.
        AuditWriteFailedError: The audit log cannot be written.
    """
    from lakehouse_platform.services.table_work import TableUse

    table = session.lakehouse.resolve(target)
    name = session.lakehouse.name_of(table)
    work = session.work if name is not None else None
    if name is None or work is None:
        yield TableUse(table)
        return
    with work.using(name, permission, what, also=also) as use:
        yield use


@contextmanager
def reading(
    session: Session, target: str, permission: Permission, look: Callable[[Table], Rows], what: str
) -> Generator[RowSource]:
    """Hand out the rows that a look at a table finds, if who is signed in may see them; see `using`."""
    table = session.lakehouse.resolve(target)
    name = session.lakehouse.name_of(table)
    work = session.work if name is not None else None
    if name is None or work is None:
        yield look(table)
        return
    with work.rows(name, permission, look, what) as rows:
        yield rows


@contextmanager
def asking(session: Session, sql_text: str) -> Generator[RowSource]:
    """Hand out the rows of a query over the whole lakehouse, if who is signed in may read its tables; see `using`."""
    work = session.work
    if work is None:
        yield session.lakehouse.store.sql(sql_text)
        return
    with work.sql(sql_text) as rows:
        yield rows


def drop_table(session: Session, target: str) -> None:
    """Delete the table that a text means, and the rights that were granted on it; see `using`.

    Raises:
        TableNotFoundError: There is none.
    """
    table = session.lakehouse.resolve(target)
    name = session.lakehouse.name_of(table)
    if name is None:
        table.drop()
    else:
        session.lakehouse.drop(name, session.actor)


def overview(session: Session, *, opened: bool) -> dict[str, TableInfo | LakehouseError | None]:
    """Return what is worth knowing about each table that who is signed in may read; see `TableWork.overview`."""
    from lakehouse_platform.services.table_work import described

    work = session.work
    if work is not None:
        return work.overview(opened=opened)
    store = session.lakehouse.store
    return {name: described(store.table(name)) if opened else None for name in store.tables()}


def moment_text(version: int | None, what: str = "version") -> str:
    """Return what the audit log says of the version that a command names; None for one that a time names."""
    from lakehouse_platform.services.table_scope import numbered

    return "by time" if version is None else numbered(what, version)
