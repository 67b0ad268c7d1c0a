"""When maintenance runs by itself: a tick looks whether any table is due and starts a run only then."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import dagster as dg

from lakehouse_platform.defs import keys
from lakehouse_platform.defs.chain_check import TABLE
from lakehouse_platform.defs.jobs import (
    compact_tables,
    session_cleanup,
    vacuum_tables,
    verify_audit_log,
    z_order_tables,
)
from lakehouse_platform.defs.maintenance import MaintenanceConfig, VacuumConfig
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.upkeep.policy import Due, Task
from lakehouse_platform.upkeep.tasks import Upkeep

# Dagster gives up on a tick after 60 s; past half of that the run decides by itself.
_TICK_BUDGET_S = 30.0


@dataclass(frozen=True, kw_only=True)
class _Window:
    name: str
    job: dg.JobDefinition
    tasks: tuple[Task, ...]
    cron: str
    run_config: dg.RunConfig
    description: str


# The minutes differ so that no two jobs start together; the daily and weekly ones lie in the night (UTC).
_WINDOWS = (
    _Window(
        name="session_cleanup_hourly",
        job=session_cleanup,
        tasks=(Task.SESSION_CLEANUP,),
        cron="5 * * * *",
        run_config=dg.RunConfig(ops={"clean_up_sessions": MaintenanceConfig()}),
        description="Every hour: deletes sessions past their end, if there are any.",
    ),
    _Window(
        name="compact_tables_every_6_hours",
        job=compact_tables,
        tasks=(Task.COMPACT, Task.CHECKPOINT),
        cron="20 */6 * * *",
        run_config=dg.RunConfig(ops={"compact": MaintenanceConfig()}),
        description="Every 6 hours: compacts tables with many small files and checkpoints long logs.",
    ),
    _Window(
        name="z_order_tables_daily",
        job=z_order_tables,
        tasks=(Task.Z_ORDER,),
        cron="40 2 * * *",
        run_config=dg.RunConfig(ops={"z_order": MaintenanceConfig()}),
        description="Every night: Z-orders tables that have changed much since the last time.",
    ),
    _Window(
        name="vacuum_tables_weekly",
        job=vacuum_tables,
        tasks=(Task.VACUUM, Task.LOG_CLEANUP),
        cron="10 4 * * 0",
        run_config=dg.RunConfig(ops={"vacuum": VacuumConfig(dry_run=False)}),
        description="Every Sunday: removes files and log entries past the retention of the settings.",
    ),
)


def _schedule(window: _Window) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=window.name,
        job=window.job,
        cron_schedule=window.cron,
        execution_timezone="UTC",
        description=window.description,
        tags=keys.MAINTENANCE_TAGS,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def evaluate(
        context: dg.ScheduleEvaluationContext, lakehouse: LakehouseResource
    ) -> dg.RunRequest | dg.SkipReason:
        upkeep = lakehouse.open().upkeep
        reason, due = _any_due(upkeep, window.tasks, time.monotonic)
        context.log.info(reason)
        if not due:
            return dg.SkipReason(reason)
        return dg.RunRequest(
            run_key=context.scheduled_execution_time.isoformat(), run_config=window.run_config
        )

    return evaluate


def _any_due(upkeep: Upkeep, tasks: Iterable[Task], clock: Callable[[], float]) -> tuple[str, bool]:
    """Return why a run is wanted or not; looks no further than the first table that is due."""
    deadline = clock() + _TICK_BUDGET_S
    looked_at: set[str] = set()
    try:
        for due in (due for task in tasks for due in upkeep.due(task)):
            looked_at.add(due.table)
            if due.is_due:
                return _because(due), True
            if clock() > deadline:
                return (
                    f"{len(looked_at)} tables looked at in time, none due; the run looks at the others.",
                    True,
                )
    except LakehouseError as error:
        return f"A table could not be looked at, so the run will report on it: {error.message}", True
    return f"{len(looked_at)} tables looked at, none is due.", False


def _because(due: Due) -> str:
    return f"{due.table} is due for {due.task.value}: {due.reason}"


@dg.schedule(
    name="verify_audit_log_daily",
    job=verify_audit_log,
    cron_schedule="30 3 * * *",
    execution_timezone="UTC",
    description="Every night: verifies the audit log, if there is one.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def verify_audit_log_daily(
    context: dg.ScheduleEvaluationContext, lakehouse: LakehouseResource
) -> dg.RunRequest | dg.SkipReason:
    """Start the verification unless there is nothing to verify."""
    if not lakehouse.open().store.table(TABLE).exists():
        return dg.SkipReason("There is no audit log.")
    return dg.RunRequest(run_key=context.scheduled_execution_time.isoformat())


SCHEDULES = (*(_schedule(window) for window in _WINDOWS), verify_audit_log_daily)
