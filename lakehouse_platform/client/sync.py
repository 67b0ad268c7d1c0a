"""The synchronous client: takes the steps that `base` asks for, one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Self

import httpx
import pyarrow as pa

from lakehouse_platform.client import account_calls, audit_calls, table_calls
from lakehouse_platform.client.arrow_stream import ArrowStream
from lakehouse_platform.client.audit_calls import Moment
from lakehouse_platform.client.base import ClientBase, OnTokens, cut_off
from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.requests import Alone, Answer, Call, Outcome, Reading, Send, Steps, T, Wait
from lakehouse_platform.client.retrying import RetryPolicy
from lakehouse_platform.client.sync_accounts import AccountOperations
from lakehouse_platform.client.sync_audit import AuditOperations
from lakehouse_platform.client.sync_tables import TableOperations
from lakehouse_platform.client.wire import (
    Body,
    Timeouts,
    Verify,
    Wire,
    answer_of,
    check_rows,
    lost,
    surroundings,
)
from lakehouse_platform.model import actions


class LakehouseClient(TableOperations, AccountOperations, AuditOperations):
    """A lakehouse behind a server. Safe to share between threads; a context manager that closes it.

    Its operations are named as those of `DeltaStore`, `AuthActor` and `AuditActor`, and raise the same errors; besides
    `ServerUnavailableError` and `UnexpectedAnswerError` where the server or the way to it is the problem, and
    `CommitOutcomeUnknownError` where the answer to a change of a table was lost for good.

    Example:
        >>> client = LakehouseClient(base_url="http://localhost:8080")  # doctest: +SKIP
        >>> client.login("ada@example.com", password)
        >>> client.scan("rides", predicate="distance > 10")
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        tokens: Tokens | None = None,
        on_tokens: OnTokens | None = None,
        timeouts: Timeouts | None = None,
        retries: RetryPolicy | None = None,
        verify: Verify = True,
        user_agent: str | None = None,
        insecure_http: bool = False,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            base_url: Such as `https://lake.example.com` or `http://localhost:8080`.
            token: An access token or API key; None to be nobody until `login`.
            tokens: A sign-in kept from before, in place of `token`; it is renewed by itself.
            on_tokens: Told the new tokens after each `login` and renewal, and None after `logout`, so that they can be
                kept. What it raises, the operation raises.
            timeouts: How long to wait.
            retries: How patiently requests are repeated that may be.
            verify: How the server's certificate is checked: by the well-known authorities (True: certifi's list, or
                what SSL_CERT_FILE names), by those in a file, directory or SSL context, or not at all (False: only
                for tests).
            user_agent: What the server is told of the program.
            insecure_http: Take plain HTTP to other machines too: everybody on the way can read tokens and rows.

        Raises:
            InvalidArgumentError: An argument is not allowed.
            ConfigError: The file of certificates cannot be read.
        """
        self._wire = Wire.to(
            base_url,
            timeouts=timeouts or Timeouts(),
            verify=verify,
            user_agent=user_agent,
            insecure_http=insecure_http,
        )
        policy = retries or RetryPolicy()
        self._base = ClientBase(surroundings(), policy, token=token, tokens=tokens, on_tokens=on_tokens)
        # Of the same thread again: `on_tokens` may use the client.
        self._alone = threading.RLock()
        self._http = httpx.Client(**self._wire.settings)

    @property
    def base_url(self) -> str:
        """Where the server is."""
        return self._wire.url

    @property
    def tokens(self) -> Tokens | None:
        """The sign-in, if there is one that was made with a password."""
        return self._base.tokens

    # ── Signing in and out ────────────────────────────────────────────────────────────────────────

    def login(self, login: str, password: str) -> Tokens:
        """Sign in by user name or e-mail address; from then on the client acts as this user."""
        return self._go(self._base.sign_in(account_calls.login(login, password)))

    def refresh(self) -> Tokens:
        """Renew the sign-in now; it happens by itself when it is due."""
        return self._go(self._base.renew())

    def logout(self) -> None:
        """End this sign-in."""
        self._go(self._base.sign_out(account_calls.logout()))

    def logout_everywhere(self, user_id: str | None = None) -> int:
        """End all sign-ins of a user, or one's own with this one, and return how many there were."""
        call = account_calls.logout_everywhere(user_id)
        return self._go(self._base.sign_out(call) if user_id is None else self._base.run(call))

    # ── Rows without end ──────────────────────────────────────────────────────────────────────────

    def stream(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
    ) -> pa.RecordBatchReader:
        """Return a table's rows as a stream, read from the server as it is consumed; see `scan` for the arguments.

        Reading raises `ServerUnavailableError` or `UnexpectedAnswerError` if the stream is cut: it never just ends
        early. The connection is given back at the end, or when the last reference to the reader goes.
        """
        call = table_calls.scan(name, columns, predicate, limit, version, timestamp, reading=Reading.STREAM)
        return self._reader(call)

    def export_audit(
        self,
        *,
        action: actions.ActionType | None = None,
        user_id: str | None = None,
        outcome: actions.Outcome | None = None,
        resource: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> pa.RecordBatchReader:
        """Return all entries of the audit log that fit, as a stream that is read as it is consumed; see `search`.

        The export itself is in the log, with its rows. Reading raises as that of `stream` does.
        """
        return self._reader(audit_calls.export(action, user_id, outcome, resource, since, until))

    def _reader(self, call: Call[httpx.Response]) -> pa.RecordBatchReader:
        batches = _Batches(self._run(call))
        return pa.RecordBatchReader.from_batches(batches.schema, iter(batches))

    # ── Life ──────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close all connections; the sign-in stays, on the server and in `tokens`."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    # ── Steps ─────────────────────────────────────────────────────────────────────────────────────

    def _run(self, call: Call[T]) -> T:
        return self._go(self._base.run(call))

    def _key(self, wanted: str | None) -> str:
        return self._base.key(wanted)

    def _go(self, steps: Steps[T]) -> T:
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return done.value
            try:
                outcome = self._take(step)
            except BaseException:
                # The steps learn that they do not go on: a renewal may have been under way.
                steps.close()
                raise

    def _take(self, step: Send | Wait | Alone) -> Any:
        if isinstance(step, Send):
            return self._send(step)
        if isinstance(step, Wait):
            return time.sleep(step.seconds)
        with self._alone:
            return self._go(step.steps())

    def _send(self, step: Send) -> Outcome:
        rows = step.request.rows
        content = rows.pieces() if rows is not None else None
        try:
            request = self._wire.request(self._http, step, content)
            response = self._http.send(request, stream=True)
        except httpx.RequestError as error:
            return lost(error)
        answer = answer_of(response)
        if answer.is_good and step.request.reading is Reading.STREAM:
            return Answer(answer.status, answer.headers, response)
        try:
            body = Body(step.request, answer)
            for piece in response.iter_bytes():
                body.feed(piece)
            return body.finish()
        except httpx.RequestError as error:
            return lost(error)
        finally:
            response.close()


class _Batches:
    """The batches of one open answer."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._stream = ArrowStream()
        self._pieces = response.iter_bytes()
        self._first: list[pa.RecordBatch] = []
        try:
            check_rows(answer_of(response))
            self.schema = self._begun()
        except BaseException:
            response.close()
            raise

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        batches = self._batches()
        # Begun now, so that the answer is closed even if nobody asks for the first batch.
        next(batches)
        return batches

    def _begun(self) -> pa.Schema:
        while self._stream.schema is None:
            piece = self._piece()
            if piece is None:
                return self._stream.finish()
            self._first += self._stream.feed(piece)
        return self._stream.schema

    def _batches(self) -> Iterator[Any]:
        try:
            yield None
            yield from self._first
            self._first = []
            while (piece := self._piece()) is not None:
                yield from self._stream.feed(piece)
            self._stream.finish()
        finally:
            self._response.close()

    def _piece(self) -> bytes | None:
        try:
            return next(self._pieces, None)
        except httpx.RequestError as error:
            raise cut_off(lost(error)) from error
