"""Programs' accounts and keys over HTTP."""

from __future__ import annotations

from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.support.http_server import LiveHttp


def test_a_key_is_made_used_listed_and_revoked(live: LiveHttp) -> None:
    admin = live.person("root", Role.SUPERADMIN)
    account = live.post("/v1/service-accounts", admin, json={"name": "loader", "tier": "pro"})
    assert account.status_code == 201
    user_id = account.json()["user_id"]
    assert account.json()["is_service"] is True
    made = live.post(f"/v1/service-accounts/{user_id}/keys", admin, json={"label": "nightly"})
    assert made.status_code == 201
    key = made.json()["key"]
    assert key.startswith("lhk_")
    headers = {"Authorization": f"Bearer {key}"}
    assert live.get("/v1/me", headers=headers).json()["username"] == "loader"
    (listed,) = live.get(f"/v1/service-accounts/{user_id}/keys", admin).json()["keys"]
    assert listed["key_id"] == made.json()["key_id"]
    assert not {"key", "key_hash"} & set(listed)
    path = f"/v1/service-accounts/{user_id}/keys/{listed['key_id']}"
    assert live.request("DELETE", path, admin).status_code == 204
    assert live.get("/v1/me", headers=headers).status_code == 401
    (one,) = live.get("/v1/service-accounts", admin).json()["service_accounts"]
    assert one["user_id"] == user_id


def test_only_administrators_make_them_and_nobody_more_than_they_may(live: LiveHttp) -> None:
    people = live.everyone()
    body = {"name": "loader"}
    assert live.post("/v1/service-accounts", json=body).status_code == 401
    assert live.post("/v1/service-accounts", people[Role.USER], json=body).status_code == 403
    powerful = {"name": "robot", "role": "superadmin"}
    assert live.post("/v1/service-accounts", people[Role.ADMIN], json=powerful).status_code == 403


def test_a_key_that_is_not_allowed_says_which_field(live: LiveHttp) -> None:
    admin = live.person("root", Role.ADMIN)
    user_id = live.post("/v1/service-accounts", admin, json={"name": "loader"}).json()["user_id"]
    refused = live.post(
        f"/v1/service-accounts/{user_id}/keys", admin, json={"label": "x", "expires_in_days": 0}
    )
    assert refused.json()["errors"][0]["field"] == "body.expires_in_days"
