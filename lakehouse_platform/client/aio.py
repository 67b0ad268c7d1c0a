"""The asynchronous client: takes the steps that `base` asks for, waiting on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import Any, Self

import httpx
import pyarrow as pa

from lakehouse_platform.client import account_calls, audit_calls, table_calls
from lakehouse_platform.client.aio_accounts import AsyncAccountOperations
from lakehouse_platform.client.aio_audit import AsyncAuditOperations
from lakehouse_platform.client.aio_tables import AsyncTableOperations
from lakehouse_platform.client.arrow_stream import ArrowStream
from lakehouse_platform.client.audit_calls import Moment
from lakehouse_platform.client.base import ClientBase, OnTokens, cut_off
from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.requests import Alone, Answer, Call, Outcome, Reading, Send, Steps, T, Wait
from lakehouse_platform.client.retrying import RetryPolicy
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


class AsyncLakehouseClient(AsyncTableOperations, AsyncAccountOperations, AsyncAuditOperations):
    """A lakehouse behind a server, for one event loop; an asynchronous context manager that closes it.

    Its operations are those of `LakehouseClient`, to be awaited; many may be under way at once.

    Example:
        >>> async with AsyncLakehouseClient(base_url="http://localhost:8080") as client:  # doctest: +SKIP
        ...     await client.login("ada@example.com", password)
        ...     await client.scan("rides", predicate="distance > 10")
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
        """Make a client; nothing is sent yet. See `LakehouseClient` for the arguments and errors."""
        self._wire = Wire.to(
            base_url,
            timeouts=timeouts or Timeouts(),
            verify=verify,
            user_agent=user_agent,
            insecure_http=insecure_http,
        )
        policy = retries or RetryPolicy()
        self._base = ClientBase(surroundings(), policy, token=token, tokens=tokens, on_tokens=on_tokens)
        self._alone = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._http = httpx.AsyncClient(**self._wire.settings)

    @property
    def base_url(self) -> str:
        """Where the server is."""
        return self._wire.url

    @property
    def tokens(self) -> Tokens | None:
        """The sign-in, if there is one that was made with a password."""
        return self._base.tokens

    # ── Signing in and out ────────────────────────────────────────────────────────────────────────

    async def login(self, login: str, password: str) -> Tokens:
        """Sign in by user name or e-mail address; from then on the client acts as this user."""
        return await self._go(self._base.sign_in(account_calls.login(login, password)))

    async def refresh(self) -> Tokens:
        """Renew the sign-in now; it happens by itself when it is due."""
        return await self._go(self._base.renew())

    async def logout(self) -> None:
        """End this sign-in."""
        await self._go(self._base.sign_out(account_calls.logout()))

    async def logout_everywhere(self, user_id: str | None = None) -> int:
        """End all sign-ins of a user, or one's own with this one, and return how many there were."""
        call = account_calls.logout_everywhere(user_id)
        return await self._go(self._base.sign_out(call) if user_id is None else self._base.run(call))

    # ── Rows without end ──────────────────────────────────────────────────────────────────────────

    async def stream(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
    ) -> AsyncBatches:
        """Return a table's rows as a stream, read from the server as it is consumed; see `scan` for the arguments.

        Reading raises `ServerUnavailableError` or `UnexpectedAnswerError` if the stream is cut: it never just ends
        early.
        """
        call = table_calls.scan(name, columns, predicate, limit, version, timestamp, reading=Reading.STREAM)
        return await AsyncBatches.begin(await self._run(call))

    async def export_audit(
        self,
        *,
        action: actions.ActionType | None = None,
        user_id: str | None = None,
        outcome: actions.Outcome | None = None,
        resource: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> AsyncBatches:
        """Return all entries of the audit log that fit, as a stream that is read as it is consumed; see `search`.

        The export itself is in the log, with its rows. Reading raises as that of `stream` does.
        """
        call = audit_calls.export(action, user_id, outcome, resource, since, until)
        return await AsyncBatches.begin(await self._run(call))

    # ── Life ──────────────────────────────────────────────────────────────────────────────────────

    async def close(self) -> None:
        """Close all connections; the sign-in stays, on the server and in `tokens`."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    # ── Steps ─────────────────────────────────────────────────────────────────────────────────────

    async def _run(self, call: Call[T]) -> T:
        return await self._go(self._base.run(call))

    def _key(self, wanted: str | None) -> str:
        return self._base.key(wanted)

    async def _go(self, steps: Steps[T]) -> T:
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return done.value
            try:
                outcome = await self._take(step)
            except BaseException:
                # The steps learn that they do not go on: a renewal may have been under way.
                steps.close()
                raise

    async def _take(self, step: Send | Wait | Alone) -> Any:
        if isinstance(step, Send):
            return await self._send(step)
        if isinstance(step, Wait):
            return await asyncio.sleep(step.seconds)
        # Goes on if its caller is cancelled: a renewal that is given up half-way costs everybody the sign-in.
        task = asyncio.create_task(self._go_alone(step))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _go_alone(self, step: Alone) -> Any:
        async with self._alone:
            return await self._go(step.steps())

    async def _send(self, step: Send) -> Outcome:
        rows = step.request.rows
        content = _in_threads(rows.pieces()) if rows is not None else None
        try:
            request = self._wire.request(self._http, step, content)
            response = await self._http.send(request, stream=True)
        except httpx.RequestError as error:
            return lost(error)
        answer = answer_of(response)
        if answer.is_good and step.request.reading is Reading.STREAM:
            return Answer(answer.status, answer.headers, response)
        try:
            body = Body(step.request, answer)
            async for piece in response.aiter_bytes():
                body.feed(piece)
            return body.finish()
        except httpx.RequestError as error:
            return lost(error)
        finally:
            await response.aclose()


class AsyncBatches:
    """Record batches as they come: `async for batch in …`. An asynchronous context manager that gives them up.

    Attributes:
        schema: The columns.
    """

    def __init__(self, response: httpx.Response) -> None:
        """Take an open answer; see `begin`."""
        self._response = response
        self._stream = ArrowStream()
        self._pieces = response.aiter_bytes()
        self._first: list[pa.RecordBatch] = []
        self.schema = pa.schema([])

    @classmethod
    async def begin(cls, response: httpx.Response) -> AsyncBatches:
        """Return the batches of an open answer, once the columns are known.

        Raises:
            UnexpectedAnswerError: The answer holds no rows.
        """
        batches = cls(response)
        try:
            check_rows(answer_of(response))
            batches.schema = await batches._begun()
        except BaseException:
            await response.aclose()
            raise
        return batches

    async def close(self) -> None:
        """Give up what is not read yet."""
        await self._response.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self._batches()

    async def _begun(self) -> pa.Schema:
        while self._stream.schema is None:
            piece = await self._piece()
            if piece is None:
                return self._stream.finish()
            self._first += self._stream.feed(piece)
        return self._stream.schema

    async def _batches(self) -> AsyncGenerator[pa.RecordBatch]:
        try:
            while self._first:
                yield self._first.pop(0)
            while (piece := await self._piece()) is not None:
                for batch in self._stream.feed(piece):
                    yield batch
            self._stream.finish()
        finally:
            await self._response.aclose()

    async def _piece(self) -> bytes | None:
        try:
            return await anext(self._pieces, None)
        except httpx.RequestError as error:
            raise cut_off(lost(error)) from error


async def _in_threads(pieces: Iterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield pieces that are made in threads: a reader that they come from may wait for a disk."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece
