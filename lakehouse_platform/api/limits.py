"""Limits of every request: how large its body may be, how slowly it may arrive, how long its answer may take to begin.

Bytes are counted as they arrive, whatever the headers say of them. A request that is over a limit is answered, and its
connection is closed, because the rest of its body would be read as the next request or for nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakehouse_platform.api.problems import Problem, Refusal, problem, refused
from lakehouse_platform.api.requests import request_id_of
from lakehouse_platform.settings import LakehouseConfig

# A request has one line and some headers: browsers send 2 KiB, tokens take 4 KiB at most.
MOST_HEADER_BYTES = 32 * 1024
HEADERS_REFUSED = "The headers are too large: send less than 32 KB of them."
_MB = 2**20
# All that is no rows: the largest is a query, and 256 KB are parsed in a few milliseconds.
_SMALL_BODY = 256 * 1024
# Below this a body counts as one that is meant to hold a connection (Apache's mod_reqtimeout asks for 500 bytes/s).
_SLOWEST_BYTES_PER_SECOND = 16 * 1024
# A client that still sends reads no answer: so much, for so long, is taken from it after the answer was sent.
_LINGER_BYTES = 4 * _MB
_LINGER_S = 2.0
_log = logging.getLogger("lakehouse.http")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How much a request may take.

    Attributes:
        rows_bytes: Size of a body that brings rows.
        small_bytes: Size of every other one.
        answer_s: Seconds until the answer begins, after the whole body is there.
        slowest: Bytes a second with which a body extends its time.
    """

    rows_bytes: int
    small_bytes: int
    answer_s: float
    slowest: int = _SLOWEST_BYTES_PER_SECOND

    @classmethod
    def of(cls, config: LakehouseConfig) -> RequestLimits:
        """Return the limits that the settings say."""
        return cls(config.api_max_body_mb * _MB, _SMALL_BODY, config.api_request_timeout_seconds)

    def body_of(self, scope: Scope) -> int:
        """Return how large the body of a request may be."""
        path = scope["path"]
        brings_rows = path.startswith("/v1/tables/") and path.rpartition("/")[2] in {"rows", "merge"}
        return self.rows_bytes if brings_rows else self.small_bytes


class Limited:
    """The layer that holds the limits."""

    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within its limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await _Request(self._app, self._limits, scope, receive, send).serve()


class _Request:
    """One request on its way."""

    def __init__(
        self, app: ASGIApp, limits: RequestLimits, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._app, self._scope, self._receive, self._send = app, scope, receive, send
        self._limits = limits
        self._most = limits.body_of(scope)
        self._headers = Headers(scope=scope)
        self._received = 0
        self._is_whole = not self._announces_body()
        self._is_begun = False
        self._is_answered = False
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    async def serve(self) -> None:
        """Let the application answer; if its time is over, answer in its place."""
        if self._header_size() > MOST_HEADER_BYTES:
            # The parser holds the limit only for headers that arrive in several pieces.
            await self._answer(problem(Refusal.HEADERS_TOO_LARGE, HEADERS_REFUSED))
            return
        length = self._headers.get("content-length", "")
        if length and "transfer-encoding" in self._headers:
            # Somebody in between may have gone by the other one and taken what follows for part of this body
            # (RFC 9112 §6.1: such a connection is closed at least).
            await self._answer(
                problem(Refusal.BAD_REQUEST, "The body has two lengths: send one of the headers.")
            )
            return
        # h11 lets nothing but digits through.
        if length.isdigit() and int(length) > self._most:
            await self._answer(self._too_large())
            return
        serving = asyncio.ensure_future(self._app(self._scope, self.receive, self.send))
        try:
            async with self._timeout:
                self._extend()
                await asyncio.shield(serving)
        except TimeoutError:
            if not self._timeout.expired():
                raise
            await self._give_up(serving)
        except asyncio.CancelledError:
            serving.cancel()
            await asyncio.wait([serving])
            raise

    async def receive(self) -> Message:
        """Return the next part of the body."""
        if self._is_answered:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] != "http.request":
            return message
        self._note(message)
        if self._received > self._most:
            raise refused(*self._size_refusal())
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer, unless the request was answered in the application's place."""
        if self._is_answered:
            return
        if message["type"] == "http.response.start":
            self._is_begun = True
            self._timeout.reschedule(None)
        await self._send_out(message)

    def _header_size(self) -> int:
        scope = self._scope
        line = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
        return line + sum(len(name) + len(value) for name, value in scope["headers"])

    def _announces_body(self) -> bool:
        return "transfer-encoding" in self._headers or self._headers.get("content-length", "0") != "0"

    def _note(self, message: Message) -> None:
        self._received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if not self._is_begun:
            self._extend()

    def _extend(self) -> None:
        if self._is_whole:
            self._timeout.reschedule(self._loop.time() + self._limits.answer_s)
            return
        earned = self._received / self._limits.slowest
        self._timeout.reschedule(self._began + self._limits.answer_s + earned)

    async def _give_up(self, serving: asyncio.Future[None]) -> None:
        """Answer that the time is over; a thread that works for the request cannot be stopped and is waited for."""
        self._is_answered = True
        await self._answer(self._too_late())
        serving.cancel()
        await asyncio.wait([serving])
        if not serving.cancelled() and (error := serving.exception()) is not None:
            _log.warning("request %s failed after its time: %r", request_id_of(self._scope), error)

    async def _answer(self, told: Problem) -> None:
        scope = self._scope
        scope["state"]["problem_code"] = told.code
        await told.response(request_id_of(scope))(scope, self._receive, self._send_out)

    async def _send_out(self, message: Message) -> None:
        is_broken_off = not self._is_whole
        if message["type"] == "http.response.start" and is_broken_off:
            MutableHeaders(scope=message)["connection"] = "close"
        is_end = message["type"] == "http.response.body" and not message.get("more_body", False)
        if not is_end or not is_broken_off:
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        await self._linger()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _linger(self) -> None:
        """Take some more of the body: a connection closed before that takes the answer with it (RFC 9112 §9.6)."""
        taken = 0
        try:
            async with asyncio.timeout(_LINGER_S):
                while taken < _LINGER_BYTES and not self._is_whole:
                    message = await self._receive()
                    if message["type"] != "http.request":
                        return
                    taken += len(message.get("body", b""))
                    self._is_whole = not message.get("more_body", False)
        except TimeoutError:
            return

    def _size_refusal(self) -> tuple[Refusal, str]:
        return (
            Refusal.BODY_TOO_LARGE,
            f"The body has more than {self._most} bytes, which is the most here: send less.",
        )

    def _too_large(self) -> Problem:
        return problem(*self._size_refusal())

    def _too_late(self) -> Problem:
        seconds = f"{self._limits.answer_s:g} s"
        if not self._is_whole:
            return problem(
                Refusal.REQUEST_TIMEOUT,
                f"The body arrived too slowly: after {seconds} it must come with at least {self._limits.slowest} "
                "bytes a second.",
            )
        return problem(
            Refusal.ANSWER_TIMEOUT,
            f"The answer took longer than {seconds}. What was asked for may still be done: look before you repeat it, "
            "or repeat it with the same Idempotency-Key.",
        )
