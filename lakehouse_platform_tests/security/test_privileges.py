"""Every route × everybody who could ask: who may not is refused, and told nothing."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import httpx
import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.security.conftest import Fort
from lakehouse_platform_tests.support.api_walk import Operation, Place
from lakehouse_platform_tests.support.people import PASSWORD

ANYBODY = {"nobody", "user", "admin", "superadmin", "reading", "writing", "administering"}
SIGNED_IN = ANYBODY - {"nobody"}
PEOPLE = {"user", "admin", "superadmin"}
ADMINISTRATORS = {"admin", "superadmin", "administering"}
ADMINISTRATING_PEOPLE = {"admin", "superadmin"}
SUPERADMINS = {"superadmin", "administering"}

# Who may ask for what, written down once more by hand, so that no change of the matrix goes unnoticed. Nobody was
# given a right on the table that is asked for: what administrators may on it, they may by their role.
WHO_MAY: Mapping[str, set[str]] = {
    "GET /healthz": ANYBODY,
    "GET /readyz": ANYBODY,
    "GET /metrics": ADMINISTRATORS,
    "POST /v1/auth/register": ANYBODY,
    "POST /v1/auth/login": ANYBODY,
    "POST /v1/auth/refresh": ANYBODY,
    "GET /v1/auth/verify": PEOPLE,
    "POST /v1/auth/logout": PEOPLE,
    "POST /v1/auth/logout-everywhere": SIGNED_IN,
    "POST /v1/auth/password": PEOPLE,
    "GET /v1/me": SIGNED_IN,
    "GET /v1/me/usage": SIGNED_IN,
    "GET /v1/me/sessions": SIGNED_IN,
    "DELETE /v1/me/sessions/{session_id}": SIGNED_IN,
    "GET /v1/me/grants": SIGNED_IN,
    "POST /v1/me/mount-tickets": PEOPLE,
    "GET /v1/users": ADMINISTRATORS,
    "GET /v1/users/{user_id}": ADMINISTRATORS,
    "PUT /v1/users/{user_id}/role": SUPERADMINS,
    "PUT /v1/users/{user_id}/tier": ADMINISTRATORS,
    "PUT /v1/users/{user_id}/password": ADMINISTRATORS,
    "GET /v1/users/{user_id}/sessions": ADMINISTRATORS,
    "DELETE /v1/users/{user_id}/sessions": ADMINISTRATORS,
    "DELETE /v1/users/{user_id}/sessions/{session_id}": ADMINISTRATORS,
    "GET /v1/users/{user_id}/usage": ADMINISTRATORS,
    "DELETE /v1/users/{user_id}/usage": ADMINISTRATORS,
    "PUT /v1/users/{user_id}/limits": ADMINISTRATORS,
    "DELETE /v1/users/{user_id}/limits": ADMINISTRATORS,
    "GET /v1/users/{user_id}/grants": ADMINISTRATORS,
    "PUT /v1/users/{user_id}/grants/{table}": ADMINISTRATORS,
    "DELETE /v1/users/{user_id}/grants/{table}": ADMINISTRATORS,
    "POST /v1/users/{user_id}/approve": ADMINISTRATORS,
    "POST /v1/users/{user_id}/reject": ADMINISTRATORS,
    "POST /v1/users/{user_id}/disable": ADMINISTRATORS,
    "POST /v1/users/{user_id}/enable": ADMINISTRATORS,
    "GET /v1/service-accounts": ADMINISTRATORS,
    "POST /v1/service-accounts": ADMINISTRATING_PEOPLE,
    "GET /v1/service-accounts/{user_id}/keys": ADMINISTRATORS,
    "POST /v1/service-accounts/{user_id}/keys": ADMINISTRATING_PEOPLE,
    "DELETE /v1/service-accounts/{user_id}/keys/{key_id}": ADMINISTRATING_PEOPLE,
    "GET /v1/audit": ADMINISTRATORS,
    "GET /v1/audit/export": ADMINISTRATORS,
    "GET /v1/audit/activity/{user_id}": ADMINISTRATORS,
    "POST /v1/audit/entries": ADMINISTRATORS,
    "POST /v1/audit/verify": ADMINISTRATORS,
    "GET /v1/billing/{user_id}": ADMINISTRATORS,
    "GET /v1/tables": SIGNED_IN,
    "POST /v1/tables": ADMINISTRATORS,
    "POST /v1/sql": SIGNED_IN,
}
_ON_A_TABLE = ADMINISTRATORS
# They change something of who asks, and are tried with people of their own in other tests.
_TRIED_ELSEWHERE = {"POST /v1/auth/logout", "POST /v1/auth/logout-everywhere", "POST /v1/auth/password"}
# Its refusals are about what was sent, not about who asks.
_ABOUT_A_PASSWORD = {"POST /v1/auth/login", "POST /v1/auth/refresh"}


def _askers(fort: Fort) -> dict[str, Mapping[str, str]]:
    people = {str(role): person.headers for role, person in fort.people.items()}
    keys = {name: {"Authorization": f"Bearer {key}"} for name, key in fort.keys.items()}
    return {"nobody": {}, **people, **keys}


def _more_askers(fort: Fort) -> dict[str, Mapping[str, str]]:
    accounts = fort.live.lakehouse.accounts
    colleague = fort.live.person(f"colleague-{uuid.uuid4().hex[:8]}", Role.ADMIN)
    (mighty,) = [one for one in accounts.service_accounts() if one.role is Role.SUPERADMIN]
    key = accounts.create_api_key(mighty.user_id, "tables only", "maintain:*").key
    others = {
        "another admin": colleague.headers,
        "superadmin's key for tables": {"Authorization": f"Bearer {key}"},
    }
    return {**_askers(fort), **others}


def _who_may(operation: Operation) -> set[str]:
    if operation.path.startswith("/v1/tables/{table}"):
        return _ON_A_TABLE
    return WHO_MAY[str(operation)]


def _ask(fort: Fort, operation: Operation, headers: Mapping[str, str], table: str) -> httpx.Response:
    said = {place: table for place in operation.places if place == Place("path", "table")}
    return operation.send(fort.live, None, said, **headers)


def test_every_route_has_its_line_in_this_table(fort: Fort) -> None:
    routes = {str(one) for one in fort.operations if not one.path.startswith("/v1/tables/{table}")}
    assert routes == set(WHO_MAY)


@pytest.mark.parametrize("asker", sorted(ANYBODY))
def test_who_may_not_is_refused_on_every_route(fort: Fort, asker: str) -> None:
    before, headers = fort.state(), _askers(fort)[asker]
    wrong: list[str] = []
    for operation in fort.operations:
        if str(operation) in _TRIED_ELSEWHERE | _ABOUT_A_PASSWORD:
            continue
        # There is no such table and no such user: who may is told so, and nothing happens.
        answer = _ask(fort, operation, headers, "nowhere")
        refusal = 401 if asker == "nobody" else 403
        if str(operation) == "GET /v1/auth/verify" and asker != "nobody":
            refusal = 401  # An API key is no access token.
        is_refused = answer.status_code in {401, 403}
        if asker in _who_may(operation):
            expected = not is_refused and answer.status_code < 500
        else:
            expected = answer.status_code == refusal
        if not expected:
            wrong.append(f"{operation}: {answer.status_code} {answer.text[:200]}")
    assert wrong == []
    assert fort.state() == before


@pytest.mark.parametrize("asker", ["nobody", "user", "reading", "writing"])
def test_a_refusal_does_not_tell_whether_the_table_exists(fort: Fort, asker: str) -> None:
    headers = _askers(fort)[asker]

    def told(answer: httpx.Response, table: str) -> object:
        kept = {key: value for key, value in answer.json().items() if key != "request_id"}
        return answer.status_code, str(kept).replace(table, "TABLE")

    for operation in fort.operations:
        if not operation.path.startswith("/v1/tables/{table}"):
            continue
        there, not_there = (_ask(fort, operation, headers, table) for table in ("untouched", "nowhere"))
        assert told(there, "untouched") == told(not_there, "nowhere"), str(operation)


@pytest.mark.parametrize(
    ("asker", "table"),
    [
        *((asker, "users") for asker in sorted(ANYBODY)),
        # The mightiest of all.
        *(("superadmin", table) for table in ("sessions", "api_keys", "grants", "audit_log", "user_actions")),
    ],
)
def test_nobody_changes_the_platforms_own_tables(fort: Fort, asker: str, table: str) -> None:
    before, headers, secrets = fort.state(), _askers(fort)[asker], fort.secrets()
    for operation in fort.operations:
        if not operation.path.startswith("/v1/tables/{table}"):
            continue
        answer = _ask(fort, operation, headers, table)
        may_read = operation.method == "GET" and asker in ADMINISTRATORS
        if not may_read:
            assert answer.status_code in {401, 403}, f"{operation}: {answer.status_code} {answer.text[:300]}"
        assert "$argon2" not in answer.text, str(operation)
        assert not any(secret in answer.text for secret in secrets), str(operation)
    assert fort.state() == before


@pytest.mark.parametrize(
    ("asker", "victim"),
    [
        *((asker, Role.SUPERADMIN) for asker in ("nobody", "user", "admin", "reading", "writing")),
        ("superadmin's key for tables", Role.USER),
        ("another admin", Role.ADMIN),
    ],
)
def test_nobody_acts_upon_an_account_that_is_not_below_their_own(
    fort: Fort, asker: str, victim: Role
) -> None:
    before, headers = fort.state(), _more_askers(fort)[asker]
    wrong: list[str] = []
    for operation in fort.operations:
        if not operation.path.startswith("/v1/users/{user_id}") or operation.method == "GET":
            continue
        said = {Place("path", "user_id"): fort.people[victim].user_id}
        if "role" in operation.body:
            said[Place("body", "role")] = "superadmin"
        answer = operation.send(fort.live, None, said, **headers)
        # An administrator may name a sign-in that is none: there is nothing to end.
        ends_nothing = answer.status_code == 204 and operation.path.endswith("/sessions/{session_id}")
        if answer.status_code not in {401, 403} and not (ends_nothing and "admin" in asker):
            wrong.append(f"{operation}: {answer.status_code} {answer.text[:200]}")
    assert wrong == []
    assert fort.state() == before
    usage = fort.live.get("/v1/me/usage", fort.people[victim]).json()
    assert usage["quota"] == {"per_minute": None, "per_day": None}


def test_an_administrator_makes_no_program_that_may_more(fort: Fort) -> None:
    for role in ("admin", "superadmin"):
        body = {"name": "would-be-mighty", "role": role}
        answer = fort.live.post("/v1/service-accounts", fort.people[Role.ADMIN], json=body)
        assert answer.status_code == 403, answer.text
    mighty = fort.live.lakehouse.accounts.service_accounts()
    (program,) = [one for one in mighty if one.role is Role.SUPERADMIN]
    answer = fort.live.post(
        f"/v1/service-accounts/{program.user_id}/keys",
        fort.people[Role.ADMIN],
        json={"label": "mine", "scopes": ["admin"]},
    )
    assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("field", ["role", "status", "is_service", "user_id", "approved_at", "password_hash"])
def test_nobody_registers_with_more_than_they_are_asked(fort: Fort, field: str) -> None:
    body = {"username": "sly", "email": "sly@example.com", "password": PASSWORD, field: "superadmin"}
    answer = fort.live.post("/v1/auth/register", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == f"body.{field}"


def test_a_role_that_is_taken_away_is_gone_with_the_next_request(fort: Fort) -> None:
    fallen = fort.live.person("the-fallen", Role.ADMIN)
    assert fort.live.get("/v1/users", fallen).status_code == 200
    fort.live.lakehouse.accounts.change_role(fallen.user_id, Role.USER)
    assert fort.live.get("/v1/users", fallen).status_code == 403
