"""Speaks HTTP byte by byte, so that a test can do what no decent client does."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, cast
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer.

    Attributes:
        status: Its status.
        headers: Its headers, by lower-case name.
        body: Its body.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class _KeptOpen(io.BufferedReader):
    """What a connection brings; an answer that is over does not close it."""

    def makefile(self, _: str) -> io.BufferedReader:
        return self

    def close(self) -> None:
        """Leave it open for the next answer."""


@dataclass(frozen=True, slots=True)
class RawConnection:
    """An open connection."""

    socket: socket.socket
    _received: _KeptOpen

    def send(self, *parts: bytes) -> None:
        """Send bytes."""
        for part in parts:
            self.socket.sendall(part)

    def send_as_long_as_it_is_taken(self, parts: Iterable[bytes]) -> int:
        """Send bytes until the other end closes, and return how many were taken."""
        sent = 0
        try:
            for part in parts:
                self.socket.sendall(part)
                sent += len(part)
        except (ConnectionError, TimeoutError):
            return sent
        return sent

    def answer(self, method: str = "GET") -> RawAnswer:
        """Return the next answer."""
        # It asks its socket for nothing but a reader, and would keep what it has read of the next answer.
        response = HTTPResponse(cast("socket.socket", self._received), method=method)
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return RawAnswer(response.status, headers, response.read())

    def is_closed(self) -> bool:
        """Wait for the other end to close, and tell whether it did so without sending anything more."""
        try:
            return self._received.read(1) == b""
        except ConnectionError:
            return True


@contextmanager
def raw_connection(base_url: str) -> Generator[RawConnection]:
    """Open a connection to a server."""
    place = urlsplit(base_url)
    with socket.create_connection((place.hostname, place.port), timeout=30) as opened:
        yield RawConnection(opened, _KeptOpen(opened.makefile("rb", buffering=0)))


def head(method: str, path: str, **headers: str) -> bytes:
    """Return the bytes of a request's line and headers; `_` in a name stands for `-`."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()
