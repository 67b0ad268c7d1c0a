"""Commands that keep a table fast and small: compact, zorder, vacuum, checkpoint, stats."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lakehouse_platform.cli.acting import Permission, using
from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.confirm import confirm
from lakehouse_platform.cli.options import Names, target_argument, where_option, yes_option
from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.progress import working
from lakehouse_platform.cli.session import Session

if TYPE_CHECKING:
    from lakehouse_platform.model.results import OptimizeResult, VacuumResult

_SECTION = "Maintain"
_TARGET_MB = click.option(
    "--target-mb", type=click.IntRange(min=1), metavar="MB", help="Size to aim at for a file."
)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse compact customers",
        "lakehouse optimize orders --where \"country = 'FR'\" --target-mb 256",
    ),
)
@target_argument
@_TARGET_MB
@where_option("Only partitions where this holds; it may name partition columns only.")
@click.pass_obj
def compact(session: Session, target: str, target_mb: int | None, where: str | None) -> None:
    """Merge small data files into larger ones; the rows stay as they are."""
    with (
        using(session, target, Permission.MAINTAIN_TABLE, "compact") as use,
        working(session, f"Compacting {use.table.name}"),
    ):
        result = use.table.compact(target_file_mb=target_mb, where=where)
    _say_optimized(session, use.table.name, f"Compacted {use.table.name}", result)


optimize = copy(compact)
optimize.name = "optimize"
optimize.short_help = "The same as compact."


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=("lakehouse zorder orders customer,amount",),
)
@target_argument
@click.argument("columns", type=Names(), help="Columns that queries filter on, such as customer,amount.")
@_TARGET_MB
@click.pass_obj
def zorder(session: Session, target: str, columns: tuple[str, ...], target_mb: int | None) -> None:
    """Cluster a table by COLUMNS, so that filters on them skip most files."""
    with (
        using(session, target, Permission.MAINTAIN_TABLE, "z-order") as use,
        working(session, f"Z-ordering {use.table.name}"),
    ):
        result = use.table.z_order(columns, target_file_mb=target_mb)
    _say_optimized(session, use.table.name, f"Z-ordered {use.table.name} by {', '.join(columns)}", result)


@click.command(
    cls=PlatformCommand,
    section=_SECTION,
    examples=(
        "lakehouse vacuum customers --dry-run",
        "lakehouse vacuum customers",
        "lakehouse vacuum customers --retention-hours 0 --yes",
    ),
)
@target_argument
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option(
    "--retention-hours",
    type=click.IntRange(min=0),
    metavar="HOURS",
    help="Keep files removed later than this  [setting: vacuum_retention_hours]",
)
@yes_option
@click.pass_obj
def vacuum(session: Session, target: str, dry_run: bool, retention_hours: int | None, yes: bool) -> None:
    """Delete data files that no version within the retention needs.

    Deletes at once, like VACUUM in Spark and Databricks: the retention (7 days by default) protects readers and
    time travel. A retention shorter than the configured one is confirmed first. --dry-run shows the files.
    """
    usual = session.lakehouse.config.vacuum_retention_hours
    if retention_hours is not None and retention_hours < usual and not dry_run:
        name = session.lakehouse.resolve(target).name
        confirm(
            f"Versions of {name} older than {retention_hours} h (configured: {usual} h) become "
            "unreadable, and queries that are reading them fail. Go on?",
            yes=yes,
        )
    what = "vacuum, dry run" if dry_run else "vacuum"
    with (
        using(session, target, Permission.MAINTAIN_TABLE, what) as use,
        working(session, f"Vacuuming {use.table.name}"),
    ):
        result = use.table.vacuum(retention_hours, dry_run=dry_run)
    name = use.table.name
    session.output.say(_vacuum_text(name, result), {"table": name, **asdict(result)})


@click.command(cls=PlatformCommand, section=_SECTION, examples=("lakehouse checkpoint customers",))
@target_argument
@click.option("--clean-up", is_flag=True, help="Also delete log entries past the log retention.")
@click.pass_obj
def checkpoint(session: Session, target: str, clean_up: bool) -> None:
    """Write a checkpoint of the log, so that the table opens faster."""
    what = "checkpoint and log clean-up" if clean_up else "checkpoint"
    with using(session, target, Permission.MAINTAIN_TABLE, what) as use:
        version = use.table.checkpoint()
        if clean_up:
            use.table.clean_up_log()
    name = use.table.name
    session.output.say(
        f"Wrote a checkpoint of {name} at version {version}.",
        {"table": name, "version": version, "cleaned_up": clean_up},
    )


@click.command(
    cls=PlatformCommand,
    section="Look",
    examples=("lakehouse stats customers", 'lakehouse stats orders --where "amount > 100" --json'),
)
@target_argument
@where_option("Also measure how many files a query with this predicate skips.")
@click.pass_obj
def stats(session: Session, target: str, where: str | None) -> None:
    """Show rows, files and bytes, and how much a predicate lets a query skip."""
    with using(session, target, Permission.READ_TABLE, "statistics") as use:
        info = use.table.info()
        skipping = None if where is None else use.table.skipping(where)
    facts: dict[str, Any] = {
        "table": info.name,
        "version": info.version,
        "rows": info.rows,
        "files": info.files,
        "bytes": info.bytes,
        "bytes_per_file": info.bytes // info.files if info.files else 0,
    }
    if skipping is not None:
        facts["skipping"] = asdict(skipping)
    session.output.record(facts)


def _say_optimized(session: Session, name: str, done: str, result: OptimizeResult) -> None:
    facts = {"table": name, **asdict(result)}
    if not result.files_removed:
        session.output.say(
            f"{name} needs nothing: no files were rewritten (version {result.version}).", facts
        )
        return
    session.output.say(
        f"{done}: {counted(result.files_removed, 'file')} ({result.bytes_removed} bytes) became "
        f"{result.files_added} ({result.bytes_added} bytes); version {result.version}.",
        facts,
    )


def _vacuum_text(name: str, result: VacuumResult) -> str:
    amount = f"{counted(result.files_deleted, 'file')} ({result.bytes_deleted} bytes)"
    if not result.dry_run:
        return f"Deleted {amount} of {name}."
    return (
        "\n".join([f"Would delete {amount} of {name}:", *result.files])
        if result.files
        else f"Nothing to delete in {name}."
    )
