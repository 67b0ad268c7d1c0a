"""What a mount server is told of its users, and that it opens nothing before somebody needs it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lakehouse_platform.errors import AuthenticationFailedError, PermissionDeniedError, TokenInvalidError
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import Actor, Role
from lakehouse_platform.model.rights import Right
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.mount_users import MountUsers
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import entries, signed_in


@pytest.fixture
def users(store: DeltaStore) -> Iterator[MountUsers]:
    served = MountUsers(store)
    yield served
    served.close()


@pytest.fixture
def now(store: DeltaStore) -> Iterator[AuthActor]:
    """The accounts at the time that the mount server has too."""
    with AuthActor(store) as accounts:
        yield accounts


@pytest.fixture
def alice(now: AuthActor) -> Actor:
    actor = signed_in(now, "alice")
    now.grant(actor.id, "people", Right.WRITE)
    return actor


def test_a_lakehouse_without_accounts_lets_no_user_in_and_gets_none_by_being_asked(
    store: DeltaStore, users: MountUsers
) -> None:
    with pytest.raises(AuthenticationFailedError):
        users.admit("A" * 64, None)
    assert not store.base.path.exists()


def test_a_ticket_that_the_accounts_made_lets_its_user_in(
    now: AuthActor, users: MountUsers, alice: Actor
) -> None:
    assert users.admit(now.mount_ticket(alice), "127.0.0.1").id == alice.id
    with pytest.raises(TokenInvalidError):
        users.admit("A" * 64, "127.0.0.1")


def test_rights_are_told_for_every_table_whether_or_not_there_is_one(users: MountUsers, alice: Actor) -> None:
    standing = users.standing(str(alice.session_id), alice.id)
    assert standing.may("people", Right.READ)
    assert standing.may("people", Right.WRITE)
    assert not standing.may("people", Right.MAINTAIN)
    for other in ("orders", "users", "*"):
        assert not standing.may(other, Right.READ)
    assert not standing.has_ended


def test_who_has_ended_the_sign_in_may_nothing(now: AuthActor, users: MountUsers, alice: Actor) -> None:
    now.change_role(alice.id, Role.ADMIN)
    assert users.standing(str(alice.session_id), alice.id).may("people", Right.MAINTAIN)
    now.revoke_session(str(alice.session_id))
    standing = users.standing(str(alice.session_id), alice.id)
    assert (standing.has_ended, standing.actor.id) == (True, alice.id)
    assert not standing.may("people", Right.READ)


def test_a_sign_in_of_another_user_is_none(users: MountUsers, alice: Actor) -> None:
    other = str(uuid.uuid4())
    standing = users.standing(str(alice.session_id), other)
    assert (standing.has_ended, standing.actor.id) == (True, other)
    assert not standing.may("people", Right.READ)


def test_what_is_done_goes_through_the_gate_without_the_limits_of_subscriptions(
    store: DeltaStore, now: AuthActor, users: MountUsers, alice: Actor
) -> None:
    actor = users.standing(str(alice.session_id), alice.id).actor
    assert actor.tier is None

    def act(note: Note) -> str:
        note.row_count = 5
        return "done"

    assert users.run(actor, Permission.WRITE_TABLE, "people", act, details="version 1") == "done"
    with pytest.raises(PermissionDeniedError):
        users.run(actor, Permission.WRITE_TABLE, "orders", act)
    users.note_refusal(replace(actor, role=None), Permission.READ_TABLE, None, 3)
    users.close()
    found = [row for row in entries(now, store) if row["door"] == "nfs"]
    assert [(row["action"], row["outcome"], row["resource"], row["row_count"]) for row in found] == [
        ("data_write", "done", "people", 5),
        ("permission_denied", "denied", "orders", None),
        ("permission_denied", "denied", None, None),
    ]
    assert {row["user_id"] for row in found} == {alice.id}
    assert "3 more left out" in found[-1]["details"]
