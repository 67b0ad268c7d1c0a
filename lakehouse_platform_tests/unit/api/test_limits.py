"""Bodies are bounded in size and time however they are sent, and so is the time until an answer begins."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from lakehouse_platform.api.limits import Limited, RequestLimits
from lakehouse_platform.api.requests import Requests
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, http_server
from lakehouse_platform_tests.support.raw_http import head, raw_connection

LOGIN = "/v1/auth/login"
JSON = {"Content_Type": "application/json"}


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(shared: LiveHttp) -> None:
    with raw_connection(shared.base_url) as client:
        client.send(head("POST", LOGIN, Content_Length="300000", Expect="100-continue", **JSON))
        answer = client.answer()
        assert (answer.status, answer.json()["code"]) == (413, "body_too_large")
        assert answer.headers["connection"] == "close"
        assert answer.headers["x-request-id"] == answer.json()["request_id"]


def test_a_body_that_hides_its_size_is_counted_as_it_comes(shared: LiveHttp) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with raw_connection(shared.base_url) as client:
        client.send(head("POST", LOGIN, Transfer_Encoding="chunked", **JSON), *[chunk] * 5)
        answer = client.answer()
        assert (answer.status, answer.json()["code"]) == (413, "body_too_large")


def test_a_client_that_goes_on_sending_is_cut_off(shared: LiveHttp) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with raw_connection(shared.base_url) as client:
        client.send(head("POST", LOGIN, Transfer_Encoding="chunked", **JSON))
        # 64 MB, of which the server takes as much as fits into the buffers on the way.
        sent = client.send_as_long_as_it_is_taken(itertools.repeat(chunk, 1024))
        assert sent < 48 * 2**20


def test_a_body_that_does_not_arrive_ends_the_request(config: LakehouseConfig) -> None:
    with (
        http_server(config, {"api_request_timeout_seconds": 0.3}) as live,
        raw_connection(live.base_url) as client,
    ):
        client.send(head("POST", LOGIN, Content_Length="100", **JSON), b'{"login"')
        answer = client.answer()
        assert (answer.status, answer.json()["code"]) == (408, "request_timeout")
        assert client.is_closed()


def test_a_body_that_was_refused_unread_ends_its_connection_or_is_read_to_its_end(shared: LiveHttp) -> None:
    """The rest of a body is never taken for the next request."""
    smuggled = head("GET", "/healthz")
    with raw_connection(shared.base_url) as client:
        client.send(head("POST", "/nothing", Content_Length=str(len(smuggled))), smuggled)
        assert client.answer().status == 404
        assert client.is_closed()


def test_two_requests_on_one_connection_are_answered_in_order(shared: LiveHttp) -> None:
    body = b'{"login": "ada", "password": "wrong"}'
    with raw_connection(shared.base_url) as client:
        client.send(head("POST", LOGIN, Content_Length=str(len(body)), **JSON), body, head("GET", "/healthz"))
        assert client.answer().status == 401
        assert client.answer().json() == {"status": "ok"}


def _serve(app: Any, limits: RequestLimits, body: list[Message], scope_more: dict[str, Any]) -> list[Message]:
    """Send one request through the layers and return what was sent."""
    sent: list[Message] = []

    async def main() -> None:
        waiting = asyncio.Event()

        async def receive() -> Message:
            if body:
                return body.pop(0)
            await waiting.wait()
            raise AssertionError("nothing more comes")

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Scope = {
            "type": "http", "method": "POST", "path": "/", "scheme": "http", "headers": [], **scope_more,
        }  # fmt: skip
        await Requests(Limited(app, limits))(scope, receive, send)

    asyncio.run(main())
    return sent


LIMITS = RequestLimits(rows_bytes=1000, small_bytes=10, answer_s=0.05)


def test_an_answer_that_does_not_begin_is_given_up_though_its_thread_cannot_be_stopped() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait(30)
        ended.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError:
            go_on.set()
            await working
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent = _serve(app, LIMITS, [], {})
    assert [message.get("status") for message in sent if "status" in message] == [504]
    assert b"answer_timeout" in sent[1]["body"]
    assert ended.is_set()


def test_an_answer_that_has_begun_has_all_the_time() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.2)
        await send({"type": "http.response.body", "body": b"done"})

    sent = _serve(app, LIMITS, [], {})
    assert sent[-1]["body"] == b"done"


def test_a_body_that_arrives_at_a_fair_rate_extends_its_time() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.1)
        await receive()
        await send({"type": "http.response.start", "status": 204, "headers": []})

    limits = RequestLimits(rows_bytes=10_000, small_bytes=10_000, answer_s=0.05, slowest=1_000)
    parts: list[Message] = [
        {"type": "http.request", "body": b"x" * 1000, "more_body": True},
        {"type": "http.request", "body": b"", "more_body": False},
    ]
    sent = _serve(app, limits, parts, {"headers": [(b"transfer-encoding", b"chunked")]})
    assert sent[0]["status"] == 204


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/v1/tables/rides/rows", 1000),
        ("/v1/tables/rides/merge", 1000),
        ("/v1/tables", 10),
        ("/v1/tables/rides", 10),
        ("/v1/sql", 10),
        ("/v1/auth/login", 10),
        ("/v1/users/rows", 10),
    ],
)
def test_only_rows_may_be_large(path: str, most: int) -> None:
    assert LIMITS.body_of({"path": path}) == most
