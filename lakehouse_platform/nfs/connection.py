"""One client's TCP connection: records in, replies out, and as much waiting as keeps memory bounded."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from lakehouse_platform.nfs.engine import MAX_RECORD, Engine, Peer
from lakehouse_platform.nfs.operations import Buffer
from lakehouse_platform.nfs.wire.records import RecordAssembler
from lakehouse_platform.nfs.wire.rpc import Reply

_logger = logging.getLogger(__name__)

_RECEIVE_BYTES: Final = 256 << 10
_MAX_RUNNING: Final = 128  # more than the 64 READs and WRITEs that Linux keeps under way over one connection
_MAX_RUNNING_BYTES: Final = 32 << 20
_UNSENT_HIGH_BYTES: Final = 8 << 20
_UNSENT_LOW_BYTES: Final = 2 << 20
_FLUSH_BYTES: Final = 1 << 20
_CALLS_AT_A_TIME: Final = 64  # then it is another connection's turn
# Enough to be refused in: other local users may open many connections and leave each with a record half sent.
_MAX_UNTRUSTED_RECORD: Final = 8 << 10
_IOV_MAX: Final = 1024  # buffers of one writev on Linux and macOS
_NOBODY: Final = Peer("", trusted=False)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the connections of one server have in common.

    Attributes:
        engine: Answers the records.
        admit: Says who is at the other end of a connection; None turns it away.
        opened: Told of each connection that was admitted.
        closed: Told of each that is gone.
        buffer: Where bytes are received: they are taken out before another connection gets its turn.
    """

    engine: Engine
    admit: Callable[[asyncio.Transport], Peer | None]
    opened: Callable[[Connection], None]
    closed: Callable[[Connection], None]
    buffer: memoryview


def receive_buffer() -> memoryview:
    """Return a buffer for all connections of a server."""
    return memoryview(bytearray(_RECEIVE_BYTES))


class Connection(asyncio.BufferedProtocol):
    """Answers the records of one connection, in any order, until either side closes it."""

    __slots__ = (
        "_assembler", "_backlog", "_ended", "_idle", "_is_closing", "_is_pumping", "_is_reading", "_is_sendable",
        "_peer", "_running", "_running_bytes", "_shared", "_transport", "_unsent", "_unsent_bytes",
    )  # fmt: skip

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._assembler = RecordAssembler(MAX_RECORD)
        self._backlog: deque[bytes | bytearray] = deque()
        self._unsent: list[Buffer] = []
        self._unsent_bytes = 0
        self._running = 0
        self._running_bytes = 0
        self._is_reading = True
        self._is_sendable = True
        self._is_pumping = False
        self._is_closing = False
        self._idle: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._peer = _NOBODY
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or turn it away."""
        admitted = cast("asyncio.Transport", transport)  # what TCP has; asyncio has set TCP_NODELAY on it
        peer = self._admit(admitted)
        if peer is None:
            admitted.abort()
            return
        admitted.set_write_buffer_limits(_UNSENT_HIGH_BYTES, _UNSENT_LOW_BYTES)
        # Connections whose clients have vanished end when the system notices.
        admitted.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._peer = peer
        if not peer.trusted:
            self._assembler = RecordAssembler(_MAX_UNTRUSTED_RECORD)
        self._transport = admitted
        self._shared.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop what was not answered; operations that run go on, for a client that comes back to ask again."""
        self._is_closing = True
        self._transport = None
        self._backlog.clear()
        self._unsent.clear()
        _resolve(self._idle)
        _resolve(self._ended)
        self._shared.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to receive."""
        return self._shared.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was received out of the buffer, and answer it."""
        if self._transport is None:
            return
        try:
            self._backlog.extend(self._assembler.feed(self._shared.buffer[:nbytes]))
        except ValueError as error:
            self._give_up(str(error))
            return
        if not self._is_pumping:
            self._pump()

    def pause_writing(self) -> None:
        """Answer nothing more while the client does not take what it asked for."""
        self._is_sendable = False

    def resume_writing(self) -> None:
        """Go on answering."""
        self._is_sendable = True
        if not self._is_pumping:
            self._pump()

    async def drain(self) -> None:
        """Take no more calls, wait until those under way are answered, and close when the client has taken all."""
        loop = asyncio.get_running_loop()
        self._is_closing = True
        self._backlog.clear()
        self._set_reading(False)
        if self._running and self._transport:
            self._idle = loop.create_future()
            await self._idle
        if self._transport:
            self._ended = loop.create_future()
            self._transport.close()
            await self._ended

    def abort(self) -> None:
        """Close at once, whatever was not sent."""
        if self._transport:
            self._transport.abort()

    def _admit(self, transport: asyncio.Transport) -> Peer | None:
        try:
            return self._shared.admit(transport)
        except Exception:
            _logger.exception("turned a connection away")
            return None

    def _give_up(self, why: str) -> None:
        _logger.warning("closing the connection of %s: %s", self._peer.address, why)
        self._is_closing = True
        self.abort()

    def _may_answer(self) -> bool:
        return (
            self._is_sendable
            and not self._is_closing
            and self._running < _MAX_RUNNING
            and self._running_bytes < _MAX_RUNNING_BYTES
        )

    def _pump(self) -> None:
        """Answer waiting records, a few at a time."""
        self._is_pumping = False
        for _ in range(_CALLS_AT_A_TIME):
            if not self._backlog or not self._may_answer():
                break
            self._answer(self._backlog.popleft())
            if self._unsent_bytes >= _FLUSH_BYTES:
                self._flush()
        self._flush()
        if self._backlog and self._may_answer():
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump)
        self._set_reading(not self._backlog and self._may_answer())

    def _answer(self, record: bytes | bytearray) -> None:
        reply = self._shared.engine.handle(record, self._peer)
        if reply is None:
            self._give_up("what it sends is no call")
        elif isinstance(reply, asyncio.Future):
            self._await(reply, len(record))
        else:
            self._queue(reply)

    def _await(self, future: asyncio.Future[Reply], size: int) -> None:
        self._running += 1
        self._running_bytes += size
        future.add_done_callback(lambda done: self._finished(done, size))

    def _finished(self, done: asyncio.Future[Reply], size: int) -> None:
        self._running -= 1
        self._running_bytes -= size
        if not done.cancelled() and self._transport:
            self._queue(done.result())
            self._flush()
        if not self._running:
            _resolve(self._idle)
        if not self._is_pumping and not self._is_closing:
            self._pump()

    def _set_reading(self, wanted: bool) -> None:
        if self._transport is None or wanted == self._is_reading or self._transport.is_closing():
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _queue(self, reply: Reply) -> None:
        self._unsent.extend(reply)
        self._unsent_bytes += sum(map(len, reply))

    def _flush(self) -> None:
        """Send what is queued: straight to the socket, which copies nothing, and the rest through asyncio."""
        buffers, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if self._transport is None or not buffers:
            return
        if self._transport.get_write_buffer_size() == 0:
            buffers = self._send_now(self._transport, buffers)
        for buffer in buffers:
            self._transport.write(buffer)

    @staticmethod
    def _send_now(transport: asyncio.Transport, buffers: list[Buffer]) -> list[Buffer]:
        """Send as much as the socket takes and return the rest.

        Transport.writelines of Python 3.11 joins its buffers, which costs a copy of everything.
        """
        descriptor = transport.get_extra_info("socket").fileno()
        while buffers:
            try:
                sent = os.writev(descriptor, buffers[:_IOV_MAX])
            except OSError:  # full or broken: asyncio waits or ends the connection
                return buffers
            buffers = _after(buffers, sent)
        return buffers


def _resolve(waiter: asyncio.Future[None] | None) -> None:
    if waiter and not waiter.done():
        waiter.set_result(None)


def _after(buffers: Sequence[Buffer], sent: int) -> list[Buffer]:
    """Return what is left of buffers when so many bytes of them are gone."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
