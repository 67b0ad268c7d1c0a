"""Definition, restoring and maintenance through the gate."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    AuditWriteFailedError,
    ConstraintViolationError,
    InvalidArgumentError,
    InvalidPredicateError,
    PermissionDeniedError,
    VersionNotFoundError,
)
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import actions, entries


def test_an_old_version_is_brought_back_by_number_and_by_time(
    auth: AuthActor, store: DeltaStore, tables: TableAccess
) -> None:
    then = next(one.timestamp for one in store.history("rides") if one.version == 2)
    assert tables.restore("rides", 1) == 3
    assert store.scan("rides").to_arrow().num_rows == 1
    assert tables.restore("rides", then) == 4
    assert store.scan("rides").to_arrow().num_rows == 2
    with pytest.raises(VersionNotFoundError):
        tables.restore("rides", 99)
    assert actions(auth, store) == [("restore", "started"), ("restore", "done")] * 2 + [
        ("restore", "started"),
        ("restore", "failed"),
    ]


def test_the_audit_log_is_never_brought_back(auth: AuthActor, store: DeltaStore, tables: TableAccess) -> None:
    tables.scan("rides").to_arrow()
    auth.audit.flush()
    for name in ("audit_log", "Audit_Log"):
        with pytest.raises(PermissionDeniedError, match="only grows"):
            tables.restore(name, 0)
    assert entries(auth, store)[-1]["outcome"] == "denied"
    assert auth.audit.verify().is_whole


def test_files_are_merged_clustered_and_deleted(
    auth: AuthActor, store: DeltaStore, tables: TableAccess
) -> None:
    assert tables.compact("rides").files_removed == 2
    assert tables.z_order("rides", ["id"]).version >= 3
    assert tables.vacuum("rides", dry_run=True).dry_run
    assert not tables.vacuum("rides").dry_run
    done = [(entry["action"], entry["details"]) for entry in entries(auth, store)]
    assert done == [("maintenance", what) for what in ("compact", "z-order", "vacuum, dry run", "vacuum")]


def test_a_table_is_defined(auth: AuthActor, store: DeltaStore, tables: TableAccess) -> None:
    versions = [
        tables.set_primary_key("rides", ["id"]),
        tables.set_properties("rides", {"delta.logRetentionDuration": "interval 40 days"}),
        tables.add_constraint("rides", "positive", "id > 0"),
        tables.add_columns("rides", pa.schema([("km", pa.float64())])),
    ]
    assert versions == [3, 4, 5, 6]
    with pytest.raises(ConstraintViolationError):
        tables.append("rides", [{"id": -1}])
    with pytest.raises(InvalidPredicateError):
        tables.add_constraint("rides", "wrong", "id IN (SELECT 1)")
    assert tables.drop_constraint("rides", "positive") == 7
    info = store.describe("rides")
    assert (info.primary_key, [column.name for column in info.columns]) == (("id",), ["id", "town", "km"])
    assert actions(auth, store)[:2] == [("schema_change", "started"), ("schema_change", "done")]


def test_what_cannot_be_written_down_is_not_done(
    auth: AuthActor, store: DeltaStore, tables: TableAccess
) -> None:
    auth.audit.close()
    for act in (
        lambda: tables.restore("rides", 1),
        lambda: tables.set_primary_key("rides", ["id"]),
        lambda: tables.drop("rides"),
    ):
        with pytest.raises(AuditWriteFailedError):
            act()
    assert store.table("rides").version() == 2


@pytest.mark.parametrize("number", [-1, 2**63, 10**30])
def test_numbers_that_the_engine_cannot_hold_are_refused(tables: TableAccess, number: int) -> None:
    for act in (lambda: tables.vacuum("rides", number), lambda: tables.compact("rides", number)):
        with pytest.raises(InvalidArgumentError, match="give"):
            act()
