"""Administration over HTTP, by every role and without one."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform_tests.support.http_server import LiveHttp
from lakehouse_platform_tests.support.people import OTHER_PASSWORD, PASSWORD

# What an administrator may do to a user, with a body where one is needed.
OPERATIONS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/users", None),
    ("GET", "/v1/users/{id}", None),
    ("PUT", "/v1/users/{id}/tier", {"tier": "pro"}),
    ("PUT", "/v1/users/{id}/password", {"new_password": OTHER_PASSWORD}),
    ("GET", "/v1/users/{id}/sessions", None),
    ("DELETE", "/v1/users/{id}/sessions", None),
    ("DELETE", "/v1/users/{id}/sessions/none", None),
    ("GET", "/v1/users/{id}/usage", None),
    ("DELETE", "/v1/users/{id}/usage", None),
    ("PUT", "/v1/users/{id}/limits", {"per_minute": 5, "per_day": None}),
    ("DELETE", "/v1/users/{id}/limits", None),
    ("GET", "/v1/users/{id}/grants", None),
    ("PUT", "/v1/users/{id}/grants/rides", {"right": "read"}),
    ("DELETE", "/v1/users/{id}/grants/rides", None),
    ("POST", "/v1/users/{id}/disable", None),
    ("POST", "/v1/users/{id}/enable", None),
]


def test_every_operation_by_every_role_and_without_one(live: LiveHttp) -> None:
    people = live.everyone()
    target = live.person("ada")
    for method, path, body in OPERATIONS:
        where = path.format(id=target.user_id)
        assert live.request(method, where, json=body).status_code == 401, (method, path)
        assert live.request(method, where, people[Role.USER], json=body).status_code == 403, (method, path)
        answer = live.request(method, where, people[Role.ADMIN], json=body)
        assert answer.status_code in {200, 204}, (method, path, answer.text)


def test_only_a_superadmin_changes_roles(live: LiveHttp) -> None:
    people = live.everyone()
    ada = live.person("ada")
    path, body = f"/v1/users/{ada.user_id}/role", {"role": "admin"}
    for role in (Role.USER, Role.ADMIN):
        assert live.request("PUT", path, people[role], json=body).status_code == 403
    assert live.request("PUT", path, people[Role.SUPERADMIN], json=body).json()["role"] == "admin"
    assert live.get("/v1/users", ada).status_code == 200


def test_an_administrator_does_not_act_upon_another_one(live: LiveHttp) -> None:
    admin, other = live.person("adam", Role.ADMIN), live.person("eva", Role.ADMIN)
    body = {"new_password": OTHER_PASSWORD}
    assert live.request("PUT", f"/v1/users/{other.user_id}/password", admin, json=body).status_code == 403
    assert live.post(f"/v1/users/{other.user_id}/disable", admin).status_code == 403
    assert live.request("DELETE", f"/v1/users/{other.user_id}/sessions", admin).status_code == 403
    assert live.get("/v1/me", other).status_code == 200


def test_accounts_come_page_by_page_and_by_status(live: LiveHttp) -> None:
    admin = live.person("root", Role.ADMIN)
    made = {
        live.lakehouse.accounts.register(f"user{number}", f"u{number}@example.com", PASSWORD).user_id
        for number in range(4)
    }
    found: list[str] = []
    after = ""
    while True:
        page = live.get("/v1/users", admin, params={"limit": 2, "after": after, "status": "pending"}).json()
        found += [user["user_id"] for user in page["users"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert found == sorted(made)
    everyone = live.get("/v1/users", admin).json()["users"]
    assert {user["user_id"] for user in everyone} == made | {admin.user_id}


@pytest.mark.parametrize("params", [{"limit": 0}, {"limit": 1001}, {"limit": "x"}, {"status": "gone"}])
def test_a_page_that_is_none_names_the_parameter(live: LiveHttp, params: dict[str, Any]) -> None:
    admin = live.person("root", Role.ADMIN)
    refused = live.get("/v1/users", admin, params=params)
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == [f"query.{next(iter(params))}"]


def test_limits_of_a_users_own_count_at_once(live: LiveHttp) -> None:
    admin, ada = live.person("root", Role.ADMIN), live.person("ada", tier=SubscriptionTier.FREE)
    path = f"/v1/users/{ada.user_id}/limits"
    assert live.request("PUT", path, admin, json={"per_minute": 7, "per_day": None}).status_code == 204
    assert live.get("/v1/me/usage", ada).json()["quota"] == {"per_minute": 7, "per_day": None}
    assert live.request("DELETE", path, admin).status_code == 204
    assert live.get("/v1/me/usage", ada).json()["quota"] == {"per_minute": 10, "per_day": 100}


def test_a_user_that_is_not_there_is_not_found(live: LiveHttp) -> None:
    admin = live.person("root", Role.ADMIN)
    missing = live.get("/v1/users/nobody", admin)
    assert (missing.status_code, missing.json()["code"]) == (404, "user_not_found")
    assert live.post("/v1/users/nobody/promote", admin).status_code == 404


def test_one_sign_in_is_ended_only_through_the_user_whose_it_is(live: LiveHttp) -> None:
    admin, ada, bob = live.person("root", Role.ADMIN), live.person("ada"), live.person("bob")
    live.request("DELETE", f"/v1/users/{bob.user_id}/sessions/{ada.tokens.session_id}", admin)
    assert live.get("/v1/me", ada).status_code == 200
    live.request("DELETE", f"/v1/users/{ada.user_id}/sessions/{ada.tokens.session_id}", admin)
    assert live.get("/v1/me", ada).status_code == 401
