"""A connection is not held for nothing."""

from __future__ import annotations

import itertools

import pytest

from lakehouse_platform.api.connections import GuardedConnection
from lakehouse_platform_tests.support.http_server import LiveHttp
from lakehouse_platform_tests.support.raw_http import head, raw_connection


def test_headers_that_do_not_arrive_end_the_connection(
    shared: LiveHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GuardedConnection, "header_s", 0.2)
    with raw_connection(shared.base_url) as client:
        client.send(b"GET /healthz HTTP/1.1\r\nHost: te")
        answer = client.answer()
        assert (answer.status, answer.json()["code"]) == (408, "request_timeout")
        assert client.is_closed()


def test_headers_of_a_later_request_have_their_time_too(
    shared: LiveHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GuardedConnection, "header_s", 0.2)
    with raw_connection(shared.base_url) as client:
        client.send(head("GET", "/healthz"), b"GET /heal")
        assert client.answer().status == 200
        assert client.answer().status == 408


def test_headers_that_are_too_large_are_refused_in_the_shape_of_all_refusals(shared: LiveHttp) -> None:
    with raw_connection(shared.base_url) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: test\r\nX-Filler: " + b"x" * 40_000)
        answer = client.answer()
        assert (answer.status, answer.json()["code"]) == (431, "headers_too_large")
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "bad",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_in_the_shape_of_all_refusals(shared: LiveHttp, bad: bytes) -> None:
    with raw_connection(shared.base_url) as client:
        client.send(bad)
        answer = client.answer()
        assert (answer.status, answer.json()["code"]) == (400, "bad_request")
        assert client.is_closed()


def test_a_broken_chunk_in_the_middle_of_a_body_ends_the_connection(shared: LiveHttp) -> None:
    with raw_connection(shared.base_url) as client:
        client.send(
            head("POST", "/v1/auth/login", Transfer_Encoding="chunked", Content_Type="application/json")
        )
        client.send(b"5\r\n12345\r\nzz\r\n")
        assert client.answer().status == 400
        assert client.is_closed()


def test_a_reader_that_stalls_loses_its_connection_and_holds_nothing_up(
    shared: LiveHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GuardedConnection, "stall_s", 0.2)
    with raw_connection(shared.base_url) as client:
        # Answers are asked for and never read, until the buffers on the way are full.
        asked = head("GET", "/openapi.json") * 100
        sent = client.send_as_long_as_it_is_taken(itertools.repeat(asked, 10_000))
        assert sent < 10_000 * len(asked)
    assert shared.get("/healthz").status_code == 200


def test_too_many_connections_are_told_so(live: LiveHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardedConnection, "most_connections", 1)
    with raw_connection(live.base_url) as first:
        first.send(head("GET", "/healthz"))
        assert first.answer().status == 200
        with raw_connection(live.base_url) as second:
            answer = second.answer()
            assert (answer.status, answer.json()["code"]) == (503, "too_busy")
