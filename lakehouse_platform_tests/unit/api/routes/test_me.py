"""One's own account over HTTP."""

from __future__ import annotations

import pytest

from lakehouse_platform.errors import AuthenticationFailedError
from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform.model.rights import Right
from lakehouse_platform_tests.support.http_server import LiveHttp
from lakehouse_platform_tests.support.people import PASSWORD


def test_a_user_sees_account_usage_sign_ins_and_grants(live: LiveHttp) -> None:
    ada = live.person("ada", tier=SubscriptionTier.PRO)
    live.lakehouse.accounts.grant(ada.user_id, "rides", Right.WRITE)
    account = live.get("/v1/me", ada).json()
    assert (account["user_id"], account["username"], account["tier"]) == (ada.user_id, "ada", "pro")
    assert account["created_at"].endswith("Z")
    assert {"password_hash", "password"}.isdisjoint(account)
    usage = live.get("/v1/me/usage", ada).json()
    assert usage["quota"] == {"per_minute": 100, "per_day": 10_000}
    (session,) = live.get("/v1/me/sessions", ada).json()["sessions"]
    assert session["session_id"] == ada.tokens.session_id
    assert not any("hash" in name for name in session)
    (grant,) = live.get("/v1/me/grants", ada).json()["grants"]
    assert (grant["table"], grant["right"]) == ("rides", "write")


def test_a_user_ends_one_sign_in_of_several(live: LiveHttp) -> None:
    ada = live.person("ada")
    other = live.post("/v1/auth/login", json={"login": "ada", "password": PASSWORD}).json()
    path = f"/v1/me/sessions/{other['session_id']}"
    assert live.request("DELETE", path, ada).status_code == 204
    assert live.get("/v1/me", headers={"Authorization": f"Bearer {other['access_token']}"}).status_code == 401
    assert live.request("DELETE", path, ada).status_code == 204
    assert live.get("/v1/me", ada).status_code == 200


@pytest.mark.parametrize("role", list(Role))
def test_nobody_ends_the_sign_in_of_another_as_their_own(live: LiveHttp, role: Role) -> None:
    eve, ada = live.person("eve", role), live.person("ada")
    live.request("DELETE", f"/v1/me/sessions/{ada.tokens.session_id}", eve)
    assert live.get("/v1/me", ada).status_code == 200


@pytest.mark.parametrize("path", ["/v1/me", "/v1/me/usage", "/v1/me/sessions", "/v1/me/grants"])
def test_without_a_token_there_is_no_account(live: LiveHttp, path: str) -> None:
    refused = live.get(path)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_ticket_is_that_of_the_sign_in_and_ends_with_it(live: LiveHttp) -> None:
    accounts, ada = live.lakehouse.accounts, live.person("ada")
    answer = live.post("/v1/me/mount-tickets", ada)
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert made["session_id"] == ada.tokens.session_id
    assert accounts.mount_ticket(accounts.authenticate(ada.tokens.access_token)) == made["ticket"]
    assert live.post("/v1/me/mount-tickets", ada).json() == made
    assert accounts.admit_ticket(made["ticket"]).id == ada.user_id
    assert live.post("/v1/auth/logout", ada).status_code == 204
    with pytest.raises(AuthenticationFailedError):
        accounts.admit_ticket(made["ticket"])
    assert live.post("/v1/me/mount-tickets", ada).status_code == 401


def test_a_program_gets_no_ticket_and_nobody_neither(live: LiveHttp) -> None:
    accounts = live.lakehouse.accounts
    program = accounts.create_service_account("loader", role=Role.SUPERADMIN)
    key = accounts.create_api_key(program.user_id, "all", "maintain:* admin").key
    refused = live.post("/v1/me/mount-tickets", headers={"Authorization": f"Bearer {key}"})
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
    assert live.post("/v1/me/mount-tickets").status_code == 401


def test_a_ticket_is_audited_and_does_not_stand_in_the_log(live: LiveHttp) -> None:
    ada, boss = live.person("ada"), live.person("boss", Role.ADMIN)
    ticket = live.post("/v1/me/mount-tickets", ada).json()["ticket"]
    entries = live.get("/v1/audit", boss, params={"action": "mount"})
    (entry,) = entries.json()["entries"]
    assert (entry["user_id"], entry["outcome"], entry["door"]) == (ada.user_id, "done", "http")
    assert ticket not in entries.text
