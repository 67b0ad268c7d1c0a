"""A raw NFSv3 client: one TCP connection, one call after the other, no caching."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self, TypeAlias

from lakehouse_platform.nfs.operations import (
    Access,
    Attributes,
    CreateMode,
    Entry,
    Found,
    Made,
    SetAttributes,
    Stable,
    Status,
)
from lakehouse_platform_tests.support.nfs_xdr import Reader, opaque, sattr, u32, u64

Name: TypeAlias = bytes | str
NFS, MOUNT, PORTMAP = 100003, 100005, 100000
VERSIONS = {NFS: 3, MOUNT: 3, PORTMAP: 2}
_MORE = 1 << 31


class NfsStatusError(Exception):
    """The server refused an operation."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.name)
        self.status = status


class RpcRefusedError(Exception):
    """The server refused a call before it became an operation.

    Attributes:
        why: `(reply_stat, reject or accept status, further numbers…)` as they stand in the reply.
    """

    def __init__(self, *why: int) -> None:
        super().__init__(str(why))
        self.why = why


@dataclass(frozen=True, slots=True)
class ReadReply:
    """What READ answered."""

    data: bytes
    eof: bool
    attributes: Attributes | None


@dataclass(frozen=True, slots=True)
class WriteReply:
    """What WRITE answered."""

    count: int
    committed: Stable
    verifier: bytes
    attributes: Attributes | None


@dataclass(frozen=True, slots=True)
class FsStat:
    """What FSSTAT answered."""

    total_bytes: int
    free_bytes: int
    available_bytes: int
    total_files: int
    free_files: int
    available_files: int


@dataclass(frozen=True, slots=True)
class FsInfo:
    """What FSINFO answered."""

    rtmax: int
    rtpref: int
    rtmult: int
    wtmax: int
    wtpref: int
    wtmult: int
    dtpref: int
    max_file_size: int
    time_delta_ns: int
    properties: int


@dataclass(frozen=True, slots=True)
class PathConf:
    """What PATHCONF answered."""

    max_links: int
    max_name: int
    no_trunc: bool
    chown_restricted: bool
    case_insensitive: bool
    case_preserving: bool


@dataclass(frozen=True, slots=True)
class Page:
    """One READDIR or READDIRPLUS reply."""

    entries: list[Entry]
    verifier: bytes
    eof: bool


PageReader: TypeAlias = Callable[[int, bytes], Page]


def auth_sys(machine: bytes = b"test", uid: int = 0, gids: tuple[int, ...] = ()) -> bytes:
    """Pack an AUTH_SYS credential and an empty verifier."""
    body = u32(0) + opaque(machine) + u32(uid, 0, len(gids), *gids)
    return u32(1) + opaque(body) + u32(0, 0)


def call_message(xid: int, program: int, procedure: int, arguments: bytes, credential: bytes) -> bytes:
    """Pack one RPC call, without its record mark."""
    return u32(xid, 0, 2, program, VERSIONS.get(program, 1), procedure) + credential + arguments


def marked(record: bytes) -> bytes:
    """Put the record mark of a single fragment before a record."""
    return u32(_MORE | len(record)) + record


def _name(name: Name) -> bytes:
    return opaque(name.encode() if isinstance(name, str) else name)


class NfsClient:
    """Speaks NFSv3, MOUNT v3 and portmap to a server on this machine."""

    def __init__(
        self,
        port: int,
        machine: bytes = b"test",
        uid: int = 0,
        *,
        host: str = "127.0.0.1",
        timeout: float = 30,
    ) -> None:
        self.credential = auth_sys(machine, uid)
        self.root = b""
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb", buffering=1 << 16)
        self._xid = random.getrandbits(32)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._socket.close()

    # The wire.

    def next_xid(self) -> int:
        """Return a transaction id that this client has not used."""
        self._xid = (self._xid + 1) & 0xFFFFFFFF
        return self._xid

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def receive_record(self) -> bytes:
        """Return the next reply's record; `b""` when the server has closed the connection."""
        record = b""
        while True:
            mark = self._stream.read(4)
            if len(mark) < 4:
                return b""
            (word,) = struct.unpack(">I", mark)
            record += self._stream.read(word & (_MORE - 1))
            if word & _MORE:
                return record

    def send(self, program: int, procedure: int, arguments: bytes, *, xid: int | None = None) -> int:
        """Send a call without waiting and return its transaction id."""
        xid = self.next_xid() if xid is None else xid
        self.send_raw(marked(call_message(xid, program, procedure, arguments, self.credential)))
        return xid

    def receive(self, xid: int | None = None) -> Reader:
        """Return the next reply's results, which must be of call `xid` if that is given."""
        record = self.receive_record()
        if not record:
            raise ConnectionError("the server closed the connection")
        reply = Reader(record)
        got = reply.u32()
        if (xid is not None and got != xid) or reply.u32() != 1:
            raise AssertionError("not the reply to this call")
        return _accepted(reply)

    def call(self, program: int, procedure: int, arguments: bytes = b"") -> Reader:
        """Make one call and return its results."""
        return self.receive(self.send(program, procedure, arguments))

    # MOUNT and portmap.

    def mount(self, path: Name) -> bytes:
        """Mount a path, remember its handle as `root` and return it."""
        reply = self.call(MOUNT, 1, _name(path))
        status = Status(reply.u32())
        if status:
            raise NfsStatusError(status)
        self.root = reply.opaque()
        flavors = [reply.u32() for _ in range(reply.u32())]
        reply.end()
        if 1 not in flavors:
            raise AssertionError(f"AUTH_SYS is not among {flavors}")
        return self.root

    def unmount(self, path: Name) -> None:
        """Tell the server that a path is no longer mounted."""
        self.call(MOUNT, 3, _name(path)).end()

    def exports(self) -> list[tuple[bytes, list[bytes]]]:
        """Return exported paths with their groups."""
        reply = self.call(MOUNT, 5)
        found = [(reply.opaque(), [reply.opaque() for _ in _follows(reply)]) for _ in _follows(reply)]
        reply.end()
        return found

    # Operations.

    def operate(self, procedure: int, arguments: bytes) -> Reader:
        """Make one NFS call and return what follows its status, if that is OK."""
        reply = self.call(NFS, procedure, arguments)
        status = Status(reply.u32())
        if status:
            raise NfsStatusError(status)
        return reply

    def walk(self, path: str, start: bytes | None = None) -> bytes:
        """Look up each part of a path from the mounted root, or from `start`, and return the last handle."""
        handle = self.root if start is None else start
        for name in filter(None, path.split("/")):
            handle = self.lookup(handle, name)
        return handle

    def getattr(self, handle: bytes) -> Attributes:
        reply = self.operate(1, opaque(handle))
        attributes = reply.attributes()
        reply.end()
        return attributes

    def setattr(self, handle: bytes, new: SetAttributes, guard_ns: int | None = None) -> Attributes | None:
        guard = u32(0) if guard_ns is None else u32(1, *divmod(guard_ns, 1_000_000_000))
        return _last_wcc(self.operate(2, opaque(handle) + sattr(new) + guard))

    def truncate(self, handle: bytes, size: int) -> Attributes | None:
        return self.setattr(handle, SetAttributes(size=size))

    def lookup(self, directory: bytes, name: Name) -> bytes:
        return self.find(directory, name).handle

    def find(self, directory: bytes, name: Name) -> Found:
        """LOOKUP with all that it answers."""
        reply = self.operate(3, opaque(directory) + _name(name))
        found = Found(reply.opaque(), reply.post_op(), reply.post_op())
        reply.end()
        return found

    def access(self, handle: bytes, wanted: Access) -> Access:
        reply = self.operate(4, opaque(handle) + u32(int(wanted)))
        reply.post_op()
        granted = Access(reply.u32())
        reply.end()
        return granted

    def readlink(self, handle: bytes) -> bytes:
        reply = self.operate(5, opaque(handle))
        reply.post_op()
        target = reply.opaque()
        reply.end()
        return target

    def read(self, handle: bytes, offset: int = 0, count: int = 1 << 20) -> ReadReply:
        reply = self.operate(6, opaque(handle) + u64(offset) + u32(count))
        return _read_reply(reply)

    def read_all(self, handle: bytes, count: int = 1 << 20) -> bytes:
        """Read a file from start to end."""
        data = bytearray()
        while True:
            reply = self.read(handle, len(data), count)
            data += reply.data
            if reply.eof:
                return bytes(data)
            if not reply.data:
                raise AssertionError("no bytes, and not the end")

    def write(self, handle: bytes, offset: int, data: bytes, stable: Stable = Stable.FILE_SYNC) -> WriteReply:
        reply = self.operate(7, opaque(handle) + u64(offset) + u32(len(data), stable) + opaque(data))
        attributes = reply.wcc()
        written = WriteReply(reply.u32(), Stable(reply.u32()), reply.take(8), attributes)
        reply.end()
        return written

    def create(
        self,
        directory: bytes,
        name: Name,
        mode: CreateMode = CreateMode.UNCHECKED,
        new: SetAttributes | None = None,
        verifier: bytes = bytes(8),
    ) -> bytes:
        how = verifier if mode is CreateMode.EXCLUSIVE else sattr(new or SetAttributes())
        return _made(self.operate(8, opaque(directory) + _name(name) + u32(mode) + how)).handle

    def mkdir(self, directory: bytes, name: Name, new: SetAttributes | None = None) -> bytes:
        return _made(self.operate(9, opaque(directory) + _name(name) + sattr(new or SetAttributes()))).handle

    def symlink(self, directory: bytes, name: Name, target: Name) -> bytes:
        arguments = opaque(directory) + _name(name) + sattr(SetAttributes()) + _name(target)
        return _made(self.operate(10, arguments)).handle

    def remove(self, directory: bytes, name: Name) -> None:
        _last_wcc(self.operate(12, opaque(directory) + _name(name)))

    def rmdir(self, directory: bytes, name: Name) -> None:
        _last_wcc(self.operate(13, opaque(directory) + _name(name)))

    def rename(self, source: bytes, name: Name, target: bytes, new_name: Name) -> None:
        arguments = opaque(source) + _name(name) + opaque(target) + _name(new_name)
        reply = self.operate(14, arguments)
        reply.wcc()
        _last_wcc(reply)

    def readdir(self, directory: bytes, count: int = 1 << 16) -> list[Entry]:
        """List a directory page by page, `.` and `..` included."""
        return _all_pages(lambda cookie, verifier: self.readdir_page(directory, cookie, verifier, count))

    def readdir_page(self, directory: bytes, cookie: int, verifier: bytes, count: int) -> Page:
        reply = self.operate(16, opaque(directory) + u64(cookie) + verifier + u32(count))
        reply.post_op()
        verifier = reply.take(8)
        entries = [
            Entry(fileid=reply.u64(), name=reply.opaque(), cookie=reply.u64()) for _ in _follows(reply)
        ]
        return _page(reply, entries, verifier)

    def readdirplus(self, directory: bytes, dircount: int = 1 << 13, maxcount: int = 1 << 16) -> list[Entry]:
        """List a directory with handles and attributes page by page, `.` and `..` included."""
        return _all_pages(
            lambda cookie, verifier: self.readdirplus_page(directory, cookie, verifier, dircount, maxcount)
        )

    def readdirplus_page(
        self, directory: bytes, cookie: int, verifier: bytes, dircount: int, maxcount: int
    ) -> Page:
        reply = self.operate(17, opaque(directory) + u64(cookie) + verifier + u32(dircount, maxcount))
        reply.post_op()
        verifier = reply.take(8)
        return _page(reply, [_plus_entry(reply) for _ in _follows(reply)], verifier)

    def fsstat(self, handle: bytes) -> FsStat:
        reply = self.operate(18, opaque(handle))
        reply.post_op()
        found = FsStat(*(reply.u64() for _ in range(6)))
        reply.u32()
        reply.end()
        return found

    def fsinfo(self, handle: bytes) -> FsInfo:
        reply = self.operate(19, opaque(handle))
        reply.post_op()
        found = FsInfo(
            *[reply.u32() for _ in range(7)],  # a generator would only be read after the numbers below
            max_file_size=reply.u64(),
            time_delta_ns=reply.time_ns(),
            properties=reply.u32(),
        )
        reply.end()
        return found

    def pathconf(self, handle: bytes) -> PathConf:
        reply = self.operate(20, opaque(handle))
        reply.post_op()
        found = PathConf(reply.u32(), reply.u32(), reply.flag(), reply.flag(), reply.flag(), reply.flag())
        reply.end()
        return found

    def commit(self, handle: bytes, offset: int = 0, count: int = 0) -> bytes:
        """Make writes durable and return the server's write verifier."""
        reply = self.operate(21, opaque(handle) + u64(offset) + u32(count))
        reply.wcc()
        verifier = reply.take(8)
        reply.end()
        return verifier


def _accepted(reply: Reader) -> Reader:
    if reply.u32() == 1:
        raise RpcRefusedError(1, *_rest(reply))
    reply.u32()
    reply.opaque()
    status = reply.u32()
    if status:
        raise RpcRefusedError(0, status, *_rest(reply))
    return reply


def _rest(reply: Reader) -> Iterator[int]:
    while not reply.is_at_end():
        yield reply.u32()


def _follows(reply: Reader) -> Iterator[None]:
    """Step through an XDR list: one step for each item that follows."""
    while reply.flag():
        yield


def _read_reply(reply: Reader) -> ReadReply:
    attributes = reply.post_op()
    count, eof, data = reply.u32(), reply.flag(), reply.opaque()
    reply.end()
    if count != len(data):
        raise AssertionError(f"{count} bytes promised, {len(data)} sent")
    return ReadReply(data, eof, attributes)


def _last_wcc(reply: Reader) -> Attributes | None:
    attributes = reply.wcc()
    reply.end()
    return attributes


def _made(reply: Reader) -> Made:
    handle = reply.maybe(reply.opaque)
    attributes = reply.post_op()
    directory = reply.wcc()
    reply.end()
    if handle is None:
        raise AssertionError("no handle of what was made")
    return Made(handle, attributes, directory)


def _plus_entry(reply: Reader) -> Entry:
    fileid, name, cookie = reply.u64(), reply.opaque(), reply.u64()
    attributes = reply.post_op()
    return Entry(name, fileid, cookie, reply.maybe(reply.opaque), attributes)


def _page(reply: Reader, entries: list[Entry], verifier: bytes) -> Page:
    eof = reply.flag()
    reply.end()
    return Page(entries, verifier, eof)


def _all_pages(page: PageReader) -> list[Entry]:
    entries: list[Entry] = []
    cookie, verifier = 0, bytes(8)
    while True:
        found = page(cookie, verifier)
        entries += found.entries
        if found.eof:
            return entries
        if not found.entries:
            raise AssertionError("no entries, and not the end")
        cookie, verifier = found.entries[-1].cookie, found.verifier
