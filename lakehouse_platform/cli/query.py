"""Commands that read rows: query, sql, at, export."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakehouse_platform.cli.acting import Permission, asking, moment_text, reading
from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.options import MOMENT_HELP, Names, target_argument, where_option
from lakehouse_platform.cli.row_options import FILE_FORMATS, RowFormat, RowOptions, row_options
from lakehouse_platform.cli.rows import print_rows
from lakehouse_platform.cli.session import Session

if TYPE_CHECKING:  # the engine takes a third of a second to import: only commands that use it pay
    from lakehouse_platform.services.table_work import Rows, Table

_SECTION = "Read"


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        'lakehouse query customers "SELECT * FROM data WHERE id > 1 ORDER BY id"',
        'lakehouse query customers "SELECT count(*) AS n FROM customers" --json',
        'lakehouse query ./lakehouse/customers "SELECT name FROM data" --format jsonl',
        'lakehouse query orders "SELECT * FROM data" --output orders.parquet',
    ),
)
@target_argument
@click.argument("sql_text", metavar="SQL", help="One SELECT.")
@row_options
@click.pass_obj
def query(session: Session, target: str, sql_text: str, wanted: RowOptions) -> None:
    """Run SQL over one table, visible as `data` and under its own name.

    SQL is one SELECT; it cannot change anything. Rows are a table on a terminal and CSV in a pipe.
    """
    with reading(session, target, Permission.RUN_SQL, lambda table: table.sql(sql_text), "query") as rows:
        print_rows(session, rows, wanted)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        'lakehouse sql "SELECT name, amount FROM orders o JOIN customers c ON c.id = o.customer"',
        'lakehouse sql "SELECT * FROM orders" --format csv | head -n 3',
    ),
)
@click.argument("sql_text", metavar="SQL", help="One SELECT.")
@row_options
@click.pass_obj
def sql(session: Session, sql_text: str, wanted: RowOptions) -> None:
    """Run SQL over the whole lakehouse: every table is visible under its name."""
    with asking(session, sql_text) as rows:
        print_rows(session, rows, wanted)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse at customers 1",
        'lakehouse at customers 1 "SELECT count(*) AS n FROM data" --json',
    ),
)
@target_argument
@click.argument("moment", metavar="VERSION|TIME", help=MOMENT_HELP)
@click.argument("sql_text", metavar="[SQL]", required=False, help="One SELECT; all rows without it.")
@row_options
@click.pass_obj
def at(session: Session, target: str, moment: str, sql_text: str | None, wanted: RowOptions) -> None:
    """Read a table as it was at a version or a time, whole or through SQL."""
    number = int(moment) if moment.isdigit() else None

    def look(table: Table) -> Rows:
        version = table.version_at(moment) if number is None else number
        return table.scan(version=version) if sql_text is None else table.sql(sql_text, version=version)

    permission = Permission.READ_TABLE if sql_text is None else Permission.RUN_SQL
    with reading(session, target, permission, look, moment_text(number)) as rows:
        print_rows(session, rows, wanted)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse export orders orders.csv",
        'lakehouse export orders big.parquet --where "amount > 100" --columns id,amount',
    ),
)
@target_argument
@click.argument("file", help="Path or URI; its ending chooses the form.")
@click.option("--columns", type=Names(), metavar="A[,B]", help="Only these columns, in this order.")
@where_option("Only rows where this holds.")
@click.option("--format", "row_format", type=click.Choice(FILE_FORMATS), help="Form  [default: by extension]")
@click.pass_obj
def export(
    session: Session,
    target: str,
    file: str,
    columns: tuple[str, ...] | None,
    where: str | None,
    row_format: str | None,
) -> None:
    """Write a table to a file: csv, json, jsonl, parquet or arrow.

    FILE is replaced once all rows are written; until then it stays as it was.
    """
    wanted = RowOptions(row_format=RowFormat(row_format) if row_format else None, output=file)
    total: int | None = None

    def look(table: Table) -> Rows:
        nonlocal total
        total = table.info().rows if where is None else None
        return table.scan(columns, where)

    with reading(session, target, Permission.EXPORT_TABLE, look, "export") as rows:
        print_rows(session, rows, wanted, total=total)
