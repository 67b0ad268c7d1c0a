"""Commands about the past of a table: history, diff, restore."""

from __future__ import annotations

import click

from lakehouse_platform.cli.acting import Permission, moment_text, reading, using
from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.options import MOMENT_HELP, reason_option, target_argument
from lakehouse_platform.cli.row_options import RowOptions, row_options
from lakehouse_platform.cli.rows import print_rows
from lakehouse_platform.cli.session import Session

_SECTION = "Time travel"
_HISTORY_COLUMNS = ("version", "timestamp", "operation", "actor", "door", "reason")


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=("lakehouse history customers", "lakehouse history customers --limit 2 --json"),
)
@target_argument
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Newest N versions only.")
@click.pass_obj
def history(session: Session, target: str, limit: int | None) -> None:
    """List the versions of a table, newest first."""
    with using(session, target, Permission.READ_TABLE, "history") as use:
        versions = use.table.history(limit)
    session.output.listing([version.to_dict() for version in versions], _HISTORY_COLUMNS)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=("lakehouse diff customers 1 2", "lakehouse diff customers 1 --format jsonl"),
)
@target_argument
@click.argument("old", type=click.IntRange(min=0), help="Version to compare from.")
@click.argument(
    "new", type=click.IntRange(min=0), required=False, help="Version to compare to  [default: newest]"
)
@row_options
@click.pass_obj
def diff(session: Session, target: str, old: int, new: int | None, wanted: RowOptions) -> None:
    """Show the rows that differ between two versions.

    The column _change_type says how: insert, delete, update_preimage (before) or update_postimage (after).
    """
    from lakehouse_platform.services.table_work import difference

    what = moment_text(old, "changes from version")
    with reading(
        session, target, Permission.READ_TABLE, lambda table: difference(table, old, new), what
    ) as rows:
        print_rows(session, rows, wanted)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse properties customers --set delta.enableChangeDataFeed=true",
        "lakehouse changes customers 4 --json",
    ),
)
@target_argument
@click.argument("start", type=click.IntRange(min=0), help="First version.")
@click.argument("end", type=click.IntRange(min=0), required=False, help="Last version  [default: newest]")
@row_options
@click.pass_obj
def changes(session: Session, target: str, start: int, end: int | None, wanted: RowOptions) -> None:
    """Show every row change that a range of versions recorded.

    The table must record them: `lakehouse properties TARGET --set delta.enableChangeDataFeed=true`.
    `lakehouse diff` compares two versions of any table.
    """
    what = moment_text(start, "change feed from version")
    with reading(
        session, target, Permission.READ_TABLE, lambda table: table.change_feed(start, end), what
    ) as rows:
        print_rows(session, rows, wanted)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse restore customers 2",
        'lakehouse restore customers 2 --reason "undo the wrong import"',
    ),
)
@target_argument
@click.argument("moment", metavar="VERSION|TIME", help=MOMENT_HELP)
@reason_option
@click.pass_obj
def restore(session: Session, target: str, moment: str) -> None:
    """Make an earlier version the newest; nothing of the history is lost."""
    number = int(moment) if moment.isdigit() else None
    with using(session, target, Permission.RESTORE_TABLE, moment_text(number)) as use:
        version = use.table.restore(moment if number is None else number)
    name = use.table.name
    session.output.say(
        f"{name} is again as it was at {moment} (version {version}).",
        {"table": name, "restored": moment, "version": version},
    )
