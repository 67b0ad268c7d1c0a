"""Rights on tables: by role or by grant, never on the platform's own tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehouse_platform.errors import InvalidArgumentError, InvalidNameError
from lakehouse_platform.identity.grants import EVERY_TABLE, Grants
from lakehouse_platform.identity.permissions import Right
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, ActorKind, Role
from lakehouse_platform.model.rights import Scopes
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES

NOW = datetime(2026, 3, 1, tzinfo=UTC)
USER = "3b1f2b0c-1111-4222-8333-944444444444"


@pytest.fixture
def grants(store: DeltaStore) -> Grants:
    store.ensure(SYSTEM_TABLES["grants"])
    return Grants(store, clock=lambda: NOW)


def actor(role: Role, user_id: str = USER) -> Actor:
    return Actor(id=user_id, kind=ActorKind.USER, role=role)


def test_a_user_has_no_right_without_a_grant_and_the_granted_one_with_it(grants: Grants) -> None:
    user = actor(Role.USER)
    assert grants.right_of(user, "rides") is None
    made = grants.grant(USER, "rides", Right.WRITE, by="owner")
    assert grants.right_of(user, "rides") is Right.WRITE
    assert grants.right_of(user, "towns") is None
    assert grants.right_of(actor(Role.USER, "another"), "rides") is None
    assert grants.of(USER) == [made]
    assert (made.granted_by, made.granted_at) == ("owner", NOW)


def test_a_second_grant_takes_the_place_of_the_first(grants: Grants) -> None:
    grants.grant(USER, "rides", Right.MAINTAIN, by="owner")
    grants.grant(USER, "rides", Right.READ, by="owner")
    assert [grant.right for grant in grants.of(USER)] == [Right.READ]


def test_a_grant_on_every_table_adds_to_that_on_one(grants: Grants) -> None:
    grants.grant(USER, EVERY_TABLE, Right.READ, by="owner")
    grants.grant(USER, "rides", Right.WRITE, by="owner")
    user = actor(Role.USER)
    assert (grants.right_of(user, "rides"), grants.right_of(user, "towns")) == (Right.WRITE, Right.READ)
    grants.grant(USER, EVERY_TABLE, Right.MAINTAIN, by="owner")
    assert grants.right_of(user, "rides") is Right.MAINTAIN


def test_a_revoked_grant_is_gone_for_every_other_process_too(grants: Grants, store: DeltaStore) -> None:
    elsewhere = Grants(store)
    grants.grant(USER, "rides", Right.READ, by="owner")
    assert elsewhere.right_of(actor(Role.USER), "rides") is Right.READ
    assert grants.revoke(USER, "rides")
    assert not grants.revoke(USER, "rides")
    assert elsewhere.right_of(actor(Role.USER), "rides") is None


def test_administrators_and_the_owner_need_no_grant(grants: Grants) -> None:
    for one in (actor(Role.ADMIN), actor(Role.SUPERADMIN), OWNER):
        assert grants.right_of(one, "rides") is Right.MAINTAIN
    assert grants.right_of(ANONYMOUS, "rides") is None


@pytest.mark.parametrize("table", sorted(SYSTEM_TABLES))
def test_the_platforms_own_tables_are_read_by_administrators_and_granted_to_nobody(
    grants: Grants, table: str
) -> None:
    grants.grant(USER, EVERY_TABLE, Right.MAINTAIN, by="owner")
    assert grants.right_of(actor(Role.USER), table) is None
    assert grants.right_of(actor(Role.ADMIN), table) is Right.READ
    assert grants.right_of(actor(Role.SUPERADMIN), table) is Right.READ
    assert grants.right_of(actor(Role.USER), table.upper()) is None
    with pytest.raises(InvalidArgumentError, match="secrets"):
        grants.grant(USER, table, Right.READ, by="owner")


@pytest.mark.parametrize("scopes", ["read:rides", "maintain:rides", "maintain:*", "admin"])
def test_a_key_never_may_more_than_its_account(grants: Grants, scopes: str) -> None:
    grants.grant(USER, "rides", Right.WRITE, by="owner")
    for role in Role:
        account = actor(role)
        key = replace(account, kind=ActorKind.SERVICE, scopes=Scopes.parse(scopes))
        for table in ("rides", "towns", EVERY_TABLE, *SYSTEM_TABLES):
            whole, narrowed = grants.right_of(account, table), grants.right_of(key, table)
            assert narrowed is None or (whole is not None and whole.includes(narrowed))


@pytest.mark.parametrize(
    ("scopes", "rides", "towns", "users"),
    [
        ("read:rides", Right.READ, None, None),
        ("maintain:*", Right.MAINTAIN, Right.MAINTAIN, None),
        ("write:* read:rides", Right.WRITE, Right.WRITE, None),
        ("admin", None, None, Right.READ),
    ],
)
def test_a_key_may_what_its_scopes_say(
    grants: Grants, scopes: str, rides: Right | None, towns: Right | None, users: Right | None
) -> None:
    key = replace(actor(Role.ADMIN), kind=ActorKind.SERVICE, scopes=Scopes.parse(scopes))
    assert [grants.right_of(key, table) for table in ("rides", "towns", "users")] == [rides, towns, users]


@pytest.mark.parametrize("table", ["", "../users", "a b", "x/y"])
def test_what_is_no_name_of_a_table_is_not_granted(grants: Grants, table: str) -> None:
    with pytest.raises(InvalidNameError):
        grants.grant(USER, table, Right.READ, by="owner")


def test_nothing_of_a_user_is_left_in_the_log_of_the_table(grants: Grants, store: DeltaStore) -> None:
    grants.grant(USER, "rides", Right.READ, by="owner")
    grants.revoke(USER, "rides")
    log = Path(store.table("grants").location.uri) / "_delta_log"
    assert [path.name for path in log.glob("*.json") if USER in path.read_text()] == []


def test_all_rights_on_one_table_are_taken_in_one_commit_and_no_others(
    grants: Grants, store: DeltaStore
) -> None:
    for user_id, table in (("b", "rides"), ("a", "rides"), ("a", "towns"), ("a", EVERY_TABLE)):
        grants.grant(user_id, table, Right.READ, by="owner")
    before, told = store.table("grants").version(), list[list[str]]()
    assert grants.revoke_all("rides", learn=told.append) == ["a", "b"]
    assert told == [["a", "b"]]
    assert store.table("grants").version() == before + 1
    assert [grant.table for grant in grants.of("a")] == [EVERY_TABLE, "towns"]
    assert grants.revoke_all("rides", learn=told.append) == []
    assert (store.table("grants").version(), len(told)) == (before + 1, 1)


@pytest.mark.parametrize("tables", [[], ["rides"], [EVERY_TABLE], ["rides", EVERY_TABLE]])
def test_the_rights_of_one_moment_are_those_that_each_table_is_asked_for(
    grants: Grants, tables: list[str]
) -> None:
    for table, right in zip(tables, (Right.WRITE, Right.READ), strict=False):
        grants.grant(USER, table, right, by="owner")
    key = replace(actor(Role.USER), kind=ActorKind.SERVICE, scopes=Scopes.parse("read:rides"))
    names = ("rides", "towns", EVERY_TABLE, "no table's name", *SYSTEM_TABLES)
    for one in (*map(actor, Role), actor(Role.USER, "another"), key, OWNER, ANONYMOUS):
        rights = grants.rights_of(one)
        assert [rights.on(name) for name in names] == [grants.right_of(one, name) for name in names]


def test_the_rights_of_one_moment_stay_what_they_were(grants: Grants) -> None:
    before = grants.rights_of(actor(Role.USER))
    grants.grant(USER, "rides", Right.WRITE, by="owner")
    assert before.on("rides") is None
    assert grants.rights_of(actor(Role.USER)).on("rides") is Right.WRITE
