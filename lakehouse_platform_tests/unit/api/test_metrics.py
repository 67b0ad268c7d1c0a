"""Numbers are kept by route, never by what a request holds."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from lakehouse_platform.api.metrics import Metrics


def _answering(status: int, code: str | None = None, route: str = "/v1/users/{user_id}") -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = SimpleNamespace(path=route)
        if code is not None:
            scope["state"]["problem_code"] = code
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


def _ask(metrics: Metrics, app: Any, method: str = "GET", kind: str = "http") -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": kind, "method": method, "path": "/v1/users/an-id", "state": {}}
    asyncio.run(metrics.layer(app)(scope, receive, send))
    return sent


def test_a_request_is_counted_by_method_route_and_status_and_passed_on() -> None:
    metrics = Metrics(lambda: 0)
    assert [message["type"] for message in _ask(metrics, _answering(200))] == [
        "http.response.start",
        "http.response.body",
    ]
    text = metrics.text().decode()
    assert 'lakehouse_http_requests_total{method="GET",route="/v1/users/{user_id}",status="200"} 1.0' in text
    assert 'lakehouse_http_request_seconds_count{method="GET",route="/v1/users/{user_id}"} 1.0' in text
    assert "lakehouse_http_running_requests 0.0" in text
    assert "an-id" not in text


def test_refusals_are_counted_by_their_code_and_those_over_a_limit_besides() -> None:
    metrics = Metrics(lambda: 0)
    _ask(metrics, _answering(429, "rate_limited"))
    _ask(metrics, _answering(404, "user_not_found"))
    text = metrics.text().decode()
    assert 'lakehouse_http_problems_total{code="rate_limited"} 1.0' in text
    assert 'lakehouse_http_problems_total{code="user_not_found"} 1.0' in text
    assert 'lakehouse_rate_limited_total{code="rate_limited"} 1.0' in text
    assert 'lakehouse_rate_limited_total{code="user_not_found"}' not in text


def test_sign_ins_are_counted_by_how_they_ended() -> None:
    metrics = Metrics(lambda: 0)
    _ask(metrics, _answering(200, route="/v1/auth/login"), "POST")
    _ask(metrics, _answering(401, "invalid_credentials", "/v1/auth/login"), "POST")
    text = metrics.text().decode()
    assert 'lakehouse_sign_ins_total{outcome="done"} 1.0' in text
    assert 'lakehouse_sign_ins_total{outcome="invalid_credentials"} 1.0' in text


def test_a_method_that_somebody_made_up_is_no_label() -> None:
    metrics = Metrics(lambda: 0)
    _ask(metrics, _answering(405), "BREW")
    assert 'method="other"' in metrics.text().decode()
    assert "BREW" not in metrics.text().decode()


def test_a_request_that_breaks_is_counted_and_no_longer_running() -> None:
    async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
        raise ConnectionError("gone")

    metrics = Metrics(lambda: 0)
    with pytest.raises(ConnectionError):
        _ask(metrics, breaking)
    text = metrics.text().decode()
    assert 'lakehouse_http_requests_total{method="GET",route="none",status="0"} 1.0' in text
    assert "lakehouse_http_running_requests 0.0" in text


def test_what_is_no_request_is_passed_on_uncounted() -> None:
    async def starting(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.complete"})

    metrics = Metrics(lambda: 0)
    assert _ask(metrics, starting, kind="lifespan") == [{"type": "lifespan.startup.complete"}]
    assert "lakehouse_http_requests_total{" not in metrics.text().decode()


def test_entries_that_wait_are_asked_for_when_the_numbers_are() -> None:
    waiting = iter([3, 0])
    metrics = Metrics(waiting.__next__)
    assert "lakehouse_audit_waiting_entries 3.0" in metrics.text().decode()
    assert "lakehouse_audit_waiting_entries 0.0" in metrics.text().decode()
