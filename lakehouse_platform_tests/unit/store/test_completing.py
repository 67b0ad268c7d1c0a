"""A table that an older version made gets what the registry says now, and its rows stay."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES, TableSpec

USERS, AUDIT = SYSTEM_TABLES["users"], SYSTEM_TABLES["audit_log"]
# The seed's columns, which an older lakehouse has; all of them are NOT NULL there but for details and addresses.
OLD_USERS = USERS.schema.names[:9]
OLD_AUDIT = AUDIT.schema.names[:7]


def older(spec: TableSpec, names: list[str]) -> TableSpec:
    """Return a registered table as it was before its newer columns came."""
    schema = pa.schema([field for field in spec.schema if field.name in names])
    kept = tuple(name for name in spec.personal_columns if name in names)
    return replace(spec, schema=schema, personal_columns=kept, append_only=False)


def old_user() -> dict[str, object]:
    return dict.fromkeys(OLD_USERS, "x") | {"is_active": True}


def test_missing_columns_are_added_and_old_rows_have_null_in_them(store: DeltaStore) -> None:
    store.ensure(older(USERS, OLD_USERS))
    store.append("users", [old_user()])
    table = store.ensure(USERS)
    assert set(table.arrow_schema().names) == set(USERS.schema.names)
    (row,) = table.scan().to_pylist()
    assert (row["username"], row["status"], row["email_key"]) == ("x", None, None)


def test_a_complete_table_gets_no_commit(store: DeltaStore) -> None:
    for spec in SYSTEM_TABLES.values():
        assert store.ensure(spec).version() == 0
        assert store.ensure(spec).version() == 0


def test_an_old_audit_log_becomes_append_only(store: DeltaStore) -> None:
    store.ensure(older(AUDIT, OLD_AUDIT))
    assert store.ensure(AUDIT).info().properties["delta.appendOnly"] == "true"


def test_a_property_that_somebody_has_set_stays(store: DeltaStore) -> None:
    store.ensure(AUDIT).set_properties({"delta.appendOnly": "false"})
    assert store.ensure(AUDIT).info().properties["delta.appendOnly"] == "false"


def test_a_column_that_old_rows_cannot_lack_is_left_to_the_schema_check(store: DeltaStore) -> None:
    store.ensure(older(USERS, [name for name in OLD_USERS if name != "role"]))
    assert "role" not in store.ensure(USERS).arrow_schema().names


def test_several_who_complete_a_table_at_once_all_succeed(store: DeltaStore) -> None:
    store.ensure(older(USERS, OLD_USERS))
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda _: store.ensure(USERS), range(4)))
    assert {tuple(sorted(table.arrow_schema().names)) for table in tables} == {
        tuple(sorted(USERS.schema.names))
    }


@pytest.mark.parametrize("spec", SYSTEM_TABLES.values(), ids=lambda spec: spec.name)
def test_no_statistics_are_kept_of_personal_columns(spec: TableSpec) -> None:
    indexed = spec.properties().get("delta.dataSkippingStatsColumns", "").split(",")
    assert set(indexed).isdisjoint(spec.personal_columns)
    assert set(spec.personal_columns) <= set(spec.schema.names)
