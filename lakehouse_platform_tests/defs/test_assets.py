"""Materializing: creates what is missing, changes no row, and tells everything that the asset page shows."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.status import registered_tables
from lakehouse_platform_tests.support.tables import PEOPLE, people, rows

BuildDefs = Callable[[], dg.Definitions]


def materialize(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *tables: str
) -> dg.ExecuteInProcessResult:
    selection = [dg.AssetKey(["lakehouse", table]) for table in tables] or None
    job = definitions.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(instance=instance, asset_selection=selection, raise_on_error=False)


def latest(instance: dg.DagsterInstance, table: str) -> dict[str, Any]:
    event = instance.get_latest_materialization_event(dg.AssetKey(["lakehouse", table]))
    assert event is not None
    assert event.asset_materialization is not None
    return {key: value.value for key, value in event.asset_materialization.metadata.items()}


def failed_checks(result: dg.ExecuteInProcessResult) -> set[tuple[str, str]]:
    """Return the failed checks by table."""
    evaluations = result.get_asset_check_evaluations()
    return {(one.asset_key.path[-1], one.check_name) for one in evaluations if not one.passed}


def test_materializing_all_makes_a_working_lakehouse(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    result = materialize(defs(), instance)

    assert result.success
    assert store.tables() == sorted(registered_tables())
    # Each step adds a file to the audit log, and four are many in this lakehouse.
    assert failed_checks(result) <= {("audit_log", "small_file_ratio_is_low")}


def versions_of_rows(store: DeltaStore) -> dict[str, int]:
    """Return the version of each table but the audit log, which each run adds to."""
    return {name: store.table(name).version() for name in store.tables() if name != "audit_log"}


def test_each_materialization_is_in_the_audit_log_with_the_run(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    store.create("orders", PEOPLE)
    run_id = materialize(defs(), instance, "orders").run_id
    with AuditActor(store) as audit:
        found = audit.search(action=ActionType.MAINTENANCE)

    assert [(one.resource, one.details, one.door, one.request_id, one.outcome) for one in found] == [
        ("orders", "materialization", "dagster", run_id, "done")
    ]


def test_materializing_again_makes_no_commit_but_that_of_the_audit_log(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    store.create("orders", PEOPLE)
    store.append("orders", people(1, 2))
    definitions = defs()
    materialize(definitions, instance)
    before = versions_of_rows(store)

    assert materialize(definitions, instance).success
    assert versions_of_rows(store) == before
    assert rows(store, "orders") == people(1, 2)


def test_a_users_table_shows_its_figures(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance, config: LakehouseConfig
) -> None:
    store.create("orders", PEOPLE, primary_key=["id"], description="Orders of the shop")
    store.append("orders", people(1, 2, 3))
    assert materialize(defs(), instance, "orders").success
    shown = latest(instance, "orders")

    assert shown["dagster/row_count"] == 3
    assert shown["dagster/table_name"] == "lakehouse.orders"
    assert shown["dagster/uri"] == (Path(config.base_path) / "orders").as_uri()
    assert shown["description"] == "Orders of the shop"
    assert (shown["files"], shown["delta_version"]) == (1, store.table("orders").version())
    assert shown["size_bytes"] == sum(file.size for file in store.table("orders").data_files())
    columns = {column.name: column for column in shown["dagster/column_schema"].columns}
    assert {name: column.type for name, column in columns.items()} == {
        "id": "Int64",
        "name": "String",
        "age": "Int32",
    }
    assert (columns["id"].constraints.unique, columns["id"].constraints.nullable) == (True, False)


def test_the_growth_picture_is_an_inline_image(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    store.create("orders", PEOPLE)
    store.append("orders", people(1, 2, 3))
    materialize(defs(), instance, "orders")
    markdown = latest(instance, "orders")["growth"]
    svg = base64.b64decode(markdown.partition("base64,")[2].rstrip(")")).decode()

    assert markdown.startswith("![growth](data:image/svg+xml;base64,")
    assert svg.startswith("<svg ")
    assert "up to 3 rows, now 3" in svg


def test_the_operations_are_listed_newest_first(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    store.create("orders", PEOPLE)
    store.append("orders", people(1))
    store.delete("orders", "id = 1")
    materialize(defs(), instance, "orders")
    records = [record.data for record in latest(instance, "orders")["operations"].records]

    assert [record["version"] for record in records] == [2, 1, 0]
    assert (records[0]["operation"], records[0]["door"]) == ("DELETE", "python")


def test_columns_of_platform_tables_are_described_and_personal_ones_marked(
    defs: BuildDefs, instance: dg.DagsterInstance
) -> None:
    definitions = defs()
    materialize(definitions, instance, "users")
    expected = definitions.resolve_assets_def(dg.AssetKey(["lakehouse", "users"])).specs_by_key
    defined = expected[dg.AssetKey(["lakehouse", "users"])].metadata["dagster/column_schema"]
    shown = latest(instance, "users")["dagster/column_schema"]

    for schema in (getattr(defined, "value", defined), shown):
        columns = {column.name: column for column in schema.columns}
        assert columns["email"].description == "E-mail address, unique"
        assert columns["email"].tags == {"pii": "true"}
        assert columns["role"].tags == {}


def test_the_data_version_is_the_delta_version(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    store.create("orders", PEOPLE)
    store.append("orders", people(1))
    materialize(defs(), instance, "orders")
    event = instance.get_latest_materialization_event(dg.AssetKey(["lakehouse", "orders"]))

    assert event is not None
    assert event.asset_materialization is not None
    assert (event.asset_materialization.tags or {})["dagster/data_version"] == "1"


def test_commits_made_by_a_run_carry_its_id(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    result = materialize(defs(), instance, "users")
    log = Path(store.table("users").location.uri) / "_delta_log"

    assert store.history("users")[-1].door == "dagster"
    assert f'"lakehouse.runId":"{result.run_id}"' in (log / f"{0:020}.json").read_text()


def test_a_table_that_is_gone_fails_its_own_step_at_once_and_says_why(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    store.create("orders", PEOPLE)
    definitions = defs()
    store.drop("orders")
    result = materialize(definitions, instance, "orders")
    failure = next(event for event in result.all_events if event.is_step_failure).step_failure_data

    assert not result.success
    assert failure.user_failure_data is not None
    assert "There is no table" in (failure.user_failure_data.description or "")
    assert failure.user_failure_data.metadata["error_code"].value == "table_not_found"
    assert not [event for event in result.all_events if event.is_step_up_for_retry]


@pytest.mark.parametrize("count", [0, 1, 30])
def test_the_picture_is_drawn_for_any_number_of_commits(
    defs: BuildDefs, store: DeltaStore, instance: dg.DagsterInstance, count: int
) -> None:
    store.create("orders", PEOPLE)
    for number in range(count):
        store.append("orders", people(number))

    assert materialize(defs(), instance, "orders").success
    assert "data:image/svg+xml" in latest(instance, "orders")["growth"]
