"""Real processes that serve: they end in order when they are told to, and lose nothing when they are killed."""

from __future__ import annotations

import random
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from lakehouse_platform.api.serving import serve
from lakehouse_platform.errors import ConfigError, StorageUnavailableError
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import http_server
from lakehouse_platform_tests.support.people import PASSWORD, user
from lakehouse_platform_tests.support.raw_http import head, raw_connection
from lakehouse_platform_tests.support.serve_process import ServingProcess, serving_process

JSON = {"Content_Type": "application/json"}
SIGN_IN = b'{"login": "root", "password": "%s"}' % PASSWORD.encode()


def _with_superadmin(config: LakehouseConfig) -> None:
    with Lakehouse.open(config) as lakehouse:
        lakehouse.init()
        lakehouse.accounts.bootstrap("root", "root@example.com", PASSWORD)


def _signed_in(server: ServingProcess) -> dict[str, str]:
    body = {"login": "root", "password": PASSWORD}
    answer = httpx.post(f"{server.base_url}/v1/auth/login", json=body, timeout=60)
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_finishes_what_runs_and_moves_the_journal(
    config: LakehouseConfig, number: signal.Signals
) -> None:
    _with_superadmin(config)
    with serving_process(config) as server, raw_connection(server.base_url) as client:
        # A request that has begun: its server waits for the rest of the body.
        client.send(head("POST", "/v1/auth/login", Content_Length=str(len(SIGN_IN)), **JSON), SIGN_IN[:5])
        assert httpx.get(f"{server.base_url}/healthz").status_code == 200
        server.process.send_signal(number)
        _until(lambda: _is_refused(server.base_url))
        client.send(SIGN_IN[5:])
        answer = client.answer()
        assert answer.status == 200
        assert server.ended() == (0, "")
    with Lakehouse.open(config) as lakehouse:
        rows = lakehouse.store.scan("audit_log").to_pylist()
        last = max(rows, key=lambda row: row["sequence"])
        assert (last["action"], last["outcome"], last["door"]) == ("login", "done", "http")
    assert not list(Path(config.state_path or "").rglob("*.segment"))


def test_a_request_that_does_not_end_in_time_does_not_keep_the_server(config: LakehouseConfig) -> None:
    _with_superadmin(config)
    with (
        serving_process(config, api_shutdown_seconds=0) as server,
        raw_connection(server.base_url) as client,
    ):
        client.send(head("POST", "/v1/auth/login", Content_Length="100", **JSON), b"{")
        assert httpx.get(f"{server.base_url}/healthz").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        status, _ = server.ended()
        assert status == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_is_killed_loses_no_entry_that_it_acknowledged(
    config: LakehouseConfig, seed: int
) -> None:
    _with_superadmin(config)
    chance = random.Random(seed)
    acknowledged: list[str] = []
    with serving_process(config) as server:
        headers = _signed_in(server)
        until = chance.randint(20, 120)

        def write(_: int) -> None:
            with httpx.Client(base_url=server.base_url, headers=headers) as client:
                while True:
                    try:
                        answer = client.post("/v1/audit/entries", json={"action": "custom"})
                    except httpx.HTTPError:
                        return
                    acknowledged.append(answer.json()["audit_id"])
                    if len(acknowledged) >= until:
                        server.process.kill()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        assert server.process.wait(60) == -signal.SIGKILL
    assert len(acknowledged) >= until
    # The next server moves what the killed one left.
    with serving_process(config) as server:
        headers = _signed_in(server)
        found = httpx.post(f"{server.base_url}/v1/audit/verify", headers=headers, timeout=60).json()
        assert found["is_whole"] is True
        server.process.send_signal(signal.SIGTERM)
        assert server.ended()[0] == 0
    with Lakehouse.open(config) as lakehouse:
        ids = [row["audit_id"] for row in lakehouse.store.scan("audit_log", ["audit_id"]).to_pylist()]
    assert len(ids) == len(set(ids))
    assert set(acknowledged) <= set(ids)


def test_limits_count_across_two_servers_and_over_a_restart(config: LakehouseConfig) -> None:
    with Lakehouse.open(config) as lakehouse:
        lakehouse.init()
        ada = user(lakehouse.accounts, "ada")
        lakehouse.accounts.override_limits(ada.user_id, None, 4)
        headers = {"Authorization": f"Bearer {lakehouse.accounts.login('ada', PASSWORD)}"}

    def asked(*servers: ServingProcess) -> list[int]:
        return [
            httpx.get(f"{one.base_url}/v1/tables", headers=headers, timeout=60).status_code for one in servers
        ]

    with serving_process(config) as first, serving_process(config) as second:
        assert asked(first, second, first) == [200, 200, 200]
    with serving_process(config) as third, serving_process(config) as fourth:
        assert asked(third, fourth, third) == [200, 429, 429]


def test_a_server_speaks_tls_with_its_certificate(config: LakehouseConfig, tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path)
    changes = {"api_tls_cert": str(certificate), "api_tls_key": str(key)}
    with http_server(config, changes) as live:
        assert live.base_url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(certificate))
        answer = httpx.get(f"{live.base_url}/healthz", verify=trusted)
        assert answer.json() == {"status": "ok"}
        assert answer.headers["strict-transport-security"]
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{live.base_url}/healthz")


def test_a_certificate_that_is_none_is_refused(config: LakehouseConfig, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("no certificate", encoding="utf-8")
    wrong = config.model_copy(
        update={"api_tls_cert": str(nothing), "api_tls_key": str(nothing), "api_port": 0}
    )
    with pytest.raises(ConfigError, match="PEM"):
        serve(wrong, on_ready=lambda _: None)


def test_a_port_that_is_taken_is_told(config: LakehouseConfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wrong = config.model_copy(update={"api_port": taken.getsockname()[1]})
        with pytest.raises(StorageUnavailableError, match="api_port"):
            serve(wrong, on_ready=lambda _: None)


def test_pages_of_named_origins_are_let_in_and_no_others(config: LakehouseConfig) -> None:
    with http_server(config, {"api_cors_origins": ("https://app.example.com",)}) as live:
        allowed = live.get("/healthz", headers={"Origin": "https://app.example.com"})
        assert allowed.headers["access-control-allow-origin"] == "https://app.example.com"
        other = live.get("/healthz", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


def _certificate(place: Path) -> tuple[Path, Path]:
    certificate, key = place / "cert.pem", place / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key


def _is_refused(base_url: str) -> bool:
    try:
        with raw_connection(base_url):
            return False
    except ConnectionError:
        return True


def _until(condition: Callable[[], bool]) -> None:
    """Ask until it is so; the test's own time limit ends what never comes."""
    while not condition():
        pass
