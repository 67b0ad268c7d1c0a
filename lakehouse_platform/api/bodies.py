"""Rows that a request brings: received as a whole before anything is done with them, within limits.

A body is kept in memory while it is small and in a file of ours when it is not. So a slow client holds neither a thread
nor a snapshot of the table, an append is decided on rows that are all there, and errors can name the line.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fastapi import Request
from starlette.requests import ClientDisconnect

from lakehouse_platform.api.formats import sent_form
from lakehouse_platform.api.lanes import Lane
from lakehouse_platform.api.problems import Refusal, refused
from lakehouse_platform.services.sent_rows import SentForm, SentRows
from lakehouse_platform.settings import LakehouseConfig

_MB = 2**20
# What one request may hold in memory, and what goes to a thread at a time.
_IN_MEMORY = 4 * _MB
_AT_ONCE = 2**20
# zlib: 16 says that the gzip wrapper is there, and its checksum is checked.
_GZIP_BITS = 16 + zlib.MAX_WBITS
_WINDOW = 16 * 2**10
# bgzip makes one of each 64 KB; each costs some 10 µs to begin.
_MOST_MEMBERS = 100_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a body may bring.

    Attributes:
        most_bytes: Its size, as sent and unpacked.
        most_json_bytes: What of it may become Python values at once.
    """

    most_bytes: int
    most_json_bytes: int

    @classmethod
    def of(cls, config: LakehouseConfig) -> Limits:
        """Return the limits that the settings give."""
        return cls(config.api_max_body_mb * _MB, config.api_max_json_mb * _MB)


@asynccontextmanager
async def sent_rows(request: Request, limits: Limits, lane: Lane) -> AsyncGenerator[SentRows]:
    """Receive the rows of a request; they are gone when the block ends.

    Args:
        request: The request, whose body nobody has read.
        limits: How much it may bring.
        lane: Where files are written.

    Raises:
        HTTPException: The form or coding is not taken (415), there is too much of it (413), or it is damaged
            or not whole (400).
    """
    form = sent_form(_only(request, "content-type"))
    spool = _Spool(limits.most_bytes, is_gzip=_is_gzip(request))
    _check_length(request, limits)
    try:
        await _receive(request, spool, lane)
        held = await lane.run(spool.finished)
        yield SentRows(SentForm[form.name], held, spool.size, limits.most_bytes, limits.most_json_bytes)
    finally:
        await lane.run(spool.close)


async def _receive(request: Request, spool: _Spool, lane: Lane) -> None:
    held: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            held.append(part)
            size += len(part)
            if size >= _AT_ONCE:
                await lane.run(spool.take, b"".join(held))
                held, size = [], 0
    except ClientDisconnect as error:
        raise refused(Refusal.BAD_REQUEST, "The body ended before it was whole.") from error
    await lane.run(spool.take, b"".join(held))


def _check_length(request: Request, limits: Limits) -> None:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limits.most_bytes:
        raise _too_large(limits.most_bytes)


def _is_gzip(request: Request) -> bool:
    coding = (_only(request, "content-encoding") or "identity").strip().lower()
    if coding not in {"identity", "gzip", "x-gzip"}:
        raise refused(
            Refusal.UNSUPPORTED_MEDIA_TYPE, "Bodies are taken as they are or with Content-Encoding: gzip."
        )
    return coding != "identity"


def _only(request: Request, header: str) -> str | None:
    """Return a header that may stand in a request once."""
    given = request.headers.getlist(header)
    if len(given) > 1:
        raise refused(
            Refusal.BAD_REQUEST, f"The header {header.title()} stands there {len(given)} times: send one."
        )
    return given[0] if given else None


class _Spool:
    """Bytes on their way in, unpacked and counted. Used by one thread at a time."""

    def __init__(self, most_bytes: int, *, is_gzip: bool) -> None:
        self.size = 0
        self._most_bytes = most_bytes
        self._gzip = _Gunzip() if is_gzip else None
        self._parts: list[bytes] = []
        self._file: IO[bytes] | None = None

    def take(self, part: bytes) -> None:
        if self._gzip is None:
            self._keep(part)
            return
        for unpacked in self._gzip.unpacked(part):
            self._keep(unpacked)

    def finished(self) -> bytes | Path:
        """Return the bytes, or the file with them."""
        if self._gzip is not None and not self._gzip.is_whole:
            raise refused(Refusal.BAD_REQUEST, "The gzip body ends too early: send it whole.")
        if self._file is None:
            return b"".join(self._parts)
        self._file.flush()
        return Path(self._file.name)

    def close(self) -> None:
        """Remove the bytes."""
        self._parts = []
        if self._file is not None:
            self._file.close()

    def _keep(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._most_bytes:
            raise _too_large(self._most_bytes)
        if self._file is None and self.size > _IN_MEMORY:
            # Only this process's user can open it; the name is made up, and goes with it.
            self._file = tempfile.NamedTemporaryFile(prefix="lakehouse-body-")  # noqa: SIM115 - closed by `close`
            self._file.writelines(self._parts)
            self._parts = []
        if self._file is not None:
            self._file.write(part)
        elif part:
            self._parts.append(part)


class _Gunzip:
    """Unpacks gzip, at most `_AT_ONCE` bytes at a time, whatever they were packed into."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_BITS)
        self._members = 1

    @property
    def is_whole(self) -> bool:
        """Whether the bytes so far are whole members, and at least one."""
        return self._member.eof

    def unpacked(self, part: bytes) -> Iterator[bytes]:
        # zlib copies what is left of its input after each member, so it is given little at a time.
        for start in range(0, len(part), _WINDOW):
            yield from self._unpacked(part[start : start + _WINDOW])

    def _unpacked(self, window: bytes) -> Iterator[bytes]:
        has_more = False
        while window or has_more:
            if self._member.eof:
                self._begin_member()
            try:
                out = self._member.decompress(window, _AT_ONCE)
            except zlib.error as error:
                raise refused(Refusal.BAD_REQUEST, "The body is not sound gzip: pack it anew.") from error
            has_more = len(out) == _AT_ONCE and not self._member.eof
            window = self._member.unconsumed_tail or self._member.unused_data
            yield out

    def _begin_member(self) -> None:
        # RFC 1952 §2.2: members may follow each other.
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise refused(Refusal.BAD_REQUEST, "The gzip body has too many members: pack it as one.")
        self._member = zlib.decompressobj(_GZIP_BITS)


def _too_large(most: int) -> Exception:
    return refused(
        Refusal.BODY_TOO_LARGE,
        f"A body may bring {most} bytes, also when it is unpacked: send the rows in several requests.",
    )
