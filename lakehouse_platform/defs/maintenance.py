"""Maintenance ops: session clean-up, compaction, Z-order, vacuum, each on tables that are due."""

from collections.abc import Iterator, Sequence

import dagster as dg
from pydantic import Field

from lakehouse_platform.defs import keys
from lakehouse_platform.defs.failing import RETRY, can_be_retried, step_failures
from lakehouse_platform.defs.metadata import report_table, table_metadata, upkeep_metadata
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.errors import ConfigError
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.upkeep_access import gated_upkeep
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.upkeep.policy import Task
from lakehouse_platform.upkeep.status import table_status
from lakehouse_platform.upkeep.tasks import TableOutcome, TaskReport

# One maintenance run at a time: two that rewrite the same files only make one another's commits fail.
POOL = "delta_maintenance"
_FAILURES_NAMED = 20

_Event = dg.AssetMaterialization | dg.AssetObservation | dg.Output[None]


class MaintenanceConfig(dg.Config):
    """What a maintenance run looks at. Every default is the safe choice."""

    tables: list[str] = Field(
        default=[], description="Names of the tables to look at; empty for every table."
    )
    only_due: bool = Field(
        default=True,
        description="Touch only tables that are due by the settings' thresholds; off to force it.",
    )
    dry_run: bool = Field(default=False, description="Decide and report, but change nothing.")


class VacuumConfig(MaintenanceConfig):
    """What a vacuum looks at; a dry run unless told otherwise, because removed files end time travel."""

    dry_run: bool = Field(default=True, description="Report what would be removed, but remove nothing.")
    retention_hours: int | None = Field(
        default=None,
        description="Keep files removed from the table for that many hours; at least, and by default, what "
        "the setting vacuum_retention_hours says.",
    )


@dg.op(pool=POOL, retry_policy=RETRY)
def clean_up_sessions(
    context: dg.OpExecutionContext, config: MaintenanceConfig, lakehouse: LakehouseResource
) -> Iterator[_Event]:
    """Delete the sessions that are past their end."""
    yield from _maintain(context, lakehouse, (Task.SESSION_CLEANUP,), config)


@dg.op(pool=POOL, retry_policy=RETRY)
def compact(
    context: dg.OpExecutionContext, config: MaintenanceConfig, lakehouse: LakehouseResource
) -> Iterator[_Event]:
    """Merge small files, and write checkpoints of long logs."""
    yield from _maintain(context, lakehouse, (Task.COMPACT, Task.CHECKPOINT), config)


@dg.op(pool=POOL, retry_policy=RETRY)
def z_order(
    context: dg.OpExecutionContext, config: MaintenanceConfig, lakehouse: LakehouseResource
) -> Iterator[_Event]:
    """Sort tables by their Z-order columns, so that filters skip files."""
    yield from _maintain(context, lakehouse, (Task.Z_ORDER,), config)


@dg.op(pool=POOL, retry_policy=RETRY)
def vacuum(
    context: dg.OpExecutionContext, config: VacuumConfig, lakehouse: LakehouseResource
) -> Iterator[_Event]:
    """Remove files and log entries past their retention."""
    yield from _maintain(context, lakehouse, (Task.VACUUM, Task.LOG_CLEANUP), config)


def _maintain(
    context: dg.OpExecutionContext,
    resource: LakehouseResource,
    tasks: Sequence[Task],
    config: MaintenanceConfig,
) -> Iterator[_Event]:
    """Run tasks, tell the log and the catalogue what each did, and fail at the end if any table failed.

    Events are yielded, because those given to `context.log_event` are lost when the op fails.
    """
    with step_failures(), resource.open(context.run_id) as lakehouse:
        reports = [_run(lakehouse, task, config) for task in tasks]
        for report in reports:
            _log(context, report)
            yield from _events(lakehouse, report)
    _fail_if_any_failed(reports)
    yield dg.Output(None, metadata={"tables": report_table(reports)})


def _run(lakehouse: Lakehouse, task: Task, config: MaintenanceConfig) -> TaskReport:
    retention = config.retention_hours if isinstance(config, VacuumConfig) else None
    _refuse_short_retention(retention, lakehouse.config)
    return gated_upkeep(lakehouse).run(
        task,
        config.tables,
        only_due=config.only_due,
        dry_run=config.dry_run,
        retention_hours=retention if task is Task.VACUUM else None,
    )


def _refuse_short_retention(hours: int | None, config: LakehouseConfig) -> None:
    if hours is not None and hours < config.vacuum_retention_hours:
        raise ConfigError(
            f"retention_hours is {hours}, less than the setting vacuum_retention_hours "
            f"({config.vacuum_retention_hours}): readers of versions in between would lose their files. "
            "Nothing was removed; change the setting if that is what you want.",
            retention_hours=hours,
        )


def _log(context: dg.OpExecutionContext, report: TaskReport) -> None:
    context.log.info(report.summary)
    for outcome in report.outcomes:
        context.log.info(outcome.summary)


def _events(lakehouse: Lakehouse, report: TaskReport) -> Iterator[_Event]:
    for outcome in report.touched:
        key, metadata = keys.table_key(outcome.table), upkeep_metadata(outcome, report.task.value)
        if report.task is Task.SESSION_CLEANUP:
            state = table_metadata(table_status(lakehouse.store, outcome.table))
            yield dg.AssetMaterialization(key, description=_headline(outcome), metadata={**state, **metadata})
        else:
            # The rows are the same, so nothing downstream is out of date: no materialization.
            yield dg.AssetObservation(key, description=_headline(outcome), metadata=metadata)


def _headline(outcome: TableOutcome) -> str:
    return outcome.due.reason if outcome.due else ""


def _fail_if_any_failed(reports: Sequence[TaskReport]) -> None:
    failures = [outcome for report in reports for outcome in report.failures]
    if not failures:
        return
    named = [outcome.table for outcome in failures][:_FAILURES_NAMED]
    raise dg.Failure(
        description=f"Maintenance failed on {len(failures)} tables: {', '.join(named)}. The others were "
        "done; each reason is in the log and in the metadata below.",
        metadata={"failures": report_table(reports)},
        allow_retries=any(
            outcome.error is not None and can_be_retried(outcome.error) for outcome in failures
        ),
    )
