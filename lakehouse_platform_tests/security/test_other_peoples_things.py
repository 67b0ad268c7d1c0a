"""What belongs to one user is out of the reach of another, whose id or name stands in the request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lakehouse_platform.model.rights import Right
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server
from lakehouse_platform_tests.support.people import entries

_PERIOD = {"start": "2020-01-01", "end": "2040-01-01"}


@dataclass(frozen=True)
class Street:
    """Two neighbours with the same role and things of their own."""

    live: LiveHttp
    alice: Person
    mallory: Person


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    place = tmp_path_factory.mktemp("street")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as live:
        alice, mallory = live.person("alice"), live.person("mallory")
        live.lakehouse.store.create("alices", _schema())
        live.lakehouse.tables.append("alices", [{"id": 1}])
        live.lakehouse.accounts.grant(alice.user_id, "alices", Right.MAINTAIN)
        yield Street(live, alice, mallory)


def _schema() -> object:
    import pyarrow as pa

    return pa.schema([("id", pa.int64())])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/users/{id}"),
        ("GET", "/v1/users/{id}/sessions"),
        ("GET", "/v1/users/{id}/usage"),
        ("GET", "/v1/users/{id}/grants"),
        ("GET", "/v1/service-accounts/{id}/keys"),
        ("GET", "/v1/audit/activity/{id}"),
        ("GET", "/v1/billing/{id}"),
        ("GET", "/v1/audit?user_id={id}"),
        ("GET", "/v1/audit/export?user_id={id}"),
        ("DELETE", "/v1/users/{id}/sessions"),
        ("DELETE", "/v1/users/{id}/sessions/{session}"),
        ("DELETE", "/v1/users/{id}/usage"),
        ("DELETE", "/v1/users/{id}/limits"),
        ("DELETE", "/v1/users/{id}/grants/alices"),
        ("POST", "/v1/users/{id}/disable"),
    ],
)
def test_a_neighbour_is_refused_in_the_same_way_whether_or_not_there_is_such_a_user(
    street: Street, method: str, path: str
) -> None:
    def told(user_id: str) -> tuple[int, str]:
        asked = path.format(id=user_id, session=street.alice.tokens.session_id)
        answer = street.live.request(
            method, asked, street.mallory, params=_PERIOD if "billing" in path else None
        )
        body = {name: value for name, value in answer.json().items() if name != "request_id"}
        return answer.status_code, str(body).replace(user_id, "ID")

    assert told(street.alice.user_id)[0] == 403
    assert told(street.alice.user_id) == told("00000000-0000-0000-0000-000000000000")
    assert street.live.get("/v1/me", street.alice).status_code == 200


def test_the_sign_in_of_a_neighbour_is_not_ended_as_ones_own(street: Street) -> None:
    session = street.alice.tokens.session_id
    answer = street.live.request("DELETE", f"/v1/me/sessions/{session}", street.mallory)
    assert answer.status_code in {204, 403, 404}
    assert street.live.get("/v1/me", street.alice).status_code == 200
    shown = street.live.get("/v1/me/sessions", street.mallory).json()["sessions"]
    assert {one["user_id"] for one in shown} == {street.mallory.user_id}


def test_what_is_ones_own_is_shown(street: Street) -> None:
    own = street.alice.user_id
    assert street.live.get(f"/v1/billing/{own}", street.alice, params=_PERIOD).status_code == 200
    assert street.live.get(f"/v1/audit/activity/{own}", street.alice).status_code == 200
    for path in ("sessions", "usage", "grants"):
        assert street.live.get(f"/v1/users/{own}/{path}", street.alice).status_code == 200


def test_the_table_of_a_neighbour_is_neither_read_nor_named(street: Street) -> None:
    assert street.live.get("/v1/tables", street.mallory).json() == {"tables": []}
    assert street.live.get("/v1/tables/alices/rows", street.mallory).status_code == 403
    asked = {"query": "SELECT * FROM alices"}
    there = street.live.post("/v1/sql", street.mallory, json=asked)
    nowhere = street.live.post("/v1/sql", street.mallory, json={"query": "SELECT * FROM malices"})
    assert (there.status_code, there.json()["code"]) == (nowhere.status_code, nowhere.json()["code"])
    assert there.json()["detail"].replace("malices", "T").replace("alices", "T") == nowhere.json()[
        "detail"
    ].replace("malices", "T").replace("alices", "T")


def test_the_idempotency_key_of_a_neighbour_tells_and_takes_nothing(street: Street) -> None:
    street.live.lakehouse.accounts.grant(street.mallory.user_id, "alices", Right.WRITE)
    headers = {"Idempotency-Key": "the-same-key"}
    first = street.live.post("/v1/tables/alices/rows", street.alice, json=[{"id": 2}], headers=headers)
    second = street.live.post("/v1/tables/alices/rows", street.mallory, json=[{"id": 3}], headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["repeated"] is False
    street.live.lakehouse.accounts.revoke_grant(street.mallory.user_id, "alices")


def test_a_request_id_of_the_clients_choice_never_acts_for_another(street: Street) -> None:
    headers = {"X-Request-Id": street.alice.user_id}
    street.live.get("/v1/tables", street.mallory, headers=headers)
    rows = entries(street.live.lakehouse.accounts, street.live.lakehouse.store)
    asked = [row for row in rows if row["request_id"] == street.alice.user_id]
    assert {row["user_id"] for row in asked} == {street.mallory.user_id}
