"""Every answer has an id and careful headers, whatever became of the request."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from lakehouse_platform.api.requests import Requests
from lakehouse_platform_tests.support.http_server import LiveHttp


@pytest.mark.parametrize("given", ["abc", "A.b_c-9", "x" * 64])
def test_an_id_that_is_allowed_is_kept(shared: LiveHttp, given: str) -> None:
    assert shared.get("/healthz", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", "<script>", "a;b", "é".encode()])
def test_an_id_that_is_not_allowed_is_replaced(shared: LiveHttp, given: str | bytes) -> None:
    made = shared.client.get("/healthz", headers=[("X-Request-Id", given)]).headers["x-request-id"]
    assert len(made) == 32
    assert made.isalnum()


@pytest.mark.parametrize("path", ["/healthz", "/nothing", "/v1/me", "/openapi.json", "/docs"])
def test_every_answer_keeps_browsers_careful(shared: LiveHttp, path: str) -> None:
    headers = shared.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    assert "strict-transport-security" not in headers


def test_no_other_origin_is_let_in_by_itself(shared: LiveHttp) -> None:
    answer = shared.get("/healthz", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def _serve(app: Any, scope_more: dict[str, Any] | None = None) -> list[Message]:
    """Send one request through the layer and return what it sent."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http", "method": "GET", "path": "/secret", "query_string": b"password=hunter2", "scheme": "https",
        "headers": [(b"authorization", b"Bearer hunter2")], **(scope_more or {}),
    }  # fmt: skip
    asyncio.run(Requests(app)(scope, receive, send))
    return sent


async def _failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("the password is hunter2")


async def _failing_late(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError("too late")


def test_what_nobody_foresaw_is_a_problem_with_an_id_and_no_word_of_the_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    start, body = _serve(_failing)
    assert start["status"] == 500
    assert b"internal_error" in body["body"]
    assert b"hunter2" not in body["body"]
    request_id = dict(start["headers"])[b"x-request-id"].decode()
    assert request_id.encode() in body["body"]
    assert any(request_id in record.getMessage() for record in caplog.records if record.exc_info)


def test_an_answer_that_fails_after_its_beginning_is_broken_off() -> None:
    with pytest.raises(RuntimeError, match="too late"):
        _serve(_failing_late)


def test_the_log_names_the_path_and_neither_query_nor_headers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lakehouse.http")

    async def fine(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    (start,) = _serve(fine)
    assert "/secret" in caplog.text
    assert "hunter2" not in caplog.text
    assert dict(start["headers"])[b"strict-transport-security"]
