"""Changes by administrators: from which state, and who upon whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_platform.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
    UserNotFoundError,
)
from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform_tests.support.people import (
    OTHER_PASSWORD,
    PASSWORD,
    signed_in,
    user,
)

# ── Who may act upon whom ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("before", "verb"), [("pending", "disable"), ("pending", "enable"), ("active", "approve"),
                                              ("active", "reject"), ("active", "enable"), ("disabled", "approve"),
                                              ("disabled", "disable"), ("rejected", "reject")])  # fmt: skip
def test_an_account_moves_only_from_where_it_can(auth: AuthActor, before: str, verb: str) -> None:
    made = auth.register("ada", "ada@example.com", PASSWORD)
    for step in {"active": ["approve"], "disabled": ["approve", "disable"], "rejected": ["reject"]}.get(
        before, []
    ):
        getattr(auth, step)(made.user_id)
    with pytest.raises(InvalidArgumentError, match=f"cannot {verb} .* {before}"):
        getattr(auth, verb)(made.user_id)
    assert auth.user(made.user_id).status == before


@pytest.mark.parametrize("verb", ["approve", "reject", "disable", "enable", "user", "usage"])
def test_what_is_asked_of_nobody_is_told(auth: AuthActor, verb: str) -> None:
    with pytest.raises(UserNotFoundError):
        getattr(auth, verb)("no-such-id")


def test_the_last_superadmin_stays_one(auth: AuthActor) -> None:
    root = auth.bootstrap("root", "root@example.com", PASSWORD)
    for change in (lambda: auth.disable(root.user_id), lambda: auth.change_role(root.user_id, Role.ADMIN)):
        with pytest.raises(InvalidArgumentError, match="last active superadmin"):
            change()
    second = user(auth, "second", Role.SUPERADMIN)
    auth.disable(root.user_id)
    with pytest.raises(InvalidArgumentError, match="last active superadmin"):
        auth.disable(second.user_id)


@pytest.mark.parametrize("target", [Role.ADMIN, Role.SUPERADMIN])
def test_an_administrator_does_nothing_to_another_one(auth: AuthActor, target: Role) -> None:
    auth.bootstrap("root", "root@example.com", PASSWORD)
    admin = signed_in(auth, "admin", Role.ADMIN)
    other = user(auth, "other", target)
    tokens = auth.login("other", PASSWORD)
    attempts = [
        lambda: auth.disable(other.user_id, actor=admin),
        lambda: auth.change_tier(other.user_id, SubscriptionTier.FREE, actor=admin),
        lambda: auth.set_password(other.user_id, OTHER_PASSWORD, actor=admin),
        lambda: auth.logout_everywhere(other.user_id, actor=admin),
        lambda: auth.revoke_session(tokens.session_id, actor=admin),
    ]
    for attempt in attempts:
        with pytest.raises(PermissionDeniedError):
            attempt()
    assert auth.user(other.user_id) == replace(other, updated_at=auth.user(other.user_id).updated_at,
                                               last_login_at=auth.user(other.user_id).last_login_at)  # fmt: skip
    assert auth.verify(tokens).sub == auth.login("other", PASSWORD).user_id == other.user_id


def test_a_user_sees_and_ends_own_sign_ins_and_nobody_elses(auth: AuthActor) -> None:
    ada, ben = signed_in(auth, "ada"), signed_in(auth, "ben")
    (own,), (bens,) = auth.sessions(ada.id, actor=ada), auth.sessions(ben.id)
    with pytest.raises(PermissionDeniedError):
        auth.sessions(ben.id, actor=ada)
    with pytest.raises(PermissionDeniedError):
        auth.revoke_session(bens.session_id, actor=ada)
    assert auth.revoke_session(own.session_id, actor=ada)
    assert auth.sessions(ada.id) == []
    assert auth.sessions(ben.id) == [bens]
