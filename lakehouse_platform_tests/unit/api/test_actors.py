"""Who acts in a request is checked anew with each, and never waits behind sign-ins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import PasswordHasher

from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.model.actors import Role
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, http_server
from lakehouse_platform_tests.support.people import PASSWORD, entries


def test_checks_of_tokens_do_not_wait_for_sign_ins(config: LakehouseConfig) -> None:
    """While each place for passwords is taken by work that takes long, tokens are checked."""
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    slow = PasswordHasher(time_cost=10, memory_cost=64 * 1024, parallelism=1)
    with Passwords(1, hasher=slow) as passwords, http_server(config, passwords=passwords) as live:
        audit = live.lakehouse.accounts.audit
        with (
            Passwords(hasher=quick) as quickly,
            AuthActor(live.lakehouse.store, audit=audit, passwords=quickly) as auth,
        ):
            made = auth.register("ada", "ada@example.com", PASSWORD)
            auth.approve(made.user_id)
            token = auth.login("ada", PASSWORD).access_token
        headers = {"Authorization": f"Bearer {token}"}
        body = {"login": "nobody", "password": "a wrong passphrase"}
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(live.post, "/v1/auth/login", json=body) for _ in range(2)]
            statuses = [live.get("/v1/auth/verify", headers=headers).status_code for _ in range(5)]
            still_waiting = [one for one in waiting if not one.done()]
            assert statuses == [200] * 5
            assert still_waiting
            assert {one.result().status_code for one in waiting} == {401}


def test_a_role_counts_from_the_next_request_on(live: LiveHttp) -> None:
    ada = live.person("ada", Role.ADMIN)
    assert live.get("/v1/users", ada).status_code == 200
    live.lakehouse.accounts.change_role(ada.user_id, Role.USER)
    assert live.get("/v1/users", ada).status_code == 403
    live.lakehouse.accounts.disable(ada.user_id)
    refused = live.get("/v1/me", ada)
    assert refused.status_code in {401, 403}
    assert refused.json()["code"] in {"account_disabled", "authentication_failed"}


def test_what_a_caller_without_a_token_tries_is_audited_with_its_address(live: LiveHttp) -> None:
    assert live.get("/v1/users", headers={"X-Request-Id": "try.1"}).status_code == 401
    denied = [
        row
        for row in entries(live.lakehouse.accounts, live.lakehouse.store)
        if row["action"] == "permission_denied"
    ]
    assert [(row["user_id"], row["ip_address"], row["request_id"]) for row in denied] == [
        ("anonymous", "127.0.0.1", "try.1")
    ]


@pytest.mark.parametrize("path", ["/v1/auth/login", "/v1/auth/refresh", "/v1/auth/register"])
def test_routes_without_sign_in_do_not_even_look_at_a_token(live: LiveHttp, path: str) -> None:
    answer = live.post(path, headers={"Authorization": "Bearer nonsense"}, json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
