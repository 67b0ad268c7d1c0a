"""Connections that cannot be held for nothing: slow headers, readers that stop reading, and too many at once.

uvicorn limits none of these by itself: it waits for a first request for ever, and for a client that reads nothing too.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from lakehouse_platform.api.limits import HEADERS_REFUSED
from lakehouse_platform.api.problems import MEDIA_TYPE, Refusal, problem

# nginx waits as long for headers at most (client_header_timeout is 60 s there, 10 s in many hardening guides).
HEADER_S = 10.0
# A client that has read nothing for so long does not want the rest (nginx: send_timeout).
STALL_S = 60.0
# Each costs a file descriptor and some 50 KB; the usual limit of descriptors is 1024 or more, the store needs some.
MOST_CONNECTIONS = 800


class GuardedConnection(H11Protocol):
    """A connection with a time for its headers, and an end when its reader stalls."""

    header_s: float = HEADER_S
    stall_s: float = STALL_S
    most_connections: int = MOST_CONNECTIONS
    _header_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or close it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._refuse(Refusal.TOO_BUSY, "Too many connections are open: try again in a moment.")
            return
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._cancel_header_timer()
        self._cancel_stall_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; headers that begin have their time from here."""
        super().data_received(data)
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            self._cancel_header_timer()
        elif self._header_timer is None:
            self._watch_headers()

    def on_response_complete(self) -> None:
        """Go on with the next request; if its headers have begun to arrive, they have their time."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._watch_headers()

    def pause_writing(self) -> None:
        """Give the reader its time."""
        super().pause_writing()
        self._cancel_stall_timer()
        self._stall_timer = self.loop.call_later(self.stall_s, self._on_stall)

    def resume_writing(self) -> None:
        """The reader reads again."""
        self._cancel_stall_timer()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the shape of all other refusals."""
        error = sys.exception()
        hint = error.error_status_hint if isinstance(error, h11.ProtocolError) else HTTPStatus.BAD_REQUEST
        if hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            self._refuse(Refusal.HEADERS_TOO_LARGE, HEADERS_REFUSED)
        else:
            self._refuse(Refusal.BAD_REQUEST, "This is no HTTP/1.1 request (RFC 9112).")

    def _refuse(self, refusal: Refusal, detail: str) -> None:
        """Say why the connection is closed, if nothing else is being said, and close it."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE} and not self.transport.is_closing():
            body = problem(refusal, detail).body(None)
            head = (
                f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\ncache-control: no-store\r\n"
                "x-content-type-options: nosniff\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _watch_headers(self) -> None:
        self._cancel_header_timer()
        self._header_timer = self.loop.call_later(self.header_s, self._on_slow_headers)

    def _on_slow_headers(self) -> None:
        self._header_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._refuse(
                Refusal.REQUEST_TIMEOUT, f"The headers took longer than {self.header_s:g} s to arrive."
            )

    def _on_stall(self) -> None:
        # Not `close`, which would wait until the reader has taken what is buffered.
        self.transport.abort()

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
