"""Commands that read the audit log: tail, search, activity, billing, verify, export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import click

from lakehouse_platform.cli.accounts import Conditions, Facts
from lakehouse_platform.cli.command import AccountCommand, PlatformGroup
from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform.cli.finding import audited_id_of
from lakehouse_platform.cli.options import user_argument
from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.progress import working
from lakehouse_platform.cli.session import Session
from lakehouse_platform.cli.tailing import entries_after, follow, last_entries
from lakehouse_platform.model.actions import ActionType, Outcome

_SECTION = "Audit"
_COLUMNS = ("sequence", "timestamp", "action", "outcome", "user_id", "resource", "row_count", "details")
_ACTIONS = click.Choice([action.value for action in ActionType])
_OUTCOMES = click.Choice([outcome.value for outcome in Outcome])
_MOST = 10_000  # entries on a page of a report
_DAY_OR_TIME = "UTC day such as 2026-02-01, or RFC 3339 time."


@click.group(cls=PlatformGroup, section=_SECTION)
def audit() -> None:
    """The audit log: what was done, by whom, and whether it is still what was written."""


def _conditions(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose entries; the command takes them as `wanted`."""

    @click.option("--action", type=_ACTIONS, metavar="ACTION", help="Only this kind of action.")
    @click.option("--user", metavar="USER", help="Only by this user: id, user name or e-mail address.")
    @click.option("--outcome", type=_OUTCOMES, help="Only what ended so.")
    @click.option("--resource", metavar="TABLE", help="Only on this table.")
    @click.option("--since", metavar="DAY|TIME", help=f"Not before. {_DAY_OR_TIME}")
    @click.option("--until", metavar="DAY|TIME", help=f"Not after. {_DAY_OR_TIME}")
    @wraps(command)
    def with_conditions(*args: Any, user: str | None, **kwargs: Any) -> Any:
        names = ("action", "outcome", "resource", "since", "until")
        wanted = Conditions(user_id=user, **{name: kwargs.pop(name) for name in names})
        return command(*args, wanted=wanted, **kwargs)

    return with_conditions


@audit.command(
    "tail",
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse audit tail",
        "lakehouse audit tail --lines 3 --outcome denied --json",
        "lakehouse audit tail --follow",
    ),
)
@click.option(
    "--lines", "-n", type=click.IntRange(0, _MOST), default=10, show_default=True, help="Entries to show."
)
@click.option("--follow", "-f", "is_followed", is_flag=True, help="Show new ones as they come, until Ctrl-C.")
@_conditions
@click.pass_obj
def tail(session: Session, lines: int, is_followed: bool, wanted: Conditions) -> None:
    """Show the newest entries; with --follow each is a line of its own, with --json too."""
    conditions = _resolved(session, wanted)
    reports = session.reports
    entries = last_entries(
        lambda wanted, limit, after: reports.search(wanted, limit=limit, after=after), conditions, lines
    )
    if not is_followed:
        session.output.listing(entries, _COLUMNS)
        return
    show = session.output.lines(_COLUMNS)
    show(entries)
    follow(entries_after(reports, conditions, entries), show, reports.pause)


@audit.command(
    "search",
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse audit search --user alice --since 2026-01-01",
        "lakehouse audit search --action login_failed --limit 50 --json",
        "lakehouse audit search --after 100",
    ),
)
@_conditions
@click.option(
    "--limit", type=click.IntRange(1, _MOST), default=100, show_default=True, help="Entries on a page."
)
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="SEQUENCE", help="Go on after this entry."
)
@click.pass_obj
def search(session: Session, wanted: Conditions, limit: int, after: int) -> None:
    """Show the entries that fit, the oldest first, a page at a time."""
    found = session.reports.search(_resolved(session, wanted), limit=limit, after=after)
    session.output.listing(found, _COLUMNS)
    if len(found) == limit:
        session.output.hint(f"There may be more: go on with --after {found[-1]['sequence']}.")


@audit.command(
    "activity",
    cls=AccountCommand,
    section=_SECTION,
    examples=("lakehouse audit activity alice", "lakehouse audit activity alice --since 2026-01-01 --json"),
)
@user_argument
@click.option("--since", metavar="DAY|TIME", help=f"Not before. {_DAY_OR_TIME}")
@click.option("--until", metavar="DAY|TIME", help=f"Not after. {_DAY_OR_TIME}")
@click.option(
    "--limit", type=click.IntRange(1, _MOST), default=100, show_default=True, help="Entries on a page."
)
@click.option("--page", metavar="PAGE", help="Go on where the page before ended.")
@click.pass_obj
def activity(
    session: Session, user: str, since: str | None, until: str | None, limit: int, page: str | None
) -> None:
    """Show what a user did, the newest first; your own without being an administrator."""
    user_id = audited_id_of(session.accounts, user)
    entries, next_page = session.reports.activity(user_id, since, until, limit, page)
    session.output.listing(entries, _COLUMNS)
    if next_page is not None:
        session.output.hint(f"There is more: go on with --page {next_page}.")


@audit.command(
    "billing",
    cls=AccountCommand,
    section=_SECTION,
    examples=("lakehouse audit billing alice --from 2026-02-01 --to 2026-02-28",),
)
@user_argument
@click.option("--from", "start", metavar="DAY", required=True, help="First UTC day, such as 2026-02-01.")
@click.option("--to", "end", metavar="DAY", required=True, help="Last UTC day; it belongs to the period.")
@click.pass_obj
def billing(session: Session, user: str, start: str, end: str) -> None:
    """Show what a user is billed for: actions and the rows they read or wrote."""
    session.output.record(session.reports.billing_summary(audited_id_of(session.accounts, user), start, end))


@audit.command(
    "verify",
    cls=AccountCommand,
    section=_SECTION,
    examples=("lakehouse audit verify", "lakehouse audit verify --json"),
)
@click.pass_context
def verify(ctx: click.Context) -> None:
    """Check that the log is what was written: nothing changed, gone, swapped or added.

    Leaves with status 1 if it is not, and names the entries.
    """
    session = ctx.ensure_object(Session)
    with working(session, "Checking the audit log"):
        found = session.reports.verify()
    session.output.say(_verdict(found), found)
    if not found["is_whole"]:
        ctx.exit(ExitStatus.PROBLEM)


@audit.command(
    "export",
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse audit export log.parquet",
        "lakehouse audit export denied.csv --outcome denied",
    ),
)
@click.argument("file", help="Path or URI; its ending chooses the form: .csv, .jsonl, .parquet …")
@_conditions
@click.pass_obj
def export(session: Session, file: str, wanted: Conditions) -> None:
    """Write all entries that fit to a file, replacing it once they are complete."""
    from lakehouse_platform.cli.row_options import RowOptions
    from lakehouse_platform.cli.rows import chosen_format, print_rows

    options = RowOptions(output=file)
    chosen_format(session, options)  # before anything is read
    print_rows(session, session.reports.export(_resolved(session, wanted)), options)


def _resolved(session: Session, wanted: Conditions) -> Conditions:
    if wanted.user_id is None:
        return wanted
    return replace(wanted, user_id=audited_id_of(session.accounts, wanted.user_id))


def _verdict(found: Facts) -> str:
    entries = counted(found["entries"], "entry", "entries")
    problems = found["problems"]
    if not problems:
        return f"The audit log is whole: {entries}, {found['erased']} of them erased."
    lines = [f"Entry {one['sequence']}: {one['kind']}. {one['message']}" for one in problems]
    return "\n".join([f"The audit log of {entries} is not what was written:", *lines])
