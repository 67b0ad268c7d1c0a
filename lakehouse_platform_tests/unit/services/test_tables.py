"""Every operation on tables × everybody who could ask: what role and grant allow is done, all else is denied."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.errors import (
    InvalidNameError,
    PermissionDeniedError,
    StorageIoError,
    TableNotFoundError,
)
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.identity.limits import Limits
from lakehouse_platform.identity.permissions import MATRIX, RULES, Permission
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.rights import EVERY_TABLE, Right, Scopes
from lakehouse_platform.private_files import private_directory
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.services.gate import Gate
from lakehouse_platform.services.preparing import prepare
from lakehouse_platform.services.reading import GatedRows
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES

P = Permission
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("town", pa.string())])
ROWS = [{"id": 1, "town": "Basel"}, {"id": 2, "town": "Bern"}]
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
_numbers = count(1000)


def row() -> list[dict[str, Any]]:
    return [{"id": next(_numbers), "town": "Chur"}]


Call = Callable[[TableAccess, str], Any]
# What reads, with what changes nothing whoever asks.
READS: Mapping[str, tuple[Permission, Call]] = {
    "describe": (P.READ_TABLE, lambda t, name: t.describe(name)),
    "scan": (P.READ_TABLE, lambda t, name: t.scan(name)),
    "query": (P.READ_TABLE, lambda t, name: t.query(name, "TRUE")),
    "read_version": (P.READ_TABLE, lambda t, name: t.read_version(name, 0)),
    "read_timestamp": (P.READ_TABLE, lambda t, name: t.read_timestamp(name, "2999-01-01T00:00:00Z")),
    "history": (P.READ_TABLE, lambda t, name: t.history(name)),
    "diff": (P.READ_TABLE, lambda t, name: t.diff(name, 0, 0)),
    "skipping": (P.READ_TABLE, lambda t, name: t.skipping(name)),
    "sql": (P.RUN_SQL, lambda t, name: t.sql(f'SELECT * FROM "{name}"')),
}
CHANGES: Mapping[str, tuple[Permission, Call]] = {
    "change_feed": (P.READ_TABLE, lambda t, name: t.change_feed(name, 0)),
    "append": (P.WRITE_TABLE, lambda t, name: t.append(name, row())),
    "overwrite": (P.WRITE_TABLE, lambda t, name: t.overwrite(name, row())),
    "overwrite_where": (P.WRITE_TABLE, lambda t, name: t.overwrite_where(name, "id < 0", [])),
    "delete": (P.WRITE_TABLE, lambda t, name: t.delete(name, "id = 1000")),
    "update": (P.WRITE_TABLE, lambda t, name: t.update(name, {"town": "'Thun'"})),
    "merge": (P.WRITE_TABLE, lambda t, name: t.merge(name, row(), ["id"])),
    "restore": (P.RESTORE_TABLE, lambda t, name: t.restore(name, 1)),
    "compact": (P.MAINTAIN_TABLE, lambda t, name: t.compact(name)),
    "z_order": (P.MAINTAIN_TABLE, lambda t, name: t.z_order(name, ["id"])),
    "vacuum": (P.MAINTAIN_TABLE, lambda t, name: t.vacuum(name, dry_run=True)),
    "set_primary_key": (P.ALTER_TABLE, lambda t, name: t.set_primary_key(name, ["id"])),
    "set_properties": (P.ALTER_TABLE, lambda t, name: t.set_properties(
        name, {"delta.logRetentionDuration": "interval 30 days"})),
    "add_constraint": (P.ALTER_TABLE, lambda t, name: t.add_constraint(name, f"c{next(_numbers)}", "id > 0")),
    "drop_constraint": (P.ALTER_TABLE, lambda t, name: t.drop_constraint(name, "first")),
    "add_columns": (P.ALTER_TABLE, lambda t, name: t.add_columns(
        name, pa.schema([(f"c{next(_numbers)}", pa.int64())]))),
    "drop": (P.DROP_TABLE, lambda t, name: t.drop(name)),
}  # fmt: skip
ON_TABLES = {**READS, **CHANGES}
RIGHTS: Mapping[str, Right | None] = {
    "owner": Right.MAINTAIN, "anonymous": None, "stranger": None, "reader": Right.READ, "writer": Right.WRITE,
    "keeper": Right.MAINTAIN, "admin": Right.MAINTAIN, "superadmin": Right.MAINTAIN, "key": Right.READ,
}  # fmt: skip
SYSTEM_READERS = {"owner", "admin", "superadmin"}
NAMES = [f"t_{method}" for method in ON_TABLES]


def user(name: str, role: Role = Role.USER, **more: Any) -> Actor:
    return Actor(id=name, kind=ActorKind.USER, role=role, tier=SubscriptionTier.ENTERPRISE, **more)


ACTORS: Mapping[str, Actor] = {
    "owner": OWNER,
    "anonymous": ANONYMOUS,
    "stranger": user("stranger"),
    "reader": user("reader"),
    "writer": user("writer"),
    "keeper": user("keeper"),
    "admin": user("admin", Role.ADMIN),
    "superadmin": user("superadmin", Role.SUPERADMIN),
    "key": replace(
        user("program", Role.ADMIN), kind=ActorKind.SERVICE, scopes=Scopes(((EVERY_TABLE, Right.READ),))
    ),
}


@dataclass
class Overheard:
    """The audit log, and what was written into it: looking into its table after each step would take long."""

    audit: AuditActor
    entries: list[AuditEntry]

    def record(self, entry: AuditEntry) -> str:
        self.entries.append(entry)
        return self.audit.writer.record(entry)

    def check_writable(self) -> None:
        self.audit.writer.check_writable()


@dataclass
class House:
    store: DeltaStore
    gate: Gate
    heard: Overheard

    def tables(self, caller: str) -> TableAccess:
        origin = Origin(door=Door.HTTP, run_id="request-7")
        return TableAccess(self.store, self.gate, actor=ACTORS[caller], origin=origin)

    def last(self) -> AuditEntry:
        return self.heard.entries[-1]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One lakehouse for all steps, with a table for each operation, on which each right is granted to somebody."""
    place: Path = tmp_path_factory.mktemp("walk")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    store = DeltaStore(config)
    prepare(store)
    with AuditActor(store) as audit, Limits(private_directory(place / "limits")) as limits:
        grants, heard = Grants(store), Overheard(audit, [])
        for name in NAMES:
            fill(store, name)
        for who in ("reader", "writer", "keeper"):
            right = RIGHTS[who]
            assert right is not None
            grants.grant(who, EVERY_TABLE, right, by="owner")
        # Each operation in a minute of its own: a walker is denied more often than is written down of a minute.
        minutes = (BEGIN + timedelta(minutes=minute) for minute in count())
        yield House(store, Gate(heard, grants, limits, clock=minutes.__next__), heard)


def fill(store: DeltaStore, name: str) -> None:
    store.create(name, SCHEMA, properties={"delta.enableChangeDataFeed": "true"}).append(ROWS)
    store.table(name).add_constraint("first", "id > 0")


def may(caller: str, permission: Permission) -> bool:
    """Read the matrix as its page is read."""
    if caller == "owner":
        return True
    actor, rule, right = ACTORS[caller], RULES[permission], RIGHTS[caller]
    if actor.role is None or actor.role not in MATRIX[permission]:
        return False
    if caller == "key" and Role.USER not in rule.roles:
        return False
    return rule.right is None or (right is not None and right.includes(rule.right))


@pytest.mark.parametrize("caller", RIGHTS)
@pytest.mark.parametrize("method", ON_TABLES)
def test_what_role_and_grant_allow_is_done_and_all_else_is_denied(
    house: House, method: str, caller: str
) -> None:
    permission, call = ON_TABLES[method]
    name, tables = f"t_{method}", house.tables(caller)
    if not house.store.table(name).exists() or method == "drop_constraint":
        if house.store.table(name).exists():
            house.store.drop(name)
        fill(house.store, name)
    before = house.store.table(name).version()
    if not may(caller, permission):
        with pytest.raises(PermissionDeniedError) as here:
            call(tables, name)
        assert house.store.table(name).version() == before
        with pytest.raises(PermissionDeniedError) as nowhere:
            call(tables, "no_such_table")
        # Whether there is such a table is not told.
        assert here.value.message.replace(name, "x") == nowhere.value.message.replace("no_such_table", "x")
        last = house.last()
        assert (last.action, last.outcome) == ("permission_denied", "denied")
        # Whoever may run no SQL at all is refused before the query is looked at.
        assert last.resource == (None if (method, caller) == ("sql", "anonymous") else "no_such_table")
        return
    result = call(tables, name)
    if isinstance(result, GatedRows):
        result.to_arrow()
    last = house.last()
    assert (last.action, last.outcome) == (RULES[permission].action, "done")
    assert (last.resource, last.user_id, last.request_id) == (name, ACTORS[caller].id, "request-7")
    assert last.door == "http"
    if house.store.table(name).exists() and house.store.table(name).version() > before:
        (newest,) = house.store.history(name, 1)
        assert (newest.actor, newest.door) == (ACTORS[caller].id, "http")
    with pytest.raises(TableNotFoundError):
        call(tables, "no_such_table")


@pytest.mark.parametrize("caller", RIGHTS)
@pytest.mark.parametrize("table", SYSTEM_TABLES)
def test_the_platforms_own_tables_are_read_by_administrators_without_secrets(
    house: House, table: str, caller: str
) -> None:
    tables = house.tables(caller)
    if caller not in SYSTEM_READERS:
        for _, call in READS.values():
            with pytest.raises(PermissionDeniedError):
                call(tables, table)
        return
    secret = set(SYSTEM_TABLES[table].secret_columns) if caller != "owner" else set[str]()
    for _, call in READS.values():
        result = call(tables, table)
        if isinstance(result, GatedRows):
            assert not secret & set(result.to_arrow().column_names)
    assert not secret & {column.name for column in tables.describe(table).columns}


@pytest.mark.parametrize("caller", [name for name in RIGHTS if name != "owner"])
@pytest.mark.parametrize("table", [*SYSTEM_TABLES, "Users", "AUDIT_LOG"])
def test_nobody_but_the_owner_changes_the_platforms_own_tables(house: House, table: str, caller: str) -> None:
    tables = house.tables(caller)
    for method, (_, call) in CHANGES.items():
        if method != "change_feed":
            with pytest.raises(PermissionDeniedError):
                call(tables, table)
    with pytest.raises(PermissionDeniedError):
        tables.create(table, SCHEMA)


def test_nobody_at_all_brings_the_audit_log_back_to_an_old_version(house: House) -> None:
    for caller in RIGHTS:
        with pytest.raises(PermissionDeniedError):
            house.tables(caller).restore("audit_log", 0)
    assert house.heard.audit.verify().is_whole


@pytest.mark.parametrize("caller", RIGHTS)
@pytest.mark.parametrize("table", ["t_scan", "no_such_table", "users"])
def test_who_may_not_write_is_refused_before_rows_are_received(house: House, table: str, caller: str) -> None:
    entries = len(house.heard.entries)
    if caller == "owner" or (may(caller, P.WRITE_TABLE) and table != "users"):
        house.tables(caller).check_may_write(table)
        assert len(house.heard.entries) == entries
    else:
        with pytest.raises(PermissionDeniedError):
            house.tables(caller).check_may_write(table)
        assert (house.last().outcome, house.last().resource) == ("denied", table)


@pytest.mark.parametrize("caller", RIGHTS)
def test_administrators_create_tables(house: House, caller: str) -> None:
    name = f"new_{caller}"
    if may(caller, P.CREATE_TABLE):
        assert house.tables(caller).create(name, SCHEMA, primary_key=["id"], description="towns") == 0
        assert house.store.describe(name).primary_key == ("id",)
    else:
        with pytest.raises(PermissionDeniedError):
            house.tables(caller).create(name, SCHEMA)
        assert not house.store.table(name).exists()


@pytest.mark.parametrize("caller", RIGHTS)
def test_everybody_sees_the_names_of_the_tables_that_they_may_read(house: House, caller: str) -> None:
    tables, every = house.tables(caller), house.store.tables()
    if caller == "anonymous":
        with pytest.raises(PermissionDeniedError):
            tables.names()
        with pytest.raises(PermissionDeniedError):
            tables.sql("SHOW TABLES")
        return
    own = [name for name in every if name not in SYSTEM_TABLES]
    expected = every if caller in SYSTEM_READERS else own if RIGHTS[caller] else []
    assert tables.names() == expected
    assert tables.sql("SHOW TABLES;").to_arrow()["table_name"].to_pylist() == expected


@pytest.mark.parametrize(
    "name", ["../users", "users/../users", "", ".", "a b", "x" * 200, "users\0", "ü", "users."]
)
@pytest.mark.parametrize("caller", ["owner", "stranger", "superadmin"])
def test_what_is_no_name_of_a_table_is_refused_by_every_operation(
    house: House, name: str, caller: str
) -> None:
    entries = len(house.heard.entries)
    for method, (_, call) in ON_TABLES.items():
        if method != "sql":
            with pytest.raises(InvalidNameError):
                call(house.tables(caller), name)
    with pytest.raises(InvalidNameError):
        house.tables(caller).create(name, SCHEMA)
    assert len(house.heard.entries) == entries


def test_no_operation_is_left_out() -> None:
    members = inspect.getmembers(TableAccess, inspect.isfunction)
    public = {name for name, _ in members if not name.startswith("_")}
    assert public - {"acting_as"} == {*ON_TABLES, "create", "names", "check_may_write"}


def test_a_right_on_one_table_is_none_on_another(house: House) -> None:
    Grants(house.store).grant("neighbour", "t_scan", Right.MAINTAIN, by="owner")
    tables = TableAccess(house.store, house.gate).acting_as(user("neighbour"))
    assert tables.names() == ["t_scan"]
    assert tables.scan("t_scan").to_pylist() == ROWS
    for method, (_, call) in ON_TABLES.items():
        if method != "drop":
            with pytest.raises(PermissionDeniedError):
                call(tables, "t_query")


# ── Rights on a table that is gone ──────────────────────────────────────────────────────────────────


def test_who_had_a_right_on_a_dropped_table_has_none_on_a_later_one_of_its_name(house: House) -> None:
    grants, tables = Grants(house.store), house.tables("admin")
    for who in ("heir", "heiress"):
        grants.grant(who, "legacy", Right.WRITE, by="owner")
    grants.grant("heir", "other", Right.READ, by="owner")
    tables.create("legacy", SCHEMA)
    heir = tables.acting_as(user("heir"))
    heir.append("legacy", ROWS)
    tables.drop("legacy")
    tables.create("legacy", SCHEMA)
    with pytest.raises(PermissionDeniedError):
        heir.append("legacy", ROWS)
    assert [grant.table for who in ("heir", "heiress") for grant in grants.of(who)] == ["other"]
    # Who has a right on every table has one on this one too.
    assert house.tables("reader").scan("legacy").to_pylist() == []


def test_what_a_drop_took_from_whom_is_in_the_audit_log_and_in_the_history(house: House) -> None:
    Grants(house.store).grant("tenant", "let", Right.READ, by="owner")
    tables = house.tables("admin")
    tables.create("let", SCHEMA)
    tables.drop("let")
    assert [(entry.outcome, entry.details) for entry in house.heard.entries[-2:]] == [
        ("started", "drop"),
        ("done", "drop; takes the rights of 1 users on it: tenant"),
    ]
    (newest,) = house.store.history("grants", 1)
    assert newest.actor == "admin"


def test_rights_are_gone_before_the_table_so_that_what_ends_in_between_leaves_no_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants, tables = Grants(house.store), house.tables("admin")
    grants.grant("squatter", "squat", Right.READ, by="owner")
    tables.create("squat", SCHEMA)

    def fail(*_: object) -> None:
        raise StorageIoError("The disk went away.")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaStore, "drop", fail)
        with pytest.raises(StorageIoError):
            tables.drop("squat")
    assert house.store.table("squat").exists()
    assert grants.of("squatter") == []
    assert "squatter" in str(house.last().details)


def test_a_right_that_is_given_while_the_table_goes_does_not_stay(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants, tables = Grants(house.store), house.tables("admin")
    tables.create("fleeting", SCHEMA)
    drop = DeltaStore.drop

    def meanwhile(store: DeltaStore, name: str) -> None:
        grants.grant("latecomer", name, Right.READ, by="owner")
        drop(store, name)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaStore, "drop", meanwhile)
        tables.drop("fleeting")
    assert grants.of("latecomer") == []


def test_a_right_on_a_table_that_is_still_to_come_is_not_taken_by_dropping_nothing(house: House) -> None:
    grants = Grants(house.store)
    grants.grant("patient", "future", Right.READ, by="owner")
    with pytest.raises(TableNotFoundError):
        house.tables("admin").drop("future")
    assert [grant.table for grant in grants.of("patient")] == ["future"]
