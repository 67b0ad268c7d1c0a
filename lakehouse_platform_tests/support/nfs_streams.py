"""A raw NFS client that keeps several READs and WRITEs under way, as kernels do, and copies nothing it need not."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakehouse_platform.nfs.operations import Stable, Status
from lakehouse_platform_tests.support.nfs_client import NFS, NfsClient, NfsStatusError, call_message
from lakehouse_platform_tests.support.nfs_xdr import Reader, opaque, u32, u64

BLOCK = 1 << 20
"""Bytes of one READ or WRITE: the server's most, and Linux's with rsize=1048576."""
_AHEAD = 16  # what Linux reads ahead of a sequential reader is 15 MiB with that rsize
_LAST_FRAGMENT = 1 << 31
_READ, _WRITE = 6, 7


@dataclass(frozen=True, slots=True)
class _Asked:
    """A READ under way: which block it is, and how many bytes it must bring."""

    number: int
    size: int


class StreamingClient(NfsClient):
    """An `NfsClient` that also streams whole files. Streams must be used up before the next call."""

    def __init__(self, port: int, machine: bytes = b"test", *, timeout: float = 600) -> None:
        super().__init__(port, machine, timeout=timeout)

    # ── Reading ───────────────────────────────────────────────────────────────────────────────────

    def blocks(self, handle: bytes, size: int) -> Iterator[memoryview]:
        """Yield the first `size` bytes of a file in order; each piece is good until the next is asked for."""
        spare = [memoryview(bytearray(BLOCK + 256)) for _ in range(_AHEAD + 1)]
        asked: dict[int, _Asked] = {}
        came: dict[int, tuple[memoryview, memoryview]] = {}
        total = -(-size // BLOCK)
        following = 0
        for number in range(total):
            while following < total and following < number + _AHEAD:
                self._ask(handle, following, min(BLOCK, size - following * BLOCK), asked)
                following += 1
            while number not in came:
                buffer = spare.pop()
                got, data = self._receive_block(buffer, asked)
                came[got] = buffer, data
            buffer, data = came.pop(number)
            yield data
            spare.append(buffer)

    def _ask(self, handle: bytes, number: int, size: int, asked: dict[int, _Asked]) -> None:
        arguments = opaque(handle) + u64(number * BLOCK) + u32(size)
        asked[self.send(NFS, _READ, arguments)] = _Asked(number, size)

    def _receive_block(self, buffer: memoryview, asked: dict[int, _Asked]) -> tuple[int, memoryview]:
        record = self._receive_into(buffer)
        reply = Reader(record)
        wanted = asked.pop(reply.u32())
        _check_accepted(reply)
        reply.post_op()
        count, _eof, length = reply.u32(), reply.flag(), reply.u32()
        if not count == length == wanted.size:
            raise AssertionError(f"{wanted.size} bytes asked for, {count} answered, {length} sent")
        return wanted.number, record[reply.position : reply.position + length]

    def _receive_into(self, buffer: memoryview) -> memoryview:
        self._fill(buffer[:4])
        (mark,) = struct.unpack(">I", buffer[:4])
        if not mark & _LAST_FRAGMENT:
            raise AssertionError("a reply in several fragments")
        record = buffer[: mark & (_LAST_FRAGMENT - 1)]
        self._fill(record)
        return record

    def _fill(self, buffer: memoryview) -> None:
        done = 0
        while done < len(buffer):
            got = self._socket.recv_into(buffer[done:], 0, socket.MSG_WAITALL)
            if not got:
                raise ConnectionError("the server closed the connection")
            done += got

    # ── Writing ───────────────────────────────────────────────────────────────────────────────────

    def write_blocks(self, handle: bytes, pieces: Iterable[bytes | memoryview], offset: int = 0) -> int:
        """Write pieces one behind the other, unstable, then COMMIT; return the offset behind the last."""
        under_way: dict[int, int] = {}
        for piece in _cut(pieces):
            if len(under_way) >= _AHEAD:
                self._receive_written(under_way)
            under_way[self._send_write(handle, offset, piece)] = len(piece)
            offset += len(piece)
        while under_way:
            self._receive_written(under_way)
        self.commit(handle)
        return offset

    def _send_write(self, handle: bytes, offset: int, piece: bytes | memoryview) -> int:
        head = opaque(handle) + u64(offset) + u32(len(piece), Stable.UNSTABLE, len(piece))
        xid = self.next_xid()
        call = call_message(xid, NFS, _WRITE, head, self.credential)
        padding = bytes(-len(piece) % 4)
        size = len(call) + len(piece) + len(padding)
        self.send_raw(u32(_LAST_FRAGMENT | size) + call)
        self._socket.sendall(piece)
        self.send_raw(padding)
        return xid

    def _receive_written(self, under_way: dict[int, int]) -> None:
        reply = Reader(self.receive_record())
        size = under_way.pop(reply.u32())
        _check_accepted(reply)
        reply.wcc()
        count = reply.u32()
        if count != size:
            raise AssertionError(f"{count} of {size} bytes were written")


def _cut(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        for start in range(0, len(piece), BLOCK):
            yield piece[start : start + BLOCK]


def _check_accepted(reply: Reader) -> None:
    """Step over what stands between the transaction id and the results; raise what the server refused."""
    if (reply.u32(), reply.u32(), reply.u32()) != (1, 0, 0):
        raise AssertionError("not an accepted reply")
    reply.opaque()
    if reply.u32():
        raise AssertionError("the server could not read the call")
    status = Status(reply.u32())
    if status:
        raise NfsStatusError(status)
