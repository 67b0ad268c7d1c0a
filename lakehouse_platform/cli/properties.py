"""Commands that shape a table: primary key, further columns, properties, constraints."""

from __future__ import annotations

import click

from lakehouse_platform.cli.acting import Permission, using
from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.options import KeyValue, Names, reason_option, target_argument
from lakehouse_platform.cli.session import Session

_SECTION = "Create and shape"


@click.command(
    "set-primary-key",
    cls=PlatformCommand,
    section=_SECTION,
    examples=("lakehouse set-primary-key orders id", "lakehouse set-primary-key orders id,country"),
)
@target_argument
@click.argument("columns", type=Names(), help="Columns that identify a row, such as id,country.")
@reason_option
@click.pass_obj
def set_primary_key(session: Session, target: str, columns: tuple[str, ...]) -> None:
    """Declare the columns that identify a row; from then on every write is checked for duplicates."""
    with using(session, target, Permission.ALTER_TABLE, "primary key") as use:
        version = use.table.set_primary_key(columns)
    name = use.table.name
    session.output.say(
        f"The primary key of {name} is {', '.join(columns)}.",
        {"table": name, "primary_key": columns, "version": version},
    )


@click.command(
    "add-columns",
    cls=PlatformCommand,
    section=_SECTION,
    examples=('lakehouse add-columns customers "email:String,joined:Date32"',),
)
@target_argument
@click.argument("schema_text", metavar="SCHEMA", help='Such as "email:String,joined:Date32".')
@reason_option
@click.pass_obj
def add_columns(session: Session, target: str, schema_text: str) -> None:
    """Add columns; they are NULL in the rows that are there."""
    from lakehouse_platform.model.schema import Schema

    added = Schema.parse(schema_text)
    with using(session, target, Permission.ALTER_TABLE, "add columns") as use:
        version = use.table.add_columns(added)
    names = [field.name for field in added.fields]
    session.output.say(
        f"Added {', '.join(names)} to {use.table.name}; version {version}.",
        {"table": use.table.name, "columns": names, "version": version},
    )


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse properties customers",
        "lakehouse properties customers --set delta.enableChangeDataFeed=true",
    ),
)
@target_argument
@click.option(
    "--set", "assignments", type=KeyValue(), multiple=True, metavar="KEY=VALUE", help="Set one; repeatable."
)
@reason_option
@click.pass_obj
def properties(session: Session, target: str, assignments: tuple[tuple[str, str], ...]) -> None:
    """Show a table's properties, after setting those of --set."""
    permission = Permission.ALTER_TABLE if assignments else Permission.READ_TABLE
    with using(session, target, permission, "properties") as use:
        if assignments:
            use.table.set_properties(dict(assignments))
        info = use.table.info()
    session.output.record(info.properties)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse constraints orders",
        'lakehouse constraints orders --add positive "amount > 0"',
        "lakehouse constraints orders --drop positive",
    ),
)
@target_argument
@click.option(
    "--add", nargs=2, metavar="NAME PREDICATE", help="Add a CHECK constraint; the rows there must fulfil it."
)
@click.option("--drop", metavar="NAME", help="Drop a constraint.")
@reason_option
@click.pass_obj
def constraints(session: Session, target: str, add: tuple[str, str] | None, drop: str | None) -> None:
    """Show a table's CHECK constraints, after adding or dropping one."""
    changes = [*(["drop"] if drop is not None else []), *(["add"] if add is not None else [])]
    permission = Permission.ALTER_TABLE if changes else Permission.READ_TABLE
    with using(session, target, permission, " ".join([*changes, "constraints"])) as use:
        if drop is not None:
            use.table.drop_constraint(drop)
        if add is not None:
            use.table.add_constraint(*add)
        info = use.table.info()
    session.output.record(info.constraints)
