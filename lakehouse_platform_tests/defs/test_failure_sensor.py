"""A run that failed leaves one entry in the audit log, which repeats nothing that the run had in its hands."""

from collections.abc import Callable

import dagster as dg
import pytest

from lakehouse_platform.audit.reports import AuditRecord
from lakehouse_platform.defs.failure_sensor import run_failure_audit_sensor
from lakehouse_platform.defs.maintenance import MaintenanceConfig
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.unit.upkeep.builders import scattered

BuildDefs = Callable[[], dg.Definitions]
Tell = Callable[[dg.ExecuteInProcessResult], None]


@pytest.fixture
def tell(lakehouse: LakehouseResource, instance: dg.DagsterInstance) -> Tell:
    """Tell the sensor of a run that failed, as Dagster does."""

    def evaluate(result: dg.ExecuteInProcessResult) -> None:
        context = dg.build_run_status_sensor_context(
            sensor_name="run_failure_audit_sensor",
            dagster_instance=instance,
            dagster_run=result.dagster_run,
            dagster_event=result.get_run_failure_event(),
            resources={"lakehouse": lakehouse},
        ).for_run_failure()
        run_failure_audit_sensor(context)

    return evaluate


def entries(store: DeltaStore) -> list[AuditRecord]:
    with AuditActor(store) as audit:
        return audit.search()


def test_a_failed_run_is_recorded_with_its_id_its_job_and_the_errors_code(
    defs: BuildDefs, tell: Tell, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    scattered(store, "people", files=2)
    config = dg.RunConfig(ops={"compact": MaintenanceConfig(tables=["secret_name"])})
    job = defs().resolve_job_def("compact_tables")
    result = job.execute_in_process(run_config=config, instance=instance, raise_on_error=False)
    tell(result)
    (entry,) = entries(store)

    assert (entry.action, entry.outcome, entry.door) == ("admin_action", "failed", "dagster")
    assert (entry.user_id, entry.request_id) == ("owner", result.run_id)
    assert entry.details == "dagster job compact_tables failed in compact (table_not_found)"


def test_what_an_unknown_exception_says_is_not_repeated(
    tell: Tell, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    @dg.op
    def leaks() -> None:
        raise ValueError("alice@example.com")

    @dg.job
    def own() -> None:
        leaks()

    result = own.execute_in_process(instance=instance, raise_on_error=False)
    tell(result)
    (entry,) = entries(store)

    assert entry.details == "dagster job own failed in leaks (ValueError)"


def test_the_journal_keeps_what_the_storage_does_not_take(
    tell: Tell, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    @dg.op
    def fails() -> None:
        raise ValueError

    @dg.job
    def own() -> None:
        fails()

    place = store.base.path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("no directory")
    result = own.execute_in_process(instance=instance, raise_on_error=False)
    with pytest.raises(Exception, match="safe in"):
        tell(result)
    place.unlink()

    assert [entry.request_id for entry in entries(store)] == [result.run_id]


def test_it_watches_every_job_of_the_code_location(defs: BuildDefs) -> None:
    sensor = defs().get_repository_def().get_sensor_def("run_failure_audit_sensor")

    assert sensor.sensor_type.name == "RUN_STATUS"
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
