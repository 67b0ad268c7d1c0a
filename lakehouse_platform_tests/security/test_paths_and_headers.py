"""Paths, names of tables and headers that mean something else to one part of the server than to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.security.conftest import HIDDEN, Fort
from lakehouse_platform_tests.support.raw_http import head, raw_connection

NAMES = [
    "..%2funtouched",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/untouched",
    "../untouched",
    "target/../untouched",
    "target%2f..%2funtouched",
    "target%00",
    "target%00untouched",
    "%00",
    "target%0a",
    "target%0d%0aX-Injected:%20yes",
    "target%20",
    "%20target",
    "target.",
    "target;untouched",
    "target%3Funtouched",
    "TARGET",
    "%EF%BD%94arget",
    "t%D0%B0rget",
    "target%E2%80%8B",
    "%c0%ae%c0%ae%2funtouched",
    "%252e%252e%252funtouched",
    "..%5cuntouched",
    "_delta_log",
    "users%2f_delta_log",
    "untouched%2f_delta_log",
    "target%5c",
    "*",
    "~",
    ".",
    "..",
    "%FF%FE",
    "A" * 300,
    "a" * 20_000,
    "CON",
    "target@v0",
    "s3:%2f%2fbucket",
    "file:%2f%2f%2fetc%2fpasswd",
]


@pytest.mark.parametrize("name", NAMES, ids=lambda text: text[:30])
@pytest.mark.parametrize("role", [Role.USER, Role.SUPERADMIN])
def test_no_way_of_writing_a_path_leads_out_of_the_table(fort: Fort, role: Role, name: str) -> None:
    before, token = fort.state(), fort.people[role].headers["Authorization"]
    for method, path in (
        ("GET", f"/v1/tables/{name}/rows"),
        ("GET", f"/v1/tables/{name}"),
        ("DELETE", f"/v1/tables/{name}"),
        ("GET", f"//v1/tables/{name}/rows"),
        ("GET", f"/v1//tables/{name}/rows"),
    ):
        with raw_connection(fort.live.base_url) as wire:
            wire.send(head(method, path, Authorization=token))
            answer = wire.answer(method)
        assert 400 <= answer.status < 500, (method, path, answer.status)
        assert "x-injected" not in answer.headers
        assert HIDDEN.encode() not in answer.body
        assert b"root:" not in answer.body
    assert fort.state() == before


@pytest.mark.parametrize(
    "name",
    ["../escaped", "a/b", "a\\b",
     "a\0b", ".hidden", "-rf", "a b", "\uff41bc", "a\u202eb", "a" * 300, "", "users", "USERS",
     "_delta_log", "a.", "a\n", "audit_log", "target"],
)  # fmt: skip
def test_no_table_is_made_under_a_name_that_is_a_path_or_is_taken(
    fort: Fort, name: str, tmp_path: Path
) -> None:
    place = Path(fort.live.lakehouse.config.base_path)
    before = {str(found) for found in place.parent.iterdir()}
    answer = fort.live.post(
        "/v1/tables", fort.people[Role.SUPERADMIN], json={"name": name, "schema": "id:Int64"}
    )
    assert answer.status_code in {400, 403, 404, 409, 422}, answer.text
    assert {str(found) for found in place.parent.iterdir()} == before


@pytest.mark.parametrize(
    "line",
    [
        b"X-Request-Id: a\r\nX-Injected: yes",
        b"X-Request-Id: a\nX-Injected: yes",
        b"X-Request-Id: a%0d%0aX-Injected: yes",
        b"X-Request-Id: \xff\xfe",
        b"X-Request-Id: " + b"a" * 65,
        b"X-Request-Id: <script>",
        b"Idempotency-Key: a\r\n b",
        b"Idempotency-Key: \xff",
        b"Idempotency-Key: " + b"a" * 256,
        b"Accept: text/html\r\nAccept: \0",
        b"User-Agent: \xff\x7f",
        b"Content-Type: application/json; charset=utf-16",
        b"Content-Type: multipart/form-data; boundary=x",
        b"Cookie: a=b\r\nX-HTTP-Method-Override: DELETE",
        b"X-Original-URL: /v1/users",
        b"X-Rewrite-URL: /v1/users",
        b"X-Forwarded-For: 127.0.0.1, unknown, \xff",
        b"Forwarded: for=127.0.0.1;host=evil",
        b"Host: evil.example",
        b"Origin: https://evil.example",
        b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings",
        b"Upgrade: websocket\r\nConnection: Upgrade",
        b"Expect: 100-continue",
        b"Range: bytes=0-1",
        b"Bad Header: x",
        b": empty",
        b"X: " + b"y" * 40_000,
    ],
    ids=lambda line: line[:30].decode("latin-1"),
)
def test_no_header_gets_more_out_of_the_server_than_without_it(fort: Fort, line: bytes) -> None:
    before = fort.state()
    for asks, body in (
        ("GET /v1/users", b""),
        ("POST /v1/tables/untouched/rows", b"[]"),
        ("GET /healthz", b""),
    ):
        with raw_connection(fort.live.base_url) as wire:
            # At once: it may be refused, and the connection closed, before its end.
            start = f"{asks} HTTP/1.1\r\nHost: test\r\n".encode() + line + b"\r\n"
            wire.send(start + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = wire.answer()
        assert answer.status in ({200} if asks == "GET /healthz" else {401}) | {400, 415, 422, 431}, (
            answer.body
        )
        assert "x-injected" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
        assert b"yes" not in answer.body
        assert b"evil.example" not in answer.body
    assert fort.state() == before


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND", "get", "GET\0", "DELETE", "X" * 100])
def test_methods_that_are_not_offered_do_nothing(fort: Fort, method: str) -> None:
    with raw_connection(fort.live.base_url) as wire:
        wire.send(head(method, "/v1/me", Authorization=fort.people[Role.USER].headers["Authorization"]))
        assert wire.answer().status in {400, 405}


@pytest.mark.parametrize(
    "path", ["/metrics", "/metrics/", "//metrics", "/METRICS", "/%6detrics", "/x/../metrics", "/metrics%00"]
)
def test_the_numbers_are_reached_by_no_detour(fort: Fort, path: str) -> None:
    for person in (None, fort.people[Role.USER]):
        headers = {} if person is None else {"Authorization": person.headers["Authorization"]}
        with raw_connection(fort.live.base_url) as wire:
            wire.send(head("GET", path, **headers))
            answer = wire.answer()
        assert answer.status in {400, 401, 403, 404}
        assert b"lakehouse_http_requests" not in answer.body


def test_the_audit_log_keeps_one_line_of_what_was_sent_in_several(fort: Fort) -> None:
    boss = fort.people[Role.SUPERADMIN]
    details = "first\r\n2026-01-01 root login done\x1b[2J"
    made = fort.live.post("/v1/audit/entries", boss, json={"action": "custom", "details": details})
    assert made.status_code in {201, 422}
    exported = fort.live.get("/v1/audit/export", boss, headers={"accept": "application/x-ndjson"})
    import json

    assert all(json.loads(line) for line in exported.text.splitlines())
