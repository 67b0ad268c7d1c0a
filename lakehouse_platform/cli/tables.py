"""Commands about tables as a whole: init, create, tables, schema, describe, drop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakehouse_platform.cli.acting import Permission, drop_table, overview, using
from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.confirm import confirm
from lakehouse_platform.cli.creation import (
    Definition,
    Source,
    create_from,
    definition_options,
    source_options,
)
from lakehouse_platform.cli.options import reason_option, target_argument, yes_option
from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse_platform.model.results import TableInfo

_LOOK = "Look"
_SHAPE = "Create and shape"
_FIRST_ACCOUNT = "If others shall use it: `lakehouse users bootstrap NAME EMAIL` makes the first superadmin."
_TABLES_COLUMNS = ("name", "rows", "files", "bytes", "version", "modified", "description")


@click.command(
    cls=PlatformCommand,
    section=_SHAPE,
    examples=("lakehouse init", "lakehouse init --base-path ./second"),
)
@click.pass_obj
def init(session: Session) -> None:
    """Make the lakehouse: its directory and the platform's own tables. Harmless where it is made already."""
    lakehouse = session.lakehouse
    before = set(lakehouse.store.tables())
    created = [name for name in lakehouse.init() if name not in before]
    base = lakehouse.config.base_path
    made = f"created {', '.join(created)}" if created else "everything was there already"
    hint = f"\n{_FIRST_ACCOUNT}" if created else ""
    session.output.say(f"Lakehouse {base}: {made}.{hint}", {"base_path": base, "created": created})


@click.command(
    cls=PlatformCommand,
    section=_SHAPE,
    examples=(
        'lakehouse create people --schema "id:Int32 not null,name:String" --primary-key id',
        "lakehouse create imported --from-csv orders.csv --partition-by country",
        'lakehouse create parts --from-parquet "more/*.parquet" --property delta.appendOnly=true',
        'lakehouse create ./elsewhere/notes --schema "at:Timestamp,text:String" --description "My notes"',
    ),
)
@target_argument
@source_options
@definition_options
@reason_option
@click.pass_obj
def create(session: Session, target: str, source: Source, definition: Definition) -> None:
    """Create a table, empty or with the rows of files: all of them, or no table.

    TARGET must not exist or be an empty directory. Table and rows are one commit; with --primary-key the rows are
    the second. Types: Int8 to Int64, Float32, Float64, String, Boolean,
    Date32, Timestamp, TimestampNtz, Binary, Decimal(p,s), List<T>, Struct<name:T,...>, Map<K,V>.
    """
    info = create_from(session, target, source, definition)
    session.output.say(
        f"Created {info.name} at {info.uri} with {counted(info.rows, 'row')}.",
        {"table": info.name, "uri": info.uri, "rows": info.rows, "version": info.version},
    )


@click.command(
    cls=PlatformCommand,
    section=_LOOK,
    examples=("lakehouse tables", "lakehouse tables --json", "lakehouse tables --names"),
)
@click.option("--names", is_flag=True, help="Only the names: opens no table.")
@click.pass_obj
def tables(session: Session, names: bool) -> None:
    """List the tables of the lakehouse."""
    listed = [_listed(name, one) for name, one in overview(session, opened=not names).items()]
    if names:
        session.output.listing(listed, ("name",))
        return
    damaged = any("error" in item for item in listed)
    session.output.listing(listed, (*_TABLES_COLUMNS, "error") if damaged else _TABLES_COLUMNS)


def _listed(name: str, found: TableInfo | LakehouseError | None) -> dict[str, Any]:
    """Return a table's line; one that cannot be opened does not hide the others."""
    if found is None:
        return {"name": name}
    return {"name": name, "error": found.message} if isinstance(found, LakehouseError) else found.to_dict()


@click.command(
    cls=PlatformCommand,
    section=_LOOK,
    examples=("lakehouse schema users", "lakehouse schema users --sql", "lakehouse schema users --json"),
)
@target_argument
@click.option("--sql", "as_sql", is_flag=True, help="As a CREATE TABLE statement.")
@click.pass_obj
def schema(session: Session, target: str, as_sql: bool) -> None:
    """Show a table's columns; the text form is what `create --schema` takes."""
    from lakehouse_platform.text.ddl import create_table_statement, schema_text

    with using(session, target, Permission.READ_TABLE, "schema") as use:
        info = use.table.info()
    text, statement = schema_text(info), create_table_statement(info)
    session.output.say(
        statement if as_sql else text,
        {
            "table": info.name,
            "version": info.version,
            "schema": text,
            "columns": info.to_dict()["columns"],
            "primary_key": info.primary_key,
            "partition_columns": info.partition_columns,
            "sql": statement,
        },
    )


@click.command(
    cls=PlatformCommand,
    section=_LOOK,
    examples=("lakehouse describe customers", "lakehouse describe ./lakehouse/orders --json"),
)
@target_argument
@click.pass_obj
def describe(session: Session, target: str) -> None:
    """Show everything about a table: size, version, columns, key, partitions, properties, constraints."""
    with using(session, target, Permission.READ_TABLE, "description") as use:
        info = use.table.info()
    session.output.record(info.to_dict())


@click.command(
    cls=PlatformCommand,
    section=_SHAPE,
    examples=("lakehouse drop orders --yes",),
)
@target_argument
@yes_option
@click.pass_obj
def drop(session: Session, target: str, yes: bool) -> None:
    """Delete a table with all its versions. This cannot be undone, so it is confirmed first."""
    table = session.lakehouse.resolve(target)
    uri = table.location.uri
    confirm(f"Delete table {table.name} ({uri}) with all its rows and versions?", yes=yes)
    drop_table(session, target)
    session.output.say(f"Dropped {table.name}.", {"table": table.name, "uri": uri})
