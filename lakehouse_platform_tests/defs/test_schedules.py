"""A schedule's tick starts a run when a table is due, and says why when it does not."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.unit.upkeep.builders import break_log, scattered, with_sessions

BuildDefs = Callable[[], dg.Definitions]
Tick = Callable[[str], Any]

WHEN = datetime(2026, 3, 1, 6, 20, tzinfo=UTC)


@pytest.fixture
def tick(defs: BuildDefs, lakehouse: LakehouseResource, instance: dg.DagsterInstance) -> Tick:
    def evaluate(schedule: str) -> Any:
        definitions = defs()
        context = dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=WHEN,
            resources={"lakehouse": lakehouse},
            repository_def=definitions.get_repository_def(),
        )
        return definitions.resolve_schedule_def(schedule).evaluate_tick(context)

    return evaluate


@pytest.mark.parametrize(
    "schedule",
    [
        "session_cleanup_hourly",
        "compact_tables_every_6_hours",
        "z_order_tables_daily",
        "vacuum_tables_weekly",
    ],
)
def test_nothing_is_started_in_a_lakehouse_that_does_not_exist(tick: Tick, schedule: str) -> None:
    data = tick(schedule)

    assert data.run_requests == []
    assert data.skip_message == "0 tables looked at, none is due."


def test_a_tick_skips_while_no_table_is_due_and_says_how_many_it_saw(tick: Tick, store: DeltaStore) -> None:
    scattered(store, "few", files=2)

    assert tick("compact_tables_every_6_hours").skip_message == "1 tables looked at, none is due."


def test_a_due_table_starts_one_run_for_that_time(tick: Tick, store: DeltaStore) -> None:
    scattered(store, "many", files=6)
    requests = tick("compact_tables_every_6_hours").run_requests

    assert requests is not None
    assert [request.run_key for request in requests] == ["2026-03-01T06:20:00+00:00"]
    assert requests[0].run_config["ops"] == {
        "compact": {"config": {"tables": [], "only_due": True, "dry_run": False}}
    }


def test_a_scheduled_run_accepts_its_config_and_does_the_work(
    tick: Tick, defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    scattered(store, "many", files=6)
    request = (tick("compact_tables_every_6_hours").run_requests or [])[0]
    job = defs().resolve_job_def("compact_tables")

    assert job.execute_in_process(run_config=request.run_config, instance=instance).success
    assert tick("compact_tables_every_6_hours").run_requests == []


def test_sessions_past_their_end_start_the_hourly_run(tick: Tick, store: DeltaStore) -> None:
    with_sessions(store, ["2020-01-01T00:00:00Z"])

    assert len(tick("session_cleanup_hourly").run_requests or []) == 1


@pytest.mark.parametrize("extra_settings", [{"vacuum_retention_hours": 0}])
def test_the_weekly_vacuum_is_a_real_one(tick: Tick, store: DeltaStore) -> None:
    scattered(store, "people", files=6)
    store.compact("people")
    requests = tick("vacuum_tables_weekly").run_requests or []

    assert [request.run_config["ops"]["vacuum"]["config"]["dry_run"] for request in requests] == [False]


def test_many_commits_start_the_daily_z_order(tick: Tick, store: DeltaStore) -> None:
    scattered(store, "people", files=6)

    assert len(tick("z_order_tables_daily").run_requests or []) == 1


def test_a_table_that_cannot_be_read_starts_the_run_that_will_report_it(
    tick: Tick, store: DeltaStore
) -> None:
    scattered(store, "broken", files=2)
    break_log(store, "broken")

    assert len(tick("compact_tables_every_6_hours").run_requests or []) == 1


def test_there_is_nothing_to_verify_without_an_audit_log(tick: Tick) -> None:
    assert tick("verify_audit_log_daily").skip_message == "There is no audit log."


def test_the_audit_log_is_verified_every_night(
    tick: Tick, defs: BuildDefs, system_store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    requests = tick("verify_audit_log_daily").run_requests or []
    result = defs().resolve_job_def("verify_audit_log").execute_in_process(instance=instance)

    assert [request.run_key for request in requests] == ["2026-03-01T06:20:00+00:00"]
    assert [one.check_name for one in result.get_asset_check_evaluations()] == ["hash_chain_is_intact"]
    assert system_store.scan("audit_log").to_arrow().num_rows == 1
