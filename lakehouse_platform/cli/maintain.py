"""The command that does what is due in the whole lakehouse, as the Dagster schedules do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform.cli.progress import working
from lakehouse_platform.cli.session import Session

if TYPE_CHECKING:
    from lakehouse_platform.upkeep.tasks import TableOutcome, TaskReport, Upkeep

# The names of upkeep's tasks, in a sensible order; importing them would load the engine for --help.
TASKS = ("session_cleanup", "compact", "z_order", "checkpoint", "vacuum", "log_cleanup")
_COLUMNS = ("task", "table", "status", "reason")


@click.command(
    cls=PlatformCommand,
    section="Maintain",
    examples=(
        "lakehouse maintain --dry-run",
        "lakehouse maintain",
        "lakehouse maintain --task compact --task vacuum --json",
    ),
)
@click.option("--task", "tasks", type=click.Choice(TASKS), multiple=True, help="Only this; repeatable.")
@click.option("--dry-run", is_flag=True, help="Only say what is due.")
@click.pass_context
def maintain(ctx: click.Context, tasks: tuple[str, ...], dry_run: bool) -> None:
    """Compact, Z-order, checkpoint and vacuum the tables that are due, and clean up sessions and logs.

    Leaves with status 1 if a table failed; the others are done nevertheless.
    """
    from lakehouse_platform.upkeep.policy import Task

    session = ctx.ensure_object(Session)
    upkeep = _upkeep(session)
    items: list[dict[str, Any]] = []
    for name in tasks or TASKS:
        with working(session, f"Running {name}"):
            report = upkeep.run(Task(name), dry_run=dry_run)
        items += [_facts(report, outcome) for outcome in report.outcomes]
    session.output.listing(items, _COLUMNS)
    if any(item["status"] == "failed" for item in items):
        ctx.exit(ExitStatus.PROBLEM)


def _upkeep(session: Session) -> Upkeep:
    """Return the maintenance as who is signed in; what only looks is done without the gate."""
    from lakehouse_platform.services.upkeep_access import gated_upkeep

    lakehouse, actor = session.lakehouse, session.actor
    gate = lakehouse.gate_of(actor)
    return lakehouse.upkeep if gate is None else gated_upkeep(lakehouse, actor=actor, gate=gate)


def _facts(report: TaskReport, outcome: TableOutcome) -> dict[str, Any]:
    reason = str(outcome.error) if outcome.error else outcome.due.reason if outcome.due else ""
    return {"task": report.task.value, "table": outcome.table, "status": _status(outcome), "reason": reason}


def _status(outcome: TableOutcome) -> str:
    if outcome.error is not None:
        return "failed"
    if outcome.touched:
        return "done"
    return "due" if outcome.due and outcome.due.is_due else "not due"
