"""What every request gets: an id, headers that keep browsers careful, a line in the log, and an answer if all fails."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakehouse_platform.api.problems import Refusal, problem

REQUEST_ID = "x-request-id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("lakehouse.http")
# Not failures: the process is to end.
_ENDINGS = (GeneratorExit, KeyboardInterrupt, SystemExit)

# No answer of an API is a page: nothing is guessed, framed, run or remembered (OWASP REST Security Cheat Sheet).
_SECURITY: Sequence[tuple[str, str]] = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
# RFC 6797: two years, as browsers' preload lists ask for at least one.
_TLS_ONLY = ("strict-transport-security", "max-age=63072000")


def request_id_of(scope: Scope) -> str:
    """Return the id of a request that went through `Requests`."""
    return str(scope["state"]["request_id"])


class Requests:
    """Outermost layer: ids, security headers, the log, and a problem for what nobody foresaw."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(scope, send)
        try:
            await self._app(scope, receive, request.send)
        except asyncio.CancelledError:
            # The server stops, and the time for that is over. The connection is closed in the middle of the answer.
            _log.warning("request %s broken off: the server stops", request.id)
        except BaseException as error:
            # The engines' panics are no `Exception`s (pyo3), and no reason for an answer of another shape.
            if isinstance(error, _ENDINGS):
                raise
            _log.exception(
                "request %s failed: %s %r", request.id, scope["method"], scope["path"], exc_info=error
            )
            # An answer that has begun is broken off: it must not look whole.
            if request.status is not None:
                raise
            await _internal(request.id)(scope, receive, request.send)
        finally:
            request.log()


class _Request:
    """One request on its way."""

    def __init__(self, scope: Scope, send: Send) -> None:
        given = Headers(scope=scope).get(REQUEST_ID, "")
        self.id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        self.status: int | None = None
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()
        scope.setdefault("state", {})["request_id"] = self.id

    async def send(self, message: Message) -> None:
        """Send a part of the answer; its headers are completed."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID] = self.id
            for name, value in _SECURITY:
                headers.setdefault(name, value)
            if self._scope["scheme"] == "https":
                headers.setdefault(*_TLS_ONLY)
        await self._send(message)

    def log(self) -> None:
        """Write a line: no query, for it may hold values of rows; no header, for they hold tokens."""
        milliseconds = (time.perf_counter() - self._began) * 1000
        _log.info(
            "%s %s %r %s %.1f ms",
            self.id, self._scope["method"], self._scope["path"], self.status, milliseconds,
        )  # fmt: skip


def _internal(request_id: str) -> ASGIApp:
    return problem(
        Refusal.INTERNAL_ERROR,
        f"The server failed, which is a bug: report it with the request id {request_id}, which its log knows too.",
    ).response(request_id)
