"""Where a request comes from is what the connection says, unless a trusted proxy says more."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse_platform.api.addresses import Proxies
from lakehouse_platform.model.actors import Role
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import http_server
from lakehouse_platform_tests.support.people import PASSWORD


def _scope(peer: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", text.encode()) for text in forwarded]
    return {"type": "http", "client": (peer, 1) if peer else None, "headers": headers}


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "client"),
    [
        ([], "192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        (["10.0.0.0/8"], "192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        (["10.0.0.0/8"], "10.1.1.1", ["203.0.113.9"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.1.1.1", ["1.2.3.4, 203.0.113.9"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.1.1.1", ["1.2.3.4", "203.0.113.9"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.1.1.1", ["203.0.113.9, 10.2.2.2"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.1.1.1", ["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
        (["10.0.0.0/8"], "10.1.1.1", ["203.0.113.9, nonsense"], "10.1.1.1"),
        (["10.0.0.0/8"], "10.1.1.1", [""], "10.1.1.1"),
        (["10.0.0.0/8"], "10.1.1.1", [], "10.1.1.1"),
        (["::1"], "::1", ["2001:DB8::1"], "2001:db8::1"),
        (["10.0.0.0/8"], "::ffff:10.1.1.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
        ([], None, ["203.0.113.9"], None),
        (["10.0.0.1/32"], "somewhere", ["203.0.113.9"], None),
    ],
)
def test_only_what_a_trusted_proxy_added_counts(
    trusted: list[str], peer: str | None, forwarded: list[str], client: str | None
) -> None:
    assert Proxies(trusted).client_of(_scope(peer, *forwarded)) == client


@pytest.mark.parametrize(("trusted", "address"), [((), "127.0.0.1"), (("127.0.0.0/8",), "203.0.113.9")])
def test_sign_ins_are_known_by_that_address(
    config: LakehouseConfig, trusted: tuple[str, ...], address: str
) -> None:
    with http_server(config, {"api_trusted_proxies": trusted}) as live:
        ada = live.person("ada", Role.USER)
        body = {"login": "ada", "password": PASSWORD}
        live.post("/v1/auth/login", json=body, headers={"X-Forwarded-For": "1.2.3.4, 203.0.113.9"})
        sessions = live.lakehouse.accounts.sessions(ada.user_id)
        assert {session.ip_address for session in sessions} == {None, address}
