"""Rights on tables: by role or by grant, never on the platform's own tables."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehouse_platform.errors import InvalidArgumentError, InvalidNameError
from lakehouse_platform.identity.grants import EVERY_TABLE, Grants
from lakehouse_platform.identity.permissions import Right
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, ActorKind, Role
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
def test_the_platforms_own_tables_are_read_by_superadmins_and_granted_to_nobody(
    grants: Grants, table: str
) -> None:
    grants.grant(USER, EVERY_TABLE, Right.MAINTAIN, by="owner")
    assert grants.right_of(actor(Role.USER), table) is None
    assert grants.right_of(actor(Role.ADMIN), table) is None
    assert grants.right_of(actor(Role.SUPERADMIN), table) is Right.READ
    with pytest.raises(InvalidArgumentError, match="secrets"):
        grants.grant(USER, table, Right.READ, by="owner")


@pytest.mark.parametrize("table", ["", "../users", "a b", "x/y"])
def test_what_is_no_name_of_a_table_is_not_granted(grants: Grants, table: str) -> None:
    with pytest.raises(InvalidNameError):
        grants.grant(USER, table, Right.READ, by="owner")


def test_nothing_of_a_user_is_left_in_the_log_of_the_table(grants: Grants, store: DeltaStore) -> None:
    grants.grant(USER, "rides", Right.READ, by="owner")
    grants.revoke(USER, "rides")
    log = Path(store.table("grants").location.uri) / "_delta_log"
    assert [path.name for path in log.glob("*.json") if USER in path.read_text()] == []
