"""Rows as an answer: made in a thread, one piece ahead of the socket, and broken off if they fail or nobody reads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Iterator, Mapping
from http import HTTPStatus
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from lakehouse_platform.api.encoding import pieces
from lakehouse_platform.api.formats import RowForm
from lakehouse_platform.api.lanes import Lane
from lakehouse_platform.api.requests import request_id_of
from lakehouse_platform.errors import LakehouseError, QueryLimitError

VERSION_HEADER = "X-Lakehouse-Version"
_log = logging.getLogger("lakehouse.http")
_T = TypeVar("_T")


class Readable(Protocol):
    """Rows that can be read as a stream."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        ...

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        ...


@runtime_checkable
class Closeable(Protocol):
    """Rows that want to know when their reading ends early."""

    def close(self) -> None:
        """End the reading."""
        ...


class Pieces:
    """The bytes of an answer, piece by piece. Used by one thread at a time, but for `abandon`.

    Attributes:
        first: The first piece.
    """

    def __init__(self, rows: Readable, form: RowForm, *, most_rows: int | None = None) -> None:
        """Start reading.

        Args:
            rows: The rows.
            form: The form to write them in.
            most_rows: With more rows than these they fail; None for no limit.

        Raises:
            LakehouseError: They cannot be read, or fail before the first piece is whole.
        """
        self._most_rows = most_rows
        self._abandoned = threading.Event()
        self._rows = rows
        self._reader: pa.RecordBatchReader | None = rows.reader()
        self._pieces = pieces(self._batches(), rows.schema, form)
        try:
            self.first = next(self._pieces)
        except BaseException:
            self.close()
            raise

    def next(self) -> bytes | None:
        """Return the next piece; None after the last.

        Raises:
            LakehouseError: The rows fail.
        """
        return next(self._pieces, None)

    def abandon(self) -> None:
        """Let the reading end at the next batch; from any thread."""
        self._abandoned.set()

    def close(self) -> None:
        """Stop reading, wherever it stands; what is in the audit log as begun is written down as ended.

        Raises:
            AuditWriteFailedError: The end cannot be written.
        """
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()
        # What makes the batches is closed when the last reference to the reader goes: pyarrow's `close` does not do it.
        self._reader = None
        if isinstance(self._rows, Closeable):
            self._rows.close()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        rows = 0
        while self._reader is not None and not self._abandoned.is_set():
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return
            rows += batch.num_rows
            if self._most_rows is not None and rows > self._most_rows:
                raise QueryLimitError(
                    f"An answer may hold {self._most_rows} rows: give a limit, a condition or fewer versions.",
                    max_rows=self._most_rows,
                )
            yield batch


class RowsAnswer(Response):
    """Rows, streamed.

    The socket sets the pace: while a client does not read, at most two pieces wait for it. A client that is gone ends
    the reading. If rows fail when the answer has begun, the connection is closed without the chunk that ends the body,
    so no client takes it for whole.
    """

    def __init__(
        self, rows: Pieces, form: RowForm, lane: Lane, *, headers: Mapping[str, str] | None = None
    ) -> None:
        """Make the answer; it closes the rows, however it ends.

        Args:
            rows: What to send.
            form: Their form.
            lane: Where they are made.
            headers: Further headers.
        """
        self._rows = rows
        self._lane = lane
        super().__init__(None, HTTPStatus.OK, headers=row_headers(form, headers))
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        gone = asyncio.ensure_future(_gone(receive, self._rows))
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            await self._send_pieces(send, gone)
        except LakehouseError as error:
            _log.warning("request %s broken off while rows were sent: %s", request_id_of(scope), error.code)
            raise
        finally:
            await _surely(self._close(gone))

    async def _close(self, gone: asyncio.Future[None]) -> None:
        self._rows.abandon()
        gone.cancel()
        await asyncio.wait([gone])
        await self._lane.run(self._rows.close)

    async def _send_pieces(self, send: Send, gone: asyncio.Future[None]) -> None:
        piece: bytes | None = self._rows.first
        self._rows.first = b""
        while piece is not None and not gone.done():
            # Made while the socket takes the piece before it.
            ahead = asyncio.ensure_future(self._lane.run(self._rows.next))
            try:
                if piece:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except BaseException:
                self._rows.abandon()
                await _surely(ahead)
                raise
            piece = await _surely(ahead)
        if not gone.done():
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class HeadOfRows(Response):
    """What `RowsAnswer` would say of rows, without any: for HEAD."""

    def __init__(self, form: RowForm, *, headers: Mapping[str, str] | None = None) -> None:
        """Make the answer; see `RowsAnswer`."""
        super().__init__(None, HTTPStatus.OK, headers=row_headers(form, headers))
        del self.headers["content-length"]


def row_headers(form: RowForm, headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of rows; caches and proxies are told that the form is the client's choice."""
    return {"content-type": form.content_type, "vary": "accept", **(headers or {})}


async def _surely(work: Awaitable[_T]) -> _T:
    """Wait until work is done, even if this request is cancelled meanwhile: rows are not closed while they are read."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


async def _gone(receive: Receive, rows: Pieces) -> None:
    """Wait until the client is gone, and let the reading end."""
    while (await receive())["type"] != "http.disconnect":
        pass
    rows.abandon()
