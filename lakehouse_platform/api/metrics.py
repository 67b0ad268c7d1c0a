"""Counts and durations for Prometheus, by route and never by what a request holds: no ids, names or tokens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Whatever else a client calls its method would be a label for ever.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SIGN_INS = "/v1/auth/login"
_TOO_MANY = 429


class Metrics:
    """The numbers of one server."""

    def __init__(self, waiting_entries: Callable[[], int]) -> None:
        """Begin with zeros.

        Args:
            waiting_entries: Returns how many audit entries wait for their table.
        """
        self._registry = CollectorRegistry()
        named: dict[str, Any] = {"registry": self._registry}
        labels = ["method", "route", "status"]
        self._requests = Counter("lakehouse_http_requests", "Requests that were answered.", labels, **named)
        self._seconds = Histogram(
            "lakehouse_http_request_seconds", "Time until the whole answer was sent.", labels[:2], **named
        )
        self._running = Gauge("lakehouse_http_running_requests", "Requests that are being served.", **named)
        self._problems = Counter("lakehouse_http_problems", "Refusals, by their code.", ["code"], **named)
        self._sign_ins = Counter("lakehouse_sign_ins", "Sign-ins, by how they ended.", ["outcome"], **named)
        self._limited = Counter(
            "lakehouse_rate_limited", "Requests over a limit, by code.", ["code"], **named
        )
        waiting = Gauge(
            "lakehouse_audit_waiting_entries",
            "Acknowledged audit entries that wait for their table.",
            **named,
        )
        waiting.set_function(waiting_entries)

    def text(self) -> bytes:
        """Return all numbers in Prometheus' text format."""
        return generate_latest(self._registry)

    def layer(self, app: ASGIApp) -> ASGIApp:
        """Return the application with every request counted."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            await self._count(app, scope, receive, send)

        return counted

    async def _count(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = time.perf_counter()
        self._running.inc()
        try:
            await app(scope, receive, noting)
        finally:
            self._running.dec()
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        # The template, such as /v1/users/{user_id}: the path itself holds ids.
        route = getattr(scope.get("route"), "path", "none")
        code = scope["state"].get("problem_code")
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if code is not None:
            self._problems.labels(code).inc()
        if route == _SIGN_INS:
            self._sign_ins.labels(code or "done").inc()
        if status == _TOO_MANY:
            self._limited.labels(code or "none").inc()
