"""One command is one operation: one entry in the audit log, whatever it takes to do it."""

from __future__ import annotations

import pytest

from lakehouse_platform.errors import (
    AuthError,
    InvalidRowsError,
    LakehouseError,
    PermissionDeniedError,
    TableNotFoundError,
)
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.identity.permissions import Permission, Right
from lakehouse_platform.model.actors import OWNER, Actor, Role
from lakehouse_platform.model.results import TableInfo
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.table_work import TableWork, difference
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.unit.services.conftest import person

pytestmark = pytest.mark.usefixtures("tables")


def work_of(store: DeltaStore, auth: AuthActor, actor: Actor = OWNER) -> TableWork:
    return TableWork(store, auth.gate, actor=actor)


def granted(store: DeltaStore, right: Right) -> Actor:
    Grants(store).grant("anna", "rides", right, "owner")
    return person("anna")


def entries(auth: AuthActor, user_id: str) -> list[tuple[str | None, ...]]:
    found = auth.audit.search(user_id=user_id)
    return [(one.action, one.resource, one.outcome, one.details) for one in found]


def test_several_steps_are_one_entry_with_the_rows_that_are_told(store: DeltaStore, auth: AuthActor) -> None:
    anna = granted(store, Right.WRITE)
    with work_of(store, auth, anna).using("rides", Permission.WRITE_TABLE, "append") as use:
        use.table.append([{"id": 3, "town": "Chur"}])
        use.note.row_count = use.table.info().rows
    (found,) = auth.audit.search(user_id="anna")
    assert (found.action, found.resource, found.row_count) == ("data_write", "rides", 3)
    assert store.history("rides", 1)[0].actor == "anna"


def test_what_fails_is_written_down_as_failed(store: DeltaStore, auth: AuthActor) -> None:
    anna = granted(store, Right.WRITE)
    with (
        pytest.raises(InvalidRowsError),
        work_of(store, auth, anna).using("rides", Permission.WRITE_TABLE, "append") as use,
    ):
        use.table.append([{"other": 1}])
    assert entries(auth, "anna") == [("data_write", "rides", "failed", "append; invalid_rows")]


def test_a_further_permission_is_asked_for(store: DeltaStore, auth: AuthActor) -> None:
    anna = granted(store, Right.WRITE)
    with (
        pytest.raises(PermissionDeniedError),
        work_of(store, auth, anna).using(
            "rides", Permission.WRITE_TABLE, "append", also=Permission.ALTER_TABLE
        ),
    ):
        pytest.fail("let through")
    assert [one[:3] for one in entries(auth, "anna")] == [("permission_denied", "rides", "denied")]


@pytest.mark.parametrize("permission", [Permission.CREATE_TABLE, Permission.DROP_TABLE])
def test_a_superadmin_neither_makes_nor_deletes_the_platforms_tables(
    store: DeltaStore, auth: AuthActor, permission: Permission
) -> None:
    root = person("root", Role.SUPERADMIN)
    with pytest.raises(AuthError), work_of(store, auth, root).using("users", permission, "x"):
        pytest.fail("let through")


def test_the_owner_does_not_bring_back_an_old_audit_log(store: DeltaStore, auth: AuthActor) -> None:
    with (
        pytest.raises(PermissionDeniedError, match="only grows"),
        work_of(store, auth).using("audit_log", Permission.RESTORE_TABLE, "version 0"),
    ):
        pytest.fail("let through")


def test_the_owner_is_told_where_a_missing_table_was_looked_for(store: DeltaStore, auth: AuthActor) -> None:
    with (
        pytest.raises(TableNotFoundError, match=store.base.uri),
        work_of(store, auth).using("nothing", Permission.READ_TABLE, "description") as use,
    ):
        use.table.info()


def test_an_administrator_is_told_only_the_names(store: DeltaStore, auth: AuthActor) -> None:
    admin = person("admin", Role.ADMIN)
    with (
        pytest.raises(TableNotFoundError, match=r"There is no table 'ride'\. Did you mean rides") as caught,
        work_of(store, auth, admin).using("ride", Permission.READ_TABLE, "description") as use,
    ):
        use.table.info()
    assert store.base.uri not in str(caught.value)


def test_rows_are_counted_before_they_are_handed_out(store: DeltaStore, auth: AuthActor) -> None:
    anna = granted(store, Right.READ)
    work = work_of(store, auth, anna)
    with work.rows("rides", Permission.RUN_SQL, lambda table: table.sql("SELECT 1 FROM data"), "query"):
        (found,) = auth.audit.search(user_id="anna")
        assert (found.action, found.row_count, found.outcome) == ("sql_query", 2, "done")


def test_an_export_is_written_down_before_it_begins(store: DeltaStore, auth: AuthActor) -> None:
    anna = granted(store, Right.READ)
    with work_of(store, auth, anna).rows(
        "rides", Permission.EXPORT_TABLE, lambda table: table.scan(), "export"
    ):
        pass
    assert [one[2] for one in entries(auth, "anna")] == ["started", "done"]


def test_who_may_not_see_columns_is_not_shown_them(store: DeltaStore, auth: AuthActor) -> None:
    admin = person("admin", Role.ADMIN)
    work = work_of(store, auth, admin)
    with work.rows("users", Permission.READ_TABLE, lambda table: table.scan(), "all") as rows:
        assert "password_hash" not in rows.schema.names
    with work.using("users", Permission.READ_TABLE, "history") as use:
        assert {len(one.parameters) for one in use.table.history()} == {0}


def test_an_overview_holds_what_one_may_read_and_why_something_cannot_be_told(
    store: DeltaStore, auth: AuthActor
) -> None:
    anna = granted(store, Right.READ)
    assert work_of(store, auth, anna).overview(opened=False) == {"rides": None}
    (info,) = work_of(store, auth, anna).overview().values()
    assert isinstance(info, TableInfo)
    max(store.table("rides").location.path.glob("_delta_log/*.json")).write_text("damaged")
    (damaged,) = work_of(store, auth, anna).overview().values()
    assert isinstance(damaged, LakehouseError)
    assert [one[0] for one in entries(auth, "anna")] == ["custom"] * 3


def test_a_difference_goes_to_the_newest_version(tables: TableAccess, store: DeltaStore) -> None:
    table = store.table("rides")
    assert difference(table, 1, None).to_arrow() == tables.diff("rides", 1, 2).to_arrow()
