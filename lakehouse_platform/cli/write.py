"""Commands that change rows: insert, append, merge, update, delete."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakehouse_platform.cli.acting import Permission, using
from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.options import KeyValue, Names, reason_option, target_argument, where_option
from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.progress import byte_progress, working
from lakehouse_platform.cli.row_input import read_json, rows_arguments
from lakehouse_platform.cli.session import Session

_SECTION = "Write"


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        """lakehouse insert customers '{"id": 7, "name": "Grace"}'""",
        """lakehouse insert customers '[{"id": 8, "name": "Alan"}, {"id": 9, "name": "Ada"}]' --json""",
        "lakehouse insert customers --file rows.json",
        """echo '{"id": 10, "name": "Edsger"}' | lakehouse insert customers""",
    ),
)
@target_argument
@rows_arguments
@reason_option
@click.pass_obj
def insert(session: Session, target: str, rows: str | None, file: str | None) -> None:
    """Add rows given as JSON: one object, an array, or one object per line.

    Without ROWS and --file they are read from standard input. All rows are added in one commit, or none.
    """
    from lakehouse_platform.services.files import insert_json

    text = read_json(rows, file)
    with using(session, target, Permission.WRITE_TABLE, "insert") as use:
        result = insert_json(use.table, text)
        use.note.row_count = result.rows
    name = use.table.name
    session.output.say(
        f"Inserted {counted(result.rows, 'row')} into {name}; version {result.version}.",
        {"table": name, **asdict(result)},
    )


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse append orders new_orders.csv",
        'lakehouse append orders "more/*.parquet" --reason "daily load"',
        "lakehouse append orders new_orders.jsonl --json",
    ),
)
@target_argument
@click.argument("file", help="CSV, Parquet or JSON Lines: path, URI or pattern of Parquet files.")
@click.option("--delimiter", metavar="CHAR", help="What separates CSV fields  [default: found in the file]")
@click.option("--evolve", is_flag=True, help="Add columns that the table lacks.")
@reason_option
@click.pass_obj
def append(session: Session, target: str, file: str, delimiter: str | None, evolve: bool) -> None:
    """Add the rows of a CSV, Parquet or JSON Lines file, in one commit and in bounded memory.

    Columns are matched by name; every value must fit its column exactly.
    """
    from lakehouse_platform.services.files import FileForm, FileOptions, append_file

    form = FileForm.of(file)
    also = Permission.ALTER_TABLE if evolve else None
    with (
        using(session, target, Permission.WRITE_TABLE, "append", also=also) as use,
        byte_progress(session, f"Importing {file}") as on_progress,
    ):
        options = FileOptions(delimiter=delimiter, evolve=evolve, on_progress=on_progress)
        result = append_file(use.table, file, form, options)
        use.note.row_count = result.rows
    name = use.table.name
    session.output.say(
        f"Appended {counted(result.rows, 'row')} to {name}; version {result.version}.",
        {"table": name, **asdict(result)},
    )


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        """lakehouse merge customers '[{"id": 1, "name": "Alice"}, {"id": 11, "name": "Barbara"}]' --on id""",
        """lakehouse merge customers '[{"id": 2, "_op": "DELETE"}]'""",
        "lakehouse merge customers --file rows.json --on id --json",
    ),
)
@target_argument
@rows_arguments
@click.option(
    "--on", type=Names(), metavar="A[,B]", help="Columns that identify a row  [default: the primary key]"
)
@reason_option
@click.pass_obj
def merge(
    session: Session, target: str, rows: str | None, file: str | None, on: tuple[str, ...] | None
) -> None:
    """Update the rows whose key is there and insert the others, in one commit.

    A field "_op" in a row says what to do with it: INSERT, UPDATE, DELETE or UPSERT (the default).
    """
    from lakehouse_platform.services.files import merge_json

    text = read_json(rows, file)
    with using(session, target, Permission.WRITE_TABLE, "merge") as use:
        result = merge_json(use.table, text, on)
        use.note.row_count = result.rows_inserted + result.rows_updated + result.rows_deleted
    name = use.table.name
    session.output.say(
        f"Merged into {name}: {result.rows_inserted} inserted, {result.rows_updated} updated, "
        f"{result.rows_deleted} deleted; version {result.version}.",
        {"table": name, **asdict(result)},
    )


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        """lakehouse update orders --set "amount=amount * 2" --where "country = 'FR'\"""",
        """lakehouse update customers --set "name='n/a'" --where "name IS NULL" --json""",
    ),
)
@target_argument
@click.option(
    "--set",
    "assignments",
    type=KeyValue(),
    multiple=True,
    required=True,
    metavar="COLUMN=EXPRESSION",
    help="New value, an SQL expression over the row's columns; repeatable. Texts stand in single quotes.",
)
@where_option("Only rows where this holds; all rows without it.")
@reason_option
@click.pass_obj
def update(
    session: Session, target: str, assignments: tuple[tuple[str, str], ...], where: str | None
) -> None:
    """Set columns of the rows that fulfil a predicate."""
    with (
        using(session, target, Permission.WRITE_TABLE, "update") as use,
        working(session, f"Updating {use.table.name}"),
    ):
        result = use.table.update(dict(assignments), where)
        use.note.row_count = result.rows_updated
    name = use.table.name
    session.output.say(
        f"Updated {counted(result.rows_updated, 'row')} of {name}; version {result.version}.",
        {"table": name, **asdict(result)},
    )


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        'lakehouse delete orders --where "amount < 20"',
        "lakehouse delete orders --where true --json",
    ),
)
@target_argument
@where_option("Which rows; `true` for all.", required=True)
@reason_option
@click.pass_obj
def delete(session: Session, target: str, where: str) -> None:
    """Delete the rows that fulfil a predicate. Earlier versions keep them until vacuum."""
    with (
        using(session, target, Permission.WRITE_TABLE, "delete") as use,
        working(session, f"Deleting from {use.table.name}"),
    ):
        result = use.table.delete(where)
        use.note.row_count = result.rows_deleted
    name = use.table.name
    session.output.say(
        f"Deleted {counted(result.rows_deleted, 'row')} of {name}; version {result.version}.",
        {"table": name, **asdict(result)},
    )
