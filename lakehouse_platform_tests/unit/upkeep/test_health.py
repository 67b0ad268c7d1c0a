"""Each claim about a table holds on a sound table and is found false on a broken one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakehouse_platform.model.results import VersionInfo
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform.upkeep.health import (
    Finding,
    few_small_files,
    fresh,
    kept_schema,
    registered_schema,
    unique_key,
)
from lakehouse_platform.upkeep.policy import TableFacts
from lakehouse_platform_tests.support.tables import PEOPLE, people

NOW = datetime(2026, 3, 1, tzinfo=UTC)
USERS = SYSTEM_TABLES["users"]


def write_foreign(store: DeltaStore, name: str, data: pa.Table, **options: str) -> None:
    """Write as a program would that knows nothing of our rules."""
    write_deltalake(store.table(name).location.uri, data, **options)  # type: ignore[arg-type]


def registered(store: DeltaStore) -> Finding:
    return registered_schema(store.table("users").info(), USERS)


def kept(store: DeltaStore, name: str = "people") -> Finding:
    table = store.table(name)
    return kept_schema(table, table.info())


def unique(store: DeltaStore, name: str = "people") -> Finding:
    table = store.table(name)
    return unique_key(table, table.info())


@pytest.mark.parametrize("name", sorted(SYSTEM_TABLES))
def test_a_platform_table_as_created_matches_the_registry(store: DeltaStore, name: str) -> None:
    info = store.ensure(SYSTEM_TABLES[name]).info()

    assert registered_schema(info, SYSTEM_TABLES[name]).passed


def test_a_further_column_is_allowed(store: DeltaStore) -> None:
    schema = USERS.schema.append(pa.field("nickname", pa.string()))
    store.create("users", schema).set_primary_key(["user_id"])

    assert registered(store).passed


def test_a_missing_column_a_wrong_type_and_a_lost_not_null_are_named(store: DeltaStore) -> None:
    fields = [field for field in USERS.schema if field.name not in {"role", "is_active", "email"}]
    changed = [pa.field("is_active", pa.int32(), nullable=False), pa.field("email", pa.string())]
    store.create("users", pa.schema([*fields, *changed])).set_primary_key(["user_id"])
    finding = registered(store)

    assert not finding.passed
    assert "column role is missing" in finding.reason
    assert "column is_active is Int32, not Boolean" in finding.reason
    assert "column email may be NULL" in finding.reason
    assert finding.figures["problems"] == 3


def test_a_lost_key_and_a_lost_partitioning_are_named(store: DeltaStore) -> None:
    keyed = replace(SYSTEM_TABLES["audit_log"], primary_key=("audit_id",))
    store.create("audit_log", keyed.schema)
    finding = registered_schema(store.table("audit_log").info(), keyed)

    assert not finding.passed
    assert "partitioned by nothing, not date_partition" in finding.reason
    assert "primary key is nothing, not audit_id" in finding.reason


def test_a_key_that_an_older_version_declared_is_allowed(store: DeltaStore) -> None:
    spec = SYSTEM_TABLES["user_actions"]
    store.create("user_actions", spec.schema, primary_key=["action_id"], partition_by=spec.partition_by)

    assert registered_schema(store.table("user_actions").info(), spec).passed


def test_a_users_table_may_gain_columns(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    store.append("people", [{"id": 1, "name": "a", "age": 3, "city": "x"}], evolve=True)

    assert kept(store).passed


def test_a_users_table_that_another_program_rewrote_with_other_types_is_found(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    write_foreign(
        store, "people", pa.table({"id": ["1"], "name": ["a"]}), mode="overwrite", schema_mode="overwrite"
    )
    finding = kept(store)

    assert not finding.passed
    assert finding.reason == "Compared with version 0: column id is String, not Int64; column age is missing."


def test_a_key_that_occurs_once_is_unique(store: DeltaStore) -> None:
    store.create("people", PEOPLE, primary_key=["id"])
    store.append("people", people(1, 2, 3))

    assert unique(store) == Finding(
        passed=True, reason="Every id occurs once.", figures={"repeated_keys": 0, "rows_with_repeated_key": 0}
    )


def test_a_key_repeated_by_another_program_is_found_and_its_value_not_told(store: DeltaStore) -> None:
    store.create("people", PEOPLE, primary_key=["name"])
    store.append("people", people(1, 2))
    write_foreign(store, "people", pa.table(people_columns(1, 1, 2)), mode="append")
    finding = unique(store)

    assert not finding.passed
    assert finding.reason == "5 rows share 2 values of name."
    assert finding.figures == {"repeated_keys": 2, "rows_with_repeated_key": 5}


def people_columns(*ids: int) -> dict[str, pa.Array]:
    names = [f"n{number}" for number in ids]
    return {
        "id": pa.array(ids, pa.int64()),
        "name": pa.array(names),
        "age": pa.array([1] * len(ids), pa.int32()),
    }


def test_a_key_of_several_columns_counts_as_a_whole(store: DeltaStore) -> None:
    store.create("people", PEOPLE, primary_key=["id", "name"])
    store.append("people", [{"id": 1, "name": "a", "age": 1}, {"id": 1, "name": "b", "age": 1}])

    assert unique(store).passed


def test_key_columns_with_awkward_names_are_quoted(store: DeltaStore) -> None:
    schema = pa.schema(
        [pa.field('or"der no', pa.int64(), nullable=False), pa.field("Select", pa.string(), nullable=False)]
    )
    store.create("t", schema).set_primary_key(['or"der no', "Select"])
    store.append("t", [{'or"der no': 1, "Select": "a"}])

    assert unique(store, "t").passed


def test_a_table_without_a_key_has_nothing_to_repeat(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    store.append("people", people(1, 1))

    assert unique(store).passed


@pytest.mark.parametrize(
    ("mergeable", "files", "passed"),
    [(0, 0, True), (3, 3, True), (4, 8, True), (5, 8, False), (100, 100, False)],
)
def test_small_files_are_few_in_number_or_as_a_share(
    store: DeltaStore, mergeable: int, files: int, passed: bool
) -> None:
    facts = TableFacts(name="t", files=files, mergeable_files=mergeable)

    assert few_small_files(facts, store.config).passed is passed


def test_the_small_file_finding_says_what_to_do() -> None:
    finding = few_small_files(TableFacts(name="t", files=100, mergeable_files=80), LakehouseConfig())

    assert finding.reason == (
        "80 of 100 files are small and could be merged. Run the compact_tables job or `lakehouse compact`."
    )
    assert finding.figures["small_file_share"] == 0.8


def commit(hours_ago: float, operation: str) -> VersionInfo:
    return VersionInfo(version=7, timestamp=NOW - timedelta(hours=hours_ago), operation=operation)


def test_a_table_is_fresh_up_to_the_age_of_the_settings() -> None:
    config = LakehouseConfig(freshness_hours=36)

    assert fresh([commit(36, "WRITE")], config, NOW).passed
    stale = fresh([commit(36.5, "WRITE")], config, NOW)
    assert not stale.passed
    assert stale.reason == "Content last changed 36.5 hours ago; 36 are allowed."


def test_maintenance_does_not_make_a_stale_table_fresh() -> None:
    commits = [commit(1, "VACUUM END"), commit(1, "OPTIMIZE"), commit(100, "MERGE")]

    assert not fresh(commits, LakehouseConfig(freshness_hours=36), NOW).passed


def test_a_table_with_nothing_but_maintenance_in_sight_is_not_fresh() -> None:
    assert not fresh([commit(1, "OPTIMIZE")], LakehouseConfig(), NOW).passed
