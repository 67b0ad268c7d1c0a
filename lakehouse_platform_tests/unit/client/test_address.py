"""Which base URLs are taken."""

from __future__ import annotations

import pytest

from lakehouse_platform.client.address import parse_address
from lakehouse_platform.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://localhost:8080/", "http://localhost:8080"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://127.8.9.1", "http://127.8.9.1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://lake.localhost", "http://lake.localhost"),
        ("https://lake.example.com/behind/a/proxy/", "https://lake.example.com/behind/a/proxy"),
    ],
)
def test_a_server_here_or_behind_tls_is_taken(base_url: str, url: str) -> None:
    assert parse_address(base_url).url == url


@pytest.mark.parametrize(
    "base_url",
    [
        "http://lake.example.com",
        "http://10.0.0.5:8080",
        "http://localhost.example.com",
        "http://0.0.0.0:8080",
    ],
)
def test_plain_http_to_another_machine_must_be_wanted(base_url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="insecure_http"):
        parse_address(base_url)
    assert parse_address(base_url, insecure_http=True).url == base_url


@pytest.mark.parametrize(
    "base_url",
    [
        "", "localhost:8080", "ftp://localhost", "http://", "http:///path", "http://localhost:port", "http://[::1",
        "https://lake.example.com?x=1", "https://lake.example.com#x", "https://lake example.com",
        "https://lake.example.com/\n", "https://läke.example.com",
    ],
)  # fmt: skip
def test_what_is_no_base_url_is_refused(base_url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="base_url"):
        parse_address(base_url)


@pytest.mark.parametrize(
    "base_url",
    ["https://ada:hush-hush@lake.example.com", "https://lake.example.com:hush-hush@x", "http://x:hush-hush"],
)
def test_a_password_in_a_url_is_refused_and_not_repeated(base_url: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_address(base_url)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
