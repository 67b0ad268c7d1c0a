"""Between our requests and httpx: what is sent, what a failure means, how a body is gathered; nothing here waits."""

from __future__ import annotations

import platform
import re
import secrets
import ssl
import time
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pyarrow as pa

from lakehouse_platform.client.address import parse_address
from lakehouse_platform.client.arrow_stream import ArrowStream
from lakehouse_platform.client.base import Surroundings
from lakehouse_platform.client.problems import foreign
from lakehouse_platform.client.requests import ARROW, Answer, Lost, Reading, Request, Send
from lakehouse_platform.errors import ConfigError, InvalidArgumentError, UnexpectedAnswerError

Verify: TypeAlias = bool | str | Path | ssl.SSLContext

_MB = 2**20
# Answers other than rows are pages of at most some thousand entries; refusals are some sentences.
_LARGEST_ANSWER, _LARGEST_REFUSAL = 64 * _MB, _MB
# RFC 9110 §10.1.5 allows more; this is what can hide nothing.
_USER_AGENT = re.compile(r"[ -~]{1,256}")
# Failures before the request has left: it can have done nothing.
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_MOST_CAUSES = 10
# Less than servers and proxies keep an idle connection (ours and most: 5 s), so that none is used as it is closed.
_KEEP_ALIVE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a client waits, in seconds.

    Attributes:
        connect: For a connection.
        answer: For the beginning of an answer, and for each further piece; the server's own limit is a little less,
            so that it is the one to tell.
    """

    connect: float = 10.0
    answer: float = 65.0

    def __post_init__(self) -> None:
        if not (self.connect > 0 and self.answer > 0):
            raise InvalidArgumentError("A timeout is more than 0 seconds.")

    def of(self, request: Request) -> httpx.Timeout:
        """Return how long to wait for one request."""
        patience = self.answer + request.patience
        return httpx.Timeout(patience, connect=self.connect)


@dataclass(frozen=True, slots=True)
class Wire:
    """How requests reach the server.

    Attributes:
        url: The base URL, without a slash at its end.
        settings: What httpx's clients are made with.
        timeouts: How long they wait.
    """

    url: str
    settings: Mapping[str, Any]
    timeouts: Timeouts

    @classmethod
    def to(
        cls,
        base_url: str,
        *,
        timeouts: Timeouts,
        verify: Verify,
        user_agent: str | None,
        insecure_http: bool,
    ) -> Wire:
        """Return the way to a server.

        Raises:
            InvalidArgumentError: The base URL or user agent cannot be one.
            ConfigError: The file of certificates cannot be read.
        """
        address = parse_address(base_url, insecure_http=insecure_http)
        try:
            httpx.URL(address.url)
        except httpx.InvalidURL:
            raise InvalidArgumentError("base_url is no address of a server: correct it.") from None
        agent = (
            user_agent
            or f"lakehouse-client/{version('lakehouse-platform')} python/{platform.python_version()}"
        )
        if _USER_AGENT.fullmatch(agent) is None:
            raise InvalidArgumentError("A user agent has 1 to 256 printable ASCII characters.")
        settings = {
            "verify": _context(verify) if address.is_encrypted else True,
            # A proxy of the environment sees what goes through it, unless it is encrypted.
            "trust_env": address.is_encrypted,
            "follow_redirects": False,
            "limits": httpx.Limits(keepalive_expiry=_KEEP_ALIVE_SECONDS),
            # Rows are packed already, and a refusal must not unpack into more than is expected.
            "headers": {"User-Agent": agent, "Accept-Encoding": "identity"},
        }
        return cls(address.url, settings, timeouts)

    def request(self, http: httpx.Client | httpx.AsyncClient, step: Send, content: Any) -> httpx.Request:
        """Return one request as httpx sends it.

        Raises:
            InvalidArgumentError: An argument cannot be sent, or the client is closed.
        """
        if http.is_closed:
            raise InvalidArgumentError("This client is closed: make another one.")
        try:
            return http.build_request(content=content, **self._arguments(step))
        except httpx.InvalidURL:
            raise InvalidArgumentError(
                "The address would be too long: send shorter conditions and lists of columns, or use sql()."
            ) from None
        except (ValueError, RecursionError) as error:
            reason = str(error).split(":")[0] if isinstance(error, UnicodeEncodeError) else error
            raise InvalidArgumentError(f"An argument cannot be sent: {reason}.") from error

    def headers(self, step: Send) -> dict[str, str]:
        """Return the headers of one request."""
        request = step.request
        headers = {"Accept": request.accept}
        if step.token is not None:
            headers["Authorization"] = f"Bearer {step.token}"
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        if request.rows is not None:
            headers["Content-Type"] = request.rows.content_type
        return headers

    def _arguments(self, step: Send) -> dict[str, Any]:
        """Return what httpx builds a request from, but for rows."""
        request = step.request
        return {
            "method": request.method,
            "url": self.url + request.path,
            "params": list(request.query) or None,
            "json": dict(request.fields) if request.fields is not None else None,
            "headers": self.headers(step),
            "timeout": self.timeouts.of(request),
        }


class Body:
    """Gathers the body of one answer; how, depends on what was asked and what kind of answer it is."""

    def __init__(self, request: Request, answer: Answer) -> None:
        """Begin.

        Raises:
            UnexpectedAnswerError: The answer is good, but does not hold rows where rows were asked for.
        """
        self._answer = answer
        self._rows = None if request.reading is Reading.WHOLE or not answer.is_good else ArrowStream()
        if self._rows is not None:
            check_rows(answer)
        self._most = _LARGEST_ANSWER if answer.is_good else _LARGEST_REFUSAL
        self._parts: list[Any] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            UnexpectedAnswerError: It is not what was asked for, or too much.
        """
        if self._rows is not None:
            self._parts += self._rows.feed(piece)
            return
        self._size += len(piece)
        if self._size > self._most:
            raise UnexpectedAnswerError(
                f"The answer (status {self._answer.status}) is larger than {self._most} bytes, and none of a "
                "lakehouse server: check base_url.",
                status=self._answer.status,
            )
        self._parts.append(piece)

    def finish(self) -> Answer:
        """Return the answer with its body.

        Raises:
            UnexpectedAnswerError: The rows were cut.
        """
        body = (
            b"".join(self._parts)
            if self._rows is None
            else pa.Table.from_batches(self._parts, self._rows.finish())
        )
        return Answer(self._answer.status, self._answer.headers, body)


def answer_of(response: httpx.Response) -> Answer:
    """Return an answer without its body."""
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()})


def check_rows(answer: Answer) -> None:
    """Check that an answer holds rows in the form that was asked for.

    Raises:
        UnexpectedAnswerError: It does not.
    """
    if answer.content_type != ARROW:
        raise foreign(answer)


def lost(error: httpx.RequestError) -> Lost:
    """Return what a failure of httpx means."""
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        text = f"no answer in time ({type(error).__name__})"
    is_lasting = any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))
    return Lost(text.rstrip("."), not isinstance(error, _NOT_SENT), is_lasting=is_lasting, cause=error)


def surroundings() -> Surroundings:
    """Return the real world."""
    return Surroundings(
        now=time.monotonic,
        today=lambda: datetime.now(UTC),
        chance=secrets.SystemRandom().random,
        new_key=lambda: uuid.uuid4().hex,
    )


def _causes(error: BaseException) -> Generator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _context(verify: Verify) -> bool | ssl.SSLContext:
    """Return how certificates are checked: by the well-known authorities, by those of a file, or not at all."""
    if isinstance(verify, bool | ssl.SSLContext):
        return verify
    path = Path(verify)
    try:
        if path.is_dir():
            return ssl.create_default_context(capath=str(path))
        return ssl.create_default_context(cafile=str(path))
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"No certificates can be read from {str(path)!r}: give a file of certificates in PEM form.",
            path=str(path),
        ) from error
