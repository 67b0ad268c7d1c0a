"""The server says whether it lives and whether it can work, and gives its numbers to administrators."""

from __future__ import annotations

import shutil
from pathlib import Path

from lakehouse_platform.model.actors import Role
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp


def test_a_server_that_lives_says_so(live: LiveHttp) -> None:
    answer = live.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert answer.headers["x-request-id"]


def test_a_server_that_can_work_is_ready(live: LiveHttp) -> None:
    assert live.get("/readyz").json() == {"status": "ready"}


def test_a_server_whose_store_is_gone_is_not_ready_but_lives(live: LiveHttp, config: LakehouseConfig) -> None:
    shutil.rmtree(config.base_path)
    answer = live.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
    assert "store" in answer.json()["detail"]
    assert config.base_path not in answer.text
    assert live.get("/healthz").status_code == 200


def test_a_server_whose_audit_journal_cannot_be_written_is_not_ready(
    live: LiveHttp, config: LakehouseConfig
) -> None:
    assert live.lakehouse.accounts.audit.writer.waiting_count >= 0
    shutil.rmtree(Path(config.state_path or "") / "audit")
    answer = live.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
    assert "audit journal" in answer.json()["detail"]


def test_numbers_are_for_administrators(live: LiveHttp) -> None:
    people = live.everyone()
    assert live.get("/metrics").status_code == 401
    assert live.get("/metrics", people[Role.USER]).status_code == 403
    answer = live.get("/metrics", people[Role.ADMIN])
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")


def test_numbers_count_by_route_and_status_and_hold_no_ids_and_no_secrets(live: LiveHttp) -> None:
    admin = live.person("ada", Role.ADMIN)
    live.get(f"/v1/users/{admin.user_id}", admin)
    live.post("/v1/auth/login", json={"login": "ada", "password": "a wrong passphrase"})
    live.client.request("BREW", "/coffee/with/an-id")
    text = live.get("/metrics", admin).text
    assert 'lakehouse_http_requests_total{method="GET",route="/v1/users/{user_id}",status="200"} 1.0' in text
    assert 'lakehouse_http_requests_total{method="other",route="none",status="404"} 1.0' in text
    assert 'lakehouse_sign_ins_total{outcome="invalid_credentials"} 1.0' in text
    assert "lakehouse_audit_waiting_entries" in text
    for secret in (admin.user_id, "ada", "wrong", admin.tokens.access_token, "an-id"):
        assert secret not in text
