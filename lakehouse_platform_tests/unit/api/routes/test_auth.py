"""Registering, signing in and out over HTTP."""

from __future__ import annotations

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.support.http_server import LiveHttp
from lakehouse_platform_tests.support.people import OTHER_PASSWORD, PASSWORD, entries

ADA = {"username": "ada", "email": "ada@example.com", "password": PASSWORD}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_who_registers_waits_is_approved_signs_in_and_out(live: LiveHttp) -> None:
    made = live.post("/v1/auth/register", json=ADA)
    assert made.status_code == 201
    assert made.json()["status"] == "pending"
    assert "password" not in made.text
    waiting = live.post("/v1/auth/login", json={"login": "ada", "password": PASSWORD})
    assert (waiting.status_code, waiting.json()["code"]) == (403, "account_pending")
    admin = live.person("root", Role.ADMIN)
    user_id = made.json()["user_id"]
    assert live.post(f"/v1/users/{user_id}/approve", admin).json()["status"] == "active"
    signed_in = live.post("/v1/auth/login", json={"login": "ADA@example.com", "password": PASSWORD}).json()
    assert signed_in["token_type"] == "Bearer"
    headers = _bearer(signed_in["access_token"])
    claims = live.get("/v1/auth/verify", headers=headers).json()
    assert (claims["sub"], claims["sid"], claims["role"]) == (user_id, signed_in["session_id"], "user")
    assert live.post("/v1/auth/logout", headers=headers).status_code == 204
    gone = live.get("/v1/auth/verify", headers=headers)
    assert (gone.status_code, gone.json()["code"]) == (401, "authentication_failed")
    assert gone.headers["www-authenticate"] == "Bearer"


def test_a_sign_in_is_renewed_once_and_a_stolen_refresh_token_ends_it(live: LiveHttp) -> None:
    ada = live.person("ada")
    first = {"refresh_token": ada.tokens.refresh_token}
    renewed = live.post("/v1/auth/refresh", json=first).json()
    assert live.get("/v1/me", headers=_bearer(renewed["access_token"])).status_code == 200
    assert live.get("/v1/me", ada).status_code == 401
    replayed = live.post("/v1/auth/refresh", json=first)
    assert (replayed.status_code, replayed.json()["code"]) == (401, "token_reuse")
    assert ada.user_id not in replayed.text
    assert live.get("/v1/me", headers=_bearer(renewed["access_token"])).status_code == 401


def test_all_sign_ins_end_at_once(live: LiveHttp) -> None:
    ada = live.person("ada")
    live.post("/v1/auth/login", json={"login": "ada", "password": PASSWORD})
    assert live.post("/v1/auth/logout-everywhere", ada).json() == {"ended": 2}
    assert live.get("/v1/me", ada).status_code == 401


def test_a_password_is_changed_by_who_knows_the_old_one(live: LiveHttp) -> None:
    ada = live.person("ada")
    wrong = {"current_password": "not the one at all", "new_password": OTHER_PASSWORD}
    assert live.post("/v1/auth/password", ada, json=wrong).json()["code"] == "invalid_credentials"
    right = {"current_password": PASSWORD, "new_password": OTHER_PASSWORD}
    assert live.post("/v1/auth/password", ada, json=right).status_code == 200
    assert live.post("/v1/auth/login", json={"login": "ada", "password": PASSWORD}).status_code == 401
    assert live.post("/v1/auth/login", json={"login": "ada", "password": OTHER_PASSWORD}).status_code == 200


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"password": "password1"}, 422, "password_too_weak"),
        ({"username": "a"}, 422, "invalid_name"),
        ({"email": "nowhere"}, 422, "invalid_name"),
        ({"tier": "royal"}, 422, "invalid_request"),
        ({"role": "superadmin"}, 422, "invalid_request"),
        ({"status": "active"}, 422, "invalid_request"),
        ({"username": None}, 422, "invalid_request"),
        ({"password": "x" * 2000}, 422, "invalid_request"),
    ],
)
def test_a_registration_that_is_not_allowed_makes_no_account(
    live: LiveHttp, change: dict[str, object], status: int, code: str
) -> None:
    refused = live.post("/v1/auth/register", json=ADA | change)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert PASSWORD not in refused.text
    assert "x" * 50 not in refused.text
    assert live.lakehouse.accounts.users().users == []


def test_a_name_that_is_taken_is_a_conflict(live: LiveHttp) -> None:
    live.post("/v1/auth/register", json=ADA)
    again = live.post("/v1/auth/register", json=ADA | {"email": "other@example.com"})
    assert (again.status_code, again.json()["code"]) == (409, "user_exists")


def test_unknown_and_known_users_are_refused_in_the_same_words(live: LiveHttp) -> None:
    live.person("ada")
    answers = [
        live.post("/v1/auth/login", json={"login": name, "password": "some wrong passphrase"})
        for name in ("ada", "bob")
    ]
    assert [answer.status_code for answer in answers] == [401, 401]
    known, unknown = ({**answer.json(), "request_id": ""} for answer in answers)
    assert known == unknown


def test_guessing_is_slowed_down_and_told_how_long_to_wait(live: LiveHttp) -> None:
    live.person("ada")
    wrong = {"login": "ada", "password": "some wrong passphrase"}
    statuses = [live.post("/v1/auth/login", json=wrong).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]
    throttled = live.post("/v1/auth/login", json=wrong)
    assert throttled.json()["code"] == "login_throttled"
    assert int(throttled.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    "authorization", ["Bearer", "Basic YTpi", "bearer nonsense", "Bearer a.b.c", "token"]
)
def test_what_is_no_token_is_refused_and_not_taken_for_nobody(live: LiveHttp, authorization: str) -> None:
    refused = live.get("/v1/me", headers={"Authorization": authorization})
    assert refused.status_code == 401
    assert refused.json()["code"] in {"authentication_failed", "token_invalid"}


def test_two_tokens_in_one_request_are_refused(live: LiveHttp) -> None:
    ada = live.person("ada")
    header = ("Authorization", f"Bearer {ada.tokens.access_token}")
    assert live.client.get("/v1/me", headers=[header, header]).status_code == 401


def test_tokens_are_never_kept_by_caches_and_sign_ins_say_whence(live: LiveHttp) -> None:
    live.person("ada")
    answer = live.post(
        "/v1/auth/login",
        json={"login": "ada", "password": PASSWORD},
        headers={"X-Request-Id": "sign-in.1", "User-Agent": "tests/1"},
    )
    assert answer.headers["cache-control"] == "no-store"
    last = [
        row for row in entries(live.lakehouse.accounts, live.lakehouse.store) if row["action"] == "login"
    ][-1]
    assert (last["ip_address"], last["door"], last["request_id"]) == ("127.0.0.1", "http", "sign-in.1")
    session = live.lakehouse.accounts.sessions(answer.json()["user_id"])[0]
    assert (session.ip_address, session.user_agent) == ("127.0.0.1", "tests/1")
