"""Signing in tells nobody who exists, costs the same for all, and a flood of it holds nothing else up."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from lakehouse_platform.errors import AuthError, InvalidCredentialsError, LoginThrottledError
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.security.conftest import Fort
from lakehouse_platform_tests.support.http_server import LiveHttp, http_server
from lakehouse_platform_tests.support.people import PASSWORD


class _Counting(PasswordHasher):
    """Argon2id that counts what it does, and can be held up."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.verified: list[str] = []
        self.hashed = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def hash(self, *arguments: Any, **named: Any) -> str:
        self.hashed += 1
        return super().hash(*arguments, **named)

    def verify(self, hash: str | bytes, password: str | bytes) -> Any:  # noqa: A002 - argon2's name
        self.may_go_on.wait(60)
        self.verified.append(str(hash))
        return super().verify(hash, password)


@pytest.fixture
def counting() -> Iterator[_Counting]:
    hasher = _Counting()
    yield hasher
    hasher.may_go_on.set()


@pytest.fixture
def counted(config: LakehouseConfig, counting: _Counting) -> Iterator[LiveHttp]:
    """A server whose Argon2 is counted."""
    with Passwords(2, 2, hasher=counting) as passwords, http_server(config, passwords=passwords) as live:
        yield live
        counting.may_go_on.set()


def _sign_in(live: LiveHttp, login: str, password: str = "wrong, and long enough") -> httpx.Response:
    return live.post("/v1/auth/login", json={"login": login, "password": password})


def test_every_sign_in_verifies_exactly_one_hash_with_the_same_parameters(
    counted: LiveHttp, counting: _Counting
) -> None:
    counted.person("known")
    accounts = counted.lakehouse.accounts
    accounts.register("pending", "pending@example.com", PASSWORD)
    accounts.disable(counted.person("disabled").user_id)
    accounts.create_service_account("program")
    _sign_in(counted, "warm")
    counting.hashed = 0
    costs: list[tuple[int, set[str]]] = []
    for login in (
        "known",
        "KNOWN@example.com",
        "unknown",
        "pending",
        "disabled",
        "program",
        "x" * 300,
    ):
        counting.verified.clear()
        # In process: over HTTP the address would have to wait.
        with pytest.raises(InvalidCredentialsError):
            accounts.login(login, "wrong, and long enough")
        costs.append((len(counting.verified), {stored.rsplit("$", 2)[0] for stored in counting.verified}))
    assert [times for times, _ in costs] == [1] * len(costs)
    assert len(set.union(*(parameters for _, parameters in costs))) == 1
    assert counting.hashed == 0


def test_a_sign_in_that_succeeds_costs_one_hash_too(counted: LiveHttp, counting: _Counting) -> None:
    counted.person("known")
    counting.verified.clear()
    counting.hashed = 0
    assert _sign_in(counted, "known", PASSWORD).status_code == 200
    assert (len(counting.verified), counting.hashed) == (1, 0)


def test_refusals_of_known_and_unknown_names_are_the_same_to_the_byte(fort: Fort) -> None:
    told = set[str]()
    for login in ("the-user", "the-user@example.com", "nobody-at-all", "nobody@example.com"):
        answer = _sign_in(fort.live, login)
        body = {name: value for name, value in answer.json().items() if name != "request_id"}
        headers = {n: v for n, v in answer.headers.items() if n not in {"x-request-id", "date"}}
        if answer.status_code != 429:
            told.add(f"{answer.status_code} {sorted(body.items())} {sorted(headers.items())}")
    assert len(told) <= 1


def test_known_and_unknown_names_take_the_same_time(fort: Fort) -> None:
    """In process, where the network does not blur it; medians, with much room for a busy machine."""
    accounts = fort.live.lakehouse.accounts
    seconds: dict[str, list[float]] = {"known": [], "unknown": []}
    people = [fort.live.person(f"timed-{number}").user.username for number in range(8)]
    for round_ in range(3):
        for number, name in enumerate(people):
            for kind, login in (("known", name), ("unknown", f"absent-{round_}-{number}")):
                began = time.perf_counter()
                with pytest.raises(AuthError):
                    accounts.login(login, "wrong, and long enough")
                seconds[kind].append(time.perf_counter() - began)
    known, unknown = (statistics.median(values) for values in seconds.values())
    assert 1 / 3 < known / unknown < 3


def test_who_waits_for_too_many_wrong_passwords_is_known_or_unknown(fort: Fort) -> None:
    fort.live.person("often-tried")
    accounts = fort.live.lakehouse.accounts
    for login in ("often-tried", "often-tried-but-absent"):
        kinds: list[type[Exception]] = []
        for _ in range(7):
            try:
                accounts.login(login, "wrong, and long enough")
            except (InvalidCredentialsError, LoginThrottledError) as error:
                kinds.append(type(error))
        assert kinds == [InvalidCredentialsError] * 5 + [LoginThrottledError] * 2


def test_tokens_are_checked_while_every_place_for_passwords_is_taken(
    counted: LiveHttp, counting: _Counting
) -> None:
    person = counted.person("known")
    _sign_in(counted, "warm")
    counting.may_go_on.clear()
    with ThreadPoolExecutor(12) as crowd:
        flood = [crowd.submit(_sign_in, counted, f"flood-{number}") for number in range(12)]
        # Two are checked and two wait; all others are turned away without waiting for anything.
        refused = list(_as_they_end(flood, 8))
        assert {answer.status_code for answer in refused} == {429}
        assert all(answer.headers["retry-after"] for answer in refused)
        for _ in range(50):
            assert counted.get("/v1/auth/verify", person).status_code == 200
        assert counted.get("/healthz").status_code == 200
        counting.may_go_on.set()
        assert {one.result().status_code for one in flood} <= {401, 429}


def _as_they_end(futures: list[Any], count: int) -> Iterator[httpx.Response]:
    ended = as_completed(futures, timeout=60)
    for _ in range(count):
        yield next(ended).result()


def test_a_flood_from_one_address_makes_it_wait_whatever_names_it_tries(config: LakehouseConfig) -> None:
    with http_server(config) as live:
        statuses = [_sign_in(live, f"invented-{number}").status_code for number in range(60)]
        assert 429 in statuses
        assert statuses[-1] == 429
        refused = _sign_in(live, "another", PASSWORD)
        assert refused.json()["code"] == "login_throttled"
        # A header that anybody can send does not make it another address.
        spoofed = live.post(
            "/v1/auth/login", json={"login": "x", "password": "y"}, headers={"X-Forwarded-For": "203.0.113.9"}
        )
        assert spoofed.json()["code"] == "login_throttled"
