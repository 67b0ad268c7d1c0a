"""The checks in the catalogue pass on sound tables and fail on tables broken in the way they watch for."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
from deltalake import write_deltalake

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.status import registered_tables
from lakehouse_platform_tests.support.tables import PEOPLE, people

BuildDefs = Callable[[], dg.Definitions]
Evaluations = dict[str, dg.AssetCheckEvaluation]


def evaluate(definitions: dg.Definitions, table: str) -> Evaluations:
    """Run the checks of one table, and nothing else."""
    key = dg.AssetKey(["lakehouse", table])
    job = dg.define_asset_job("checks", selection=dg.AssetSelection.checks_for_assets(key))
    resolved = dg.Definitions(
        assets=definitions.assets,
        asset_checks=definitions.asset_checks,
        jobs=[job],
        resources=definitions.resources,
    ).resolve_job_def("checks")
    result = resolved.execute_in_process(raise_on_error=False)
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


def failed(evaluations: Evaluations) -> dict[str, str]:
    return {
        name: evaluation.severity.value for name, evaluation in evaluations.items() if not evaluation.passed
    }


def test_a_sound_platform_table_passes_every_check(defs: BuildDefs, system_store: DeltaStore) -> None:
    evaluations = evaluate(defs(), "users")

    assert set(evaluations) == {
        "schema_matches_registry", "primary_key_is_unique", "small_file_ratio_is_low", "table_is_fresh",
    }  # fmt: skip
    assert failed(evaluations) == {}


def test_a_sound_users_table_passes_every_check(defs: BuildDefs, store: DeltaStore) -> None:
    store.create("orders", PEOPLE, primary_key=["id"])
    store.append("orders", people(1, 2))
    evaluations = evaluate(defs(), "orders")

    assert "schema_has_kept_its_columns" in evaluations
    assert failed(evaluations) == {}


def test_a_platform_table_that_lost_a_column_is_an_error(defs: BuildDefs, store: DeltaStore) -> None:
    spec = registered_tables()["users"]
    store.create(
        "users", pa.schema([field for field in spec.schema if field.name != "role"])
    ).set_primary_key(spec.primary_key)
    evaluations = evaluate(defs(), "users")

    assert failed(evaluations) == {"schema_matches_registry": "ERROR"}
    assert "column role is missing" in (evaluations["schema_matches_registry"].description or "")


def test_a_users_table_rewritten_with_other_types_is_a_warning(defs: BuildDefs, store: DeltaStore) -> None:
    store.create("orders", PEOPLE)
    uri = store.table("orders").location.uri
    write_deltalake(uri, pa.table({"id": ["x"]}), mode="overwrite", schema_mode="overwrite")

    assert failed(evaluate(defs(), "orders")) == {"schema_has_kept_its_columns": "WARN"}


def test_a_key_repeated_by_another_program_is_an_error(defs: BuildDefs, store: DeltaStore) -> None:
    store.create("orders", PEOPLE, primary_key=["id"])
    store.append("orders", people(1))
    row = pa.table({"id": pa.array([1], pa.int64()), "name": ["again"], "age": pa.array([1], pa.int32())})
    write_deltalake(store.table("orders").location.uri, row, mode="append")
    evaluations = evaluate(defs(), "orders")

    assert failed(evaluations) == {"primary_key_is_unique": "ERROR"}
    assert evaluations["primary_key_is_unique"].metadata["rows_with_repeated_key"].value == 2


def test_many_small_files_are_a_warning_until_they_are_compacted(defs: BuildDefs, store: DeltaStore) -> None:
    store.create("orders", PEOPLE)
    for number in range(6):
        store.append("orders", people(number))
    definitions = defs()

    assert failed(evaluate(definitions, "orders")) == {"small_file_ratio_is_low": "WARN"}
    store.compact("orders")
    assert failed(evaluate(definitions, "orders")) == {}


def test_a_table_not_written_for_long_is_stale(defs: BuildDefs, store: DeltaStore) -> None:
    store.create("orders", PEOPLE)
    store.append("orders", people(1))
    age_commits(store, "orders", timedelta(hours=40))

    assert failed(evaluate(defs(), "orders")) == {"table_is_fresh": "WARN"}


def age_commits(store: DeltaStore, table: str, by: timedelta) -> None:
    """Make the table's commits as old as if they had been made that much earlier."""
    shift = int(by.total_seconds() * 1000)
    now = int(datetime.now(UTC).timestamp() * 1000)
    for entry in (Path(store.table(table).location.uri) / "_delta_log").glob("*.json"):
        text = entry.read_text()
        for stamp in {part[:13] for part in text.split('"timestamp":')[1:]}:
            assert abs(now - int(stamp)) < 600_000
            text = text.replace(f'"timestamp":{stamp}', f'"timestamp":{int(stamp) - shift}')
        entry.write_text(text)
