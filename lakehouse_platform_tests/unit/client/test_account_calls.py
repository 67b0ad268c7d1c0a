"""Operations on accounts as requests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lakehouse_platform.client import account_calls as calls
from lakehouse_platform.client.requests import Call
from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.model.rights import Right


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (calls.user(None), "GET /v1/me"),
        (calls.user("u"), "GET /v1/users/u"),
        (calls.sessions(None), "GET /v1/me/sessions"),
        (calls.usage("u"), "GET /v1/users/u/usage"),
        (calls.grants(None), "GET /v1/me/grants"),
        (calls.revoke_session("s", None), "DELETE /v1/me/sessions/s"),
        (calls.revoke_session("s", "u"), "DELETE /v1/users/u/sessions/s"),
        (calls.mount_ticket(), "POST /v1/me/mount-tickets"),
        (calls.logout_everywhere(None), "POST /v1/auth/logout-everywhere"),
        (calls.logout_everywhere("u"), "DELETE /v1/users/u/sessions"),
        (calls.users("", 5, None), "GET /v1/users limit=5"),
        (calls.users("a", 5, AccountStatus.PENDING), "GET /v1/users after=a limit=5 status=pending"),
        (calls.move("u", "approve"), "POST /v1/users/u/approve"),
        (calls.change_role("u", Role.ADMIN), "PUT /v1/users/u/role"),
        (calls.grant("u", "*", Right.READ), "PUT /v1/users/u/grants/%2A"),
        (calls.revoke_grant("u", "t"), "DELETE /v1/users/u/grants/t"),
        (calls.follow_tier("u"), "DELETE /v1/users/u/limits"),
        (calls.list_api_keys("u"), "GET /v1/service-accounts/u/keys"),
        (calls.revoke_api_key("u", "k"), "DELETE /v1/service-accounts/u/keys/k"),
    ],
)
def test_what_is_asked(call: Call[Any], asked: str) -> None:
    request = call.request
    words = [f"{request.method} {request.path}", *(f"{name}={value}" for name, value in request.query)]
    assert " ".join(words) == asked


def test_registering_and_signing_in_show_no_token() -> None:
    assert not calls.register("a", "a@example.com", "p", SubscriptionTier.FREE).request.is_signed
    assert not calls.login("a", "p").is_signed


def test_signing_in_is_never_sent_twice() -> None:
    assert calls.login("a", "p").is_single


@pytest.mark.parametrize("make", [calls.user, calls.sessions, calls.list_api_keys, calls.follow_tier])
@pytest.mark.parametrize("user_id", ["", "..", "."])
def test_an_id_that_would_change_the_address_is_refused(make: Any, user_id: str) -> None:
    with pytest.raises(InvalidArgumentError):
        make(user_id)


def test_an_id_is_one_part_of_the_address() -> None:
    assert calls.user("../audit?x=1").request.path == "/v1/users/..%2Faudit%3Fx%3D1"


def test_a_key_lives_whole_days_or_without_end() -> None:
    fields = calls.create_api_key("u", "l", ["read:*"], timedelta(days=3)).request.fields
    assert fields == {"label": "l", "scopes": ["read:*"], "expires_in_days": 3}
    forever = calls.create_api_key("u", "l", "read:* admin", None).request.fields
    assert forever == {"label": "l", "scopes": ["read:*", "admin"], "expires_in_days": None}
    with pytest.raises(InvalidArgumentError):
        calls.create_api_key("u", "l", ["read:*"], timedelta(hours=3))
