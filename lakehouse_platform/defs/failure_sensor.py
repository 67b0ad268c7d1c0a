"""Writes runs that failed into the audit log."""

from collections.abc import Iterable

import dagster as dg

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import OWNER
from lakehouse_platform.model.origin import Door
from lakehouse_platform.services.auditing import AuditActor

_MOST_STEPS = 10


@dg.run_failure_sensor(
    name="run_failure_audit_sensor",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Writes each run that failed into the audit log: its id, its job, the steps that failed and the "
    "codes of their errors; never a message, which may repeat values.",
)
def run_failure_audit_sensor(context: dg.RunFailureSensorContext, lakehouse: LakehouseResource) -> None:
    """Record one entry for the run."""
    run = context.dagster_run
    entry = AuditEntry(
        action=ActionType.ADMIN_ACTION,
        user_id=OWNER.id,
        details=_details(run.job_name, context.get_step_failure_events()),
        outcome=Outcome.FAILED,
        door=Door.DAGSTER,
        request_id=run.run_id,
    )
    # Not through the accounts, which ask the tables first: the journal takes it while the storage is away, too.
    with AuditActor(lakehouse.open(run.run_id).store) as audit:
        audit.log(entry)


def _details(job: str, failures: Iterable[dg.DagsterEvent]) -> str:
    failed = [f"{event.step_key} ({_cause(event)})" for event in failures]
    more = f" and {len(failed) - _MOST_STEPS} more" if len(failed) > _MOST_STEPS else ""
    steps = ", ".join(failed[:_MOST_STEPS]) or "no step"
    return f"dagster job {job} failed in {steps}{more}"


def _cause(event: dg.DagsterEvent) -> str:
    """Return the code of the error, or the name of its class."""
    data = event.step_failure_data
    told = data.user_failure_data
    if told is not None and "error_code" in told.metadata:
        return str(told.metadata["error_code"].value)
    error = data.error
    # What the step raised; Dagster wraps it.
    while error is not None and error.cause is not None:
        error = error.cause
    return (error.cls_name if error is not None else None) or "unknown"
