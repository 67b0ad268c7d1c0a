"""What one actor may see of the tables of a lakehouse."""

from __future__ import annotations

import pytest

from lakehouse_platform.errors import (
    InvalidTimestampError,
    NotADeltaTableError,
    PermissionDeniedError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Role
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.rights import EVERY_TABLE, Right
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import entries
from lakehouse_platform_tests.unit.services.conftest import person


def test_without_an_actor_the_owner_of_the_files_acts(tables: TableAccess) -> None:
    assert tables.actor is OWNER


def test_each_actor_and_request_has_its_own_tables(
    auth: AuthActor, store: DeltaStore, tables: TableAccess
) -> None:
    http = tables.acting_as(person("admin", Role.ADMIN), Origin(door=Door.HTTP, run_id="request-1"))
    again = http.acting_as(OWNER)
    http.scan("rides")
    again.scan("rides")
    tables.scan("rides")
    found = [(entry["user_id"], entry["door"], entry["request_id"]) for entry in entries(auth, store)]
    assert found == [
        ("admin", "http", "request-1"),
        ("owner", "http", "request-1"),
        ("owner", "python", None),
    ]
    assert (http.actor.id, again.actor.id, tables.actor.id) == ("admin", "owner", "owner")


def test_the_actor_of_a_commit_is_the_one_who_acts_whatever_the_origin_says(
    store: DeltaStore, tables: TableAccess
) -> None:
    tables.acting_as(person("admin", Role.ADMIN), Origin(actor="owner", door=Door.HTTP)).delete(
        "rides", "id = 1"
    )
    assert store.history("rides", 1)[0].actor == "admin"


def test_nobody_who_is_not_signed_in_sees_anything(tables: TableAccess) -> None:
    with pytest.raises(PermissionDeniedError, match="sign in"):
        tables.acting_as(ANONYMOUS).scan("rides")


def test_a_directory_that_is_no_table_is_told_apart_by_the_owner_alone(
    store: DeltaStore, tables: TableAccess
) -> None:
    (store.base.path / "papers").mkdir()
    (store.base.path / "papers" / "notes.txt").write_text("x")
    Grants(store).grant("reader", EVERY_TABLE, Right.READ, by="owner")
    with pytest.raises((NotADeltaTableError, TableNotFoundError)):
        tables.scan("papers")
    with pytest.raises(TableNotFoundError, match="no table 'papers'"):
        tables.acting_as(person("reader")).scan("papers")


def test_many_names_are_cut_in_a_message(store: DeltaStore, tables: TableAccess) -> None:
    for number in range(25):
        (store.base.path / f"zz{number:02}" / "_delta_log").mkdir(parents=True)
        store.create(f"aa{number:02}", store.table("rides").arrow_schema())
    with pytest.raises(TableNotFoundError) as caught:
        tables.scan("nothing_like_it")
    assert "aa00" in caught.value.message
    assert caught.value.message.endswith("….")
    assert "rides" not in caught.value.message


def test_only_numbers_of_some_length_come_into_the_audit_log(
    auth: AuthActor, store: DeltaStore, tables: TableAccess
) -> None:
    long = "ada@example.com" * 1000
    for ask in (
        lambda: tables.read_timestamp("rides", long),
        lambda: tables.scan("rides", timestamp=long),
        lambda: tables.restore("rides", long),
        lambda: tables.read_version("rides", 10**4000),
        lambda: tables.diff("rides", 0, 10**4000),
        lambda: tables.change_feed("rides", 10**4000),
        lambda: tables.restore("rides", 10**4000),
    ):
        with pytest.raises((InvalidTimestampError, VersionNotFoundError)):
            ask()
    details = [entry["details"] for entry in entries(auth, store) if entry["outcome"] == "failed"]
    assert len(details) == 7
    assert max(map(len, details)) < 60
    assert "ada" not in str(details)
