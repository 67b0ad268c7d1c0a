"""Where the server is: which base URLs are taken, and whether a secret may be sent there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from lakehouse_platform.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL.

    Attributes:
        url: The URL, without a slash at its end.
        is_encrypted: Whether it is HTTPS.
    """

    url: str
    is_encrypted: bool


def parse_address(base_url: str, *, insecure_http: bool = False) -> Address:
    """Return the address that a base URL names.

    Args:
        base_url: Such as `https://lake.example.com` or `http://localhost:8080`.
        insecure_http: Take plain HTTP to other machines too: everybody on the way can read tokens and rows.

    Raises:
        InvalidArgumentError: It is no such URL, holds a password, or would send secrets in clear to another machine.
    """
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        # Without its cause, whose text may hold a part of the URL.
        raise _wrong() from None
    if (
        parts.scheme not in {"http", "https"}
        or not host
        or not base_url.isascii()
        or not base_url.isprintable()
    ):
        raise _wrong()
    if parts.username is not None or parts.password is not None:
        raise InvalidArgumentError(
            "base_url holds a user name or password: take it out, and use login() or token=."
        )
    if parts.query or parts.fragment or " " in base_url:
        raise _wrong()
    if parts.scheme == "http" and not (insecure_http or _is_here(host)):
        raise InvalidArgumentError(
            f"Plain HTTP to {host} would show tokens and rows to everybody on the way: use https, or say "
            "insecure_http=True if the network is trusted.",
            host=host,
        )
    return Address(base_url.rstrip("/"), parts.scheme == "https")


def _is_here(host: str) -> bool:
    """Tell whether a host is this machine itself, by its name alone: a name that is looked up could change."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _wrong() -> InvalidArgumentError:
    # Not repeated: it may hold a password in a place that is not understood.
    return InvalidArgumentError(
        "base_url is no address of a server: write it like https://lake.example.com or http://localhost:8080."
    )
