"""The maintenance jobs: only due tables, safe defaults, what they tell the catalogue, and how they fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lakehouse_platform.defs.maintenance import MaintenanceConfig, VacuumConfig
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.private_files import state_directory
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import ids
from lakehouse_platform_tests.unit.upkeep.builders import break_log, scattered, with_sessions

BuildDefs = Callable[[], dg.Definitions]
Run = Callable[..., dg.ExecuteInProcessResult]

OPS = {
    "session_cleanup": "clean_up_sessions",
    "compact_tables": "compact",
    "z_order_tables": "z_order",
    "vacuum_tables": "vacuum",
}


@pytest.fixture
def run(defs: BuildDefs, instance: dg.DagsterInstance) -> Run:
    """Run a job with its defaults, or with the config given."""

    def execute(job: str, config: MaintenanceConfig | None = None) -> dg.ExecuteInProcessResult:
        run_config = dg.RunConfig(ops={OPS[job]: config}) if config else None
        return (
            defs()
            .resolve_job_def(job)
            .execute_in_process(run_config=run_config, instance=instance, raise_on_error=False)
        )

    return execute


def observed(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    events = [
        event for event in result.all_events if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    ]
    observations = [event.asset_observation_data.asset_observation for event in events]
    return {
        observation.asset_key.path[-1]: {key: value.value for key, value in observation.metadata.items()}
        for observation in observations
    }


def failure(result: dg.ExecuteInProcessResult) -> tuple[str, dict[str, Any]]:
    event = next(event for event in result.all_events if event.is_step_failure)
    data = event.step_failure_data.user_failure_data
    assert data is not None
    return data.description or "", dict(data.metadata)


def test_compaction_observes_the_tables_it_touched_and_no_other(run: Run, store: DeltaStore) -> None:
    scattered(store, "many", files=6)
    scattered(store, "few", files=2)
    result = run("compact_tables")
    seen = observed(result)

    assert result.success
    assert list(seen) == ["many"]
    assert seen["many"]["task"] == "compact"
    assert (seen["many"]["files_before"], seen["many"]["files_after"]) == (6, 1)
    assert (seen["many"]["version_before"], seen["many"]["version_after"]) == (6, 7)
    assert (seen["many"]["rows_before"], seen["many"]["rows_after"]) == (6, 6)
    assert store.table("few").version() == 2


def audited(store: DeltaStore) -> list[tuple[str, str | None, str, str | None]]:
    with AuditActor(store) as audit:
        found = audit.search(action=ActionType.MAINTENANCE)
    return [(one.details or "", one.resource, one.outcome or "", one.request_id) for one in found]


def test_each_change_of_a_table_is_in_the_audit_log_with_the_run(run: Run, store: DeltaStore) -> None:
    for name in ("a", "b"):
        scattered(store, name, files=6)
    scattered(store, "few", files=2)
    result = run("compact_tables")

    assert audited(store) == [
        ("compact", "a", "done", result.run_id),
        ("compact", "b", "done", result.run_id),
    ]


def test_a_change_that_the_audit_log_cannot_take_is_not_done(
    run: Run, store: DeltaStore, config: LakehouseConfig
) -> None:
    scattered(store, "many", files=6)
    place = state_directory(config.state_path, store.base.uri)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("no directory")
    result = run("compact_tables")

    assert not result.success
    assert store.table("many").version() == 6


def test_looking_alone_leaves_nothing_in_the_audit_log(run: Run, store: DeltaStore) -> None:
    scattered(store, "people", files=6)
    run("compact_tables", MaintenanceConfig(dry_run=True))

    assert store.tables() == ["people"]


def test_the_decisions_about_every_table_are_on_the_steps_output(run: Run, store: DeltaStore) -> None:
    scattered(store, "many", files=6)
    scattered(store, "few", files=2)
    result = run("compact_tables")
    output = next(event for event in result.all_events if event.is_successful_output)
    records = [record.data for record in output.step_output_data.metadata["tables"].records]

    assert [(r["table"], r["result"]) for r in records if r["task"] == "compact"] == [
        ("many", "done"),
        ("few", "not due"),
    ]
    assert records[1]["reason"] == "2 files below 50 MB can be merged; compaction starts at 4."


def test_a_lakehouse_that_does_not_exist_needs_no_maintenance(run: Run) -> None:
    assert [run(job).success for job in OPS] == [True] * 4


def test_z_order_sorts_the_table_that_is_due(run: Run, store: DeltaStore) -> None:
    scattered(store, "people", files=6)

    assert list(observed(run("z_order_tables"))) == ["people"]
    assert store.history("people", limit=1)[0].operation == "OPTIMIZE"


def test_session_cleanup_reports_a_materialization_because_rows_are_gone(run: Run, store: DeltaStore) -> None:
    with_sessions(store, ["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
    result = run("session_cleanup")
    materialized = result.asset_materializations_for_node("clean_up_sessions")

    assert result.success
    assert [event.asset_key.path for event in materialized] == [["lakehouse", "sessions"]]
    metadata = materialized[0].metadata
    assert (metadata["rows_before"].value, metadata["rows_after"].value) == (2, 1)
    assert metadata["dagster/row_count"].value == 1
    assert metadata["reason"].value == "1 session past the end."


def vacuumable(store: DeltaStore) -> Path:
    """Make a table with six files that only an old version needs; return its directory."""
    scattered(store, "people", files=6)
    store.compact("people")
    return Path(store.table("people").location.uri)


def parquet_files(table: Path) -> int:
    return len(list(table.glob("*.parquet")))


@pytest.mark.parametrize("extra_settings", [{"vacuum_retention_hours": 0}])
def test_a_vacuum_by_hand_removes_nothing_unless_told_so(run: Run, store: DeltaStore) -> None:
    table = vacuumable(store)

    assert run("vacuum_tables").success
    assert parquet_files(table) == 7
    assert run("vacuum_tables", VacuumConfig(dry_run=False)).success
    assert parquet_files(table) == 1
    assert ids(store, "people") == list(range(6))


def test_a_vacuum_keeps_what_the_settings_retention_protects(run: Run, store: DeltaStore) -> None:
    table = vacuumable(store)

    assert run("vacuum_tables", VacuumConfig(dry_run=False, only_due=False)).success
    assert parquet_files(table) == 7


def test_a_vacuum_with_a_shorter_retention_than_the_settings_is_refused(run: Run, store: DeltaStore) -> None:
    table = vacuumable(store)
    result = run("vacuum_tables", VacuumConfig(dry_run=False, retention_hours=0))
    description, metadata = failure(result)

    assert not result.success
    assert "less than the setting vacuum_retention_hours (168)" in description
    assert metadata["error_code"].value == "config"
    assert parquet_files(table) == 7


def test_a_dry_run_touches_nothing(run: Run, store: DeltaStore) -> None:
    scattered(store, "people", files=6)

    assert observed(run("compact_tables", MaintenanceConfig(dry_run=True))) == {}
    assert store.table("people").version() == 6


def test_chosen_tables_can_be_forced(run: Run, store: DeltaStore) -> None:
    for name in ("a", "b"):
        scattered(store, name, files=2)

    assert list(observed(run("compact_tables", MaintenanceConfig(tables=["b"], only_due=False)))) == ["b"]


def test_an_unknown_table_fails_at_once_without_a_retry(run: Run, store: DeltaStore) -> None:
    scattered(store, "people", files=6)
    result = run("compact_tables", MaintenanceConfig(tables=["peple"]))
    description, metadata = failure(result)

    assert "There is no table peple to maintain; nothing was done. Tables here: people." in description
    assert metadata["error_code"].value == "table_not_found"
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    assert store.table("people").version() == 6


def test_a_broken_table_fails_the_run_after_the_others_were_done(run: Run, store: DeltaStore) -> None:
    for name in ("a", "b", "c"):
        scattered(store, name, files=6)
    break_log(store, "b")
    result = run("compact_tables")
    description, metadata = failure(result)

    assert not result.success
    assert sorted(observed(result)) == ["a", "c"]
    assert "Maintenance failed on" in description
    assert metadata["failures"].records[0].data["table"] == "b"
    assert not [event for event in result.all_events if event.is_step_up_for_retry]


def test_the_launchpad_opens_with_every_default_filled_in(defs: BuildDefs) -> None:
    config = defs().resolve_job_def("vacuum_tables").run_config

    assert config is not None
    assert config["ops"] == {"vacuum": {"config": {"tables": [], "only_due": True, "dry_run": True}}}


@pytest.mark.parametrize("wrong", [{"table": ["x"]}, {"dry_run": "yes"}, {"tables": "people"}])
def test_wrong_config_is_refused_before_the_run_starts(defs: BuildDefs, wrong: dict[str, Any]) -> None:
    job = defs().resolve_job_def("vacuum_tables")
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(job, {"ops": {"vacuum": {"config": wrong}}})


def test_every_option_is_described(defs: BuildDefs) -> None:
    for model in (MaintenanceConfig, VacuumConfig):
        assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_only_one_maintenance_run_works_at_a_time(defs: BuildDefs) -> None:
    for job, op in OPS.items():
        assert defs().resolve_job_def(job).graph.node_named(op).definition.pool == "delta_maintenance"
