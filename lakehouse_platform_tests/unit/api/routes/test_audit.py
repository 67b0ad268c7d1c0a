"""The audit log over HTTP."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.support.http_server import LiveHttp


def test_administrators_search_page_by_page(live: LiveHttp) -> None:
    admin = live.person("root", Role.ADMIN)
    for number in range(5):
        made = live.post("/v1/audit/entries", admin, json={"action": "custom", "details": f"note {number}"})
        assert made.status_code == 201
        assert made.json()["audit_id"]
    found: list[str] = []
    after = 0
    while after is not None:
        page = live.get("/v1/audit", admin, params={"action": "custom", "limit": 2, "after": after}).json()
        found += [entry["details"] for entry in page["entries"] if entry["details"]]
        after = page["next"]
    assert [text for text in found if text.startswith("note")] == [f"note {n}" for n in range(5)]


def test_an_entry_says_who_sent_it_from_where(live: LiveHttp) -> None:
    admin = live.person("root", Role.ADMIN)
    body = {"action": "data_export", "user_id": "user_123", "row_count": 9, "resource": "rides"}
    live.post("/v1/audit/entries", admin, json=body, headers={"X-Request-Id": "r.1"})
    (entry,) = live.get("/v1/audit", admin, params={"user_id": "user_123"}).json()["entries"]
    assert (entry["door"], entry["request_id"], entry["row_count"]) == ("http", "r.1", 9)
    assert "salt" not in entry


def test_users_see_what_they_did_and_administrators_what_anybody_did(live: LiveHttp) -> None:
    admin, ada, bob = live.person("root", Role.ADMIN), live.person("ada"), live.person("bob")
    path = f"/v1/audit/activity/{ada.user_id}"
    mine = live.get(path, ada, params={"limit": 1}).json()
    assert mine["entries"][0]["user_id"] == ada.user_id
    older = live.get(path, ada, params={"limit": 1, "page": mine["next"]}).json()
    assert older["entries"][0]["sequence"] < mine["entries"][0]["sequence"]
    assert live.get(path, admin).status_code == 200
    assert live.get(path, bob).status_code == 403
    assert live.get(path).status_code == 401


def test_the_log_is_verified(live: LiveHttp) -> None:
    admin = live.person("root", Role.ADMIN)
    found = live.post("/v1/audit/verify", admin).json()
    assert found["is_whole"] is True
    assert found["problems"] == []
    assert len(found["head_hash"]) == 64


@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson", "text/csv", "arrow"])
def test_the_log_is_exported_in_every_form_and_that_is_audited(live: LiveHttp, form: str) -> None:
    admin = live.person("root", Role.ADMIN)
    accept = "application/vnd.apache.arrow.stream" if form == "arrow" else form
    answer = live.get("/v1/audit/export", admin, params={"action": "login"}, headers={"Accept": accept})
    assert answer.status_code == 200
    readers = {
        "application/json": answer.json,
        "application/x-ndjson": lambda: list(map(json.loads, answer.text.splitlines())),
        "text/csv": lambda: list(csv.DictReader(io.StringIO(answer.text))),
        "arrow": lambda: pa.ipc.open_stream(answer.content).read_all().to_pylist(),
    }
    assert [row["action"] for row in readers[form]()] == ["login"]
    exports = live.get("/v1/audit", admin, params={"action": "data_export"}).json()["entries"]
    assert [(one["outcome"], one["row_count"]) for one in exports] == [("started", None), ("done", 1)]


def test_an_export_is_refused_before_it_begins(live: LiveHttp) -> None:
    people = live.everyone()
    assert live.get("/v1/audit/export", people[Role.USER]).status_code == 403
    assert (
        live.get("/v1/audit/export", people[Role.ADMIN], headers={"Accept": "image/png"}).status_code == 406
    )
    wrong = live.get("/v1/audit/export", people[Role.ADMIN], params={"since": "yesterday"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_timestamp")


@pytest.mark.parametrize(
    "value", ["' OR 1=1 --", "\\", "x'; DROP TABLE users; --", "\u0000", "💥" * 20, "%27", "*"]
)
def test_a_condition_is_a_value_and_never_a_part_of_a_query(live: LiveHttp, value: str) -> None:
    admin = live.person("root", Role.ADMIN)
    for name in ("user_id", "resource"):
        answer = live.get("/v1/audit", admin, params={name: value})
        assert (answer.status_code, answer.json()["entries"]) == (200, [])
