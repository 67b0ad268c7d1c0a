"""How requests reach the server: certificates, headers, timeouts, and what failures mean."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from lakehouse_platform.client.requests import ARROW, Answer, Reading, Request, Send
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.client.uploads import rows_body
from lakehouse_platform.client.wire import Body, Timeouts, Verify, Wire, answer_of, lost
from lakehouse_platform.errors import (
    ConfigError,
    InvalidArgumentError,
    ServerUnavailableError,
    UnexpectedAnswerError,
)
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import http_server
from lakehouse_platform_tests.unit.client.conftest import QUICK

GET = Request(method="GET", path="/v1/tables")


def wire(
    base_url: str = "https://lake.example.com", *, verify: Verify = True, user_agent: str | None = None
) -> Wire:
    return Wire.to(base_url, timeouts=Timeouts(), verify=verify, user_agent=user_agent, insecure_http=False)


# ── Certificates ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    place = tmp_path_factory.mktemp("tls")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return place / "cert.pem", place / "key.pem"


def test_only_a_server_with_a_trusted_certificate_is_spoken_to(
    config: LakehouseConfig, certificate: tuple[Path, Path]
) -> None:
    shown, key = map(str, certificate)
    context = ssl.create_default_context(cafile=shown)
    with http_server(config, {"api_tls_cert": shown, "api_tls_key": key}) as live:
        token = live.person("ada").tokens.access_token
        for verify in (shown, certificate[0], context, False):
            with LakehouseClient(live.base_url, token=token, verify=verify) as client:
                assert client.user().username == "ada"
        with (
            LakehouseClient(live.base_url, token=token, retries=QUICK) as client,
            pytest.raises(ServerUnavailableError, match="certificate"),
        ):
            client.user()


def test_a_certificate_that_is_not_trusted_is_no_reason_to_try_again(
    config: LakehouseConfig, certificate: tuple[Path, Path]
) -> None:
    shown, key = map(str, certificate)
    with http_server(config, {"api_tls_cert": shown, "api_tls_key": key}) as live:
        with pytest.raises(httpx.ConnectError) as caught:
            httpx.get(live.base_url)
        assert lost(caught.value).is_lasting


@pytest.mark.parametrize("name", ["missing.pem", "text.pem"])
def test_a_file_without_certificates_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.pem").write_text("no certificate", encoding="utf-8")
    with pytest.raises(ConfigError, match="PEM"):
        wire(verify=tmp_path / name)


def test_redirects_and_proxies_in_clear_are_never_used() -> None:
    assert wire().settings["follow_redirects"] is False
    assert wire().settings["trust_env"] is True
    assert wire("http://localhost").settings["trust_env"] is False


# ── Requests ────────────────────────────────────────────────────────────────────────────────────────


def test_headers_say_who_asks_for_what() -> None:
    request = Request(method="POST", path="/", rows=rows_body([{"id": 1}]), key="k")
    assert wire().headers(Send(request, "t")) == {
        "Accept": "application/json, application/problem+json",
        "Authorization": "Bearer t",
        "Idempotency-Key": "k",
        "Content-Type": "application/json",
    }
    assert wire().headers(Send(GET, None)) == {"Accept": "application/json, application/problem+json"}


@pytest.mark.parametrize("agent", ["a\r\nX: y", "ä", "a" * 257])
def test_a_user_agent_cannot_bring_other_headers(agent: str) -> None:
    with pytest.raises(InvalidArgumentError):
        wire(user_agent=agent)


def test_a_path_of_the_base_url_stays() -> None:
    with httpx.Client() as http:
        sent = wire("https://example.com/lake/").request(http, Send(GET, None), None)
    assert str(sent.url) == "https://example.com/lake/v1/tables"


def test_what_takes_longer_is_waited_for_longer() -> None:
    usual = Timeouts(connect=1, answer=2).of(GET)
    assert (usual.connect, usual.read) == (1, 2)
    assert Timeouts(answer=2).of(Request(method="GET", path="/", patience=3)).read == 5
    for wrong in ({"connect": 0}, {"answer": -1}):
        with pytest.raises(InvalidArgumentError):
            Timeouts(**wrong)


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "was_sent"),
    [
        (httpx.ConnectError("refused"), False),
        (httpx.ConnectTimeout(""), False),
        (httpx.PoolTimeout(""), False),
        (httpx.ProxyError("no way"), False),
        (httpx.ReadTimeout(""), True),
        (httpx.WriteTimeout(""), True),
        (httpx.ReadError(""), True),
        (httpx.WriteError(""), True),
        (httpx.RemoteProtocolError("disconnected"), True),
        (httpx.DecodingError("gzip"), True),
    ],
)
def test_a_failure_tells_whether_the_server_may_have_got_the_request(
    error: httpx.RequestError, was_sent: bool
) -> None:
    found = lost(error)
    assert found.was_sent is was_sent
    assert found.reason
    assert not found.is_lasting


def test_names_of_headers_are_in_small_letters() -> None:
    response = httpx.Response(200, headers={"Content-Type": "text/html", "Retry-After": "3"})
    assert answer_of(response).headers["retry-after"] == "3"


def test_a_body_is_gathered_and_bounded() -> None:
    body = Body(GET, Answer(200, {}))
    body.feed(b"a")
    body.feed(b"b")
    assert body.finish().body == b"ab"
    refusal = Body(GET, Answer(500, {}))
    refusal.feed(b" " * 2**20)
    with pytest.raises(UnexpectedAnswerError, match="larger than"):
        refusal.feed(b" ")


def test_rows_must_be_rows_and_a_refusal_may_be_none() -> None:
    rows = Request(method="GET", path="/", reading=Reading.TABLE)
    with pytest.raises(UnexpectedAnswerError):
        Body(rows, Answer(200, {"content-type": "application/json"}))
    refusal = Body(rows, Answer(404, {"content-type": "application/problem+json"}))
    refusal.feed(b"{}")
    assert refusal.finish().body == b"{}"
    cut = Body(rows, Answer(200, {"content-type": ARROW}))
    with pytest.raises(UnexpectedAnswerError, match="cut off"):
        cut.finish()
