"""A ticket lets its user in as long as the sign-in lasts, with the role that the user has at that time."""

from __future__ import annotations

import pytest

from lakehouse_platform.errors import (
    AccountDisabledError,
    AuthenticationFailedError,
    AuthError,
    InvalidArgumentError,
    PermissionDeniedError,
    TokenInvalidError,
)
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, Role
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import PASSWORD, actions, signed_in, user
from lakehouse_platform_tests.unit.services.conftest import Clock


@pytest.fixture
def alice(auth: AuthActor) -> Actor:
    return signed_in(auth, "alice")


def test_a_ticket_lets_its_user_in(auth: AuthActor, alice: Actor) -> None:
    ticket = auth.mount_ticket(alice)
    admitted = auth.admit_ticket(ticket, ip_address="127.0.0.1")
    assert (admitted.id, admitted.role, admitted.session_id) == (alice.id, Role.USER, alice.session_id)
    assert admitted.ip_address == "127.0.0.1"
    assert auth.mount_ticket(alice) == ticket


def test_who_comes_in_has_the_role_of_now(auth: AuthActor, alice: Actor) -> None:
    ticket = auth.mount_ticket(alice)
    auth.change_role(alice.id, Role.ADMIN)
    assert auth.admit_ticket(ticket).role is Role.ADMIN


def test_a_ticket_outlives_the_renewal_of_its_sign_in(auth: AuthActor) -> None:
    user(auth, "bob")
    tokens = auth.login("bob", PASSWORD)
    ticket = auth.mount_ticket(auth.authenticate(tokens))
    auth.refresh(str(tokens.refresh_token))
    assert auth.admit_ticket(ticket).id == tokens.user_id


def test_a_ticket_ends_with_its_sign_in(auth: AuthActor, alice: Actor) -> None:
    ticket = auth.mount_ticket(alice)
    auth.revoke_session(str(alice.session_id))
    with pytest.raises(AuthenticationFailedError):
        auth.admit_ticket(ticket)
    with pytest.raises(AuthenticationFailedError):
        auth.mount_ticket(alice)


def test_a_ticket_ends_when_the_sign_in_is_past_its_time(auth: AuthActor, alice: Actor, clock: Clock) -> None:
    ticket = auth.mount_ticket(alice)
    clock.go_on(days=400)
    with pytest.raises(AuthenticationFailedError):
        auth.admit_ticket(ticket)


def test_a_disabled_user_is_not_let_in(auth: AuthActor, alice: Actor) -> None:
    ticket = auth.mount_ticket(alice)
    auth.disable(alice.id)
    with pytest.raises((AuthenticationFailedError, AccountDisabledError)):
        auth.admit_ticket(ticket)


def test_nobody_gets_a_ticket_for_the_sign_in_of_another(auth: AuthActor, alice: Actor) -> None:
    mallory = signed_in(auth, "mallory")
    stolen = Actor(id=mallory.id, kind=mallory.kind, role=mallory.role, session_id=alice.session_id)
    with pytest.raises(AuthenticationFailedError):
        auth.mount_ticket(stolen)


def test_only_who_is_signed_in_gets_a_ticket(auth: AuthActor) -> None:
    with pytest.raises(InvalidArgumentError):
        auth.mount_ticket(OWNER)
    with pytest.raises(PermissionDeniedError):
        auth.mount_ticket(ANONYMOUS)


def test_a_ticket_is_nothing_that_is_stored(auth: AuthActor, alice: Actor, store: DeltaStore) -> None:
    ticket = auth.mount_ticket(alice)
    (row,) = store.query("sessions", f"session_id = '{alice.session_id}'").to_pylist()
    assert ticket not in {str(value) for value in row.values()}
    for stored in filter(None, row.values()):
        with pytest.raises(AuthError):
            auth.admit_ticket(str(stored))


def test_tickets_and_their_refusals_are_audited(auth: AuthActor, alice: Actor, store: DeltaStore) -> None:
    auth.mount_ticket(alice)
    with pytest.raises(TokenInvalidError):
        auth.admit_ticket("no ticket")
    assert actions(auth, store)[-2:] == [("mount", "done"), ("token_rejected", "failed")]
