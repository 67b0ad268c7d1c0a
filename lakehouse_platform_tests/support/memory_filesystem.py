"""A small file system in memory, for tests of the protocol around it."""

from __future__ import annotations

import itertools
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lakehouse_platform.nfs.operations import (
    Access,
    Attributes,
    Buffer,
    Caller,
    CreateMode,
    Entry,
    ExportEntry,
    FileType,
    Found,
    Limits,
    Listing,
    Made,
    Maybe,
    Mounted,
    NfsError,
    ReadData,
    ServerTime,
    SetAttributes,
    Space,
    Stable,
    Status,
    Written,
)

EXPORT = b"/export"
_SPACE = 1 << 40
_ALL = Access.READ | Access.LOOKUP | Access.MODIFY | Access.EXTEND | Access.DELETE | Access.EXECUTE


@dataclass
class Node:
    """A file, a directory or a symbolic link."""

    attributes: Attributes
    parent: int
    data: bytes | bytearray | memoryview = b""
    entries: dict[bytes, tuple[int, int]] = field(default_factory=dict[bytes, tuple[int, int]])
    verifier: bytes = b""


class MemoryFilesystem:
    """Implements `Filesystem`; every operation answers at once.

    Args:
        max_file: Bytes that a file may have.
    """

    verifier = b"verifier"

    def __init__(self, max_file: int = 1 << 28) -> None:
        self.max_file = max_file
        self.numbers = itertools.count(1)
        self.cookies = itertools.count(3)
        self.nodes: dict[int, Node] = {}
        self.root = self._new_node(FileType.DIRECTORY, 0o755, 0)
        self.unmounted: list[bytes] = []

    def add_file(self, path: str, data: bytes | memoryview) -> bytes:
        """Put a file with this content there, and its directories, and return its handle."""
        *directories, name = path.encode().strip(b"/").split(b"/")
        at = self.root
        for directory in directories:
            known = self.nodes[at].entries.get(directory)
            at = known[0] if known else self._enter(at, directory, FileType.DIRECTORY, 0o755)
        number = self._enter(at, name, FileType.REGULAR, 0o644)
        self._set_data(number, data)
        return _handle(number)

    def content(self, handle: bytes) -> bytes:
        """Return what a file holds."""
        return bytes(self._node(handle).data)

    def mount(self, caller: Caller, path: bytes) -> Mounted:
        if path != EXPORT and not path.startswith(EXPORT + b"/"):
            raise NfsError(Status.NOENT)
        at = self.root
        for name in filter(None, path[len(EXPORT) :].split(b"/")):
            at = self._child(_handle(at), name)
        return Mounted(_handle(at))

    def unmount(self, caller: Caller, path: bytes) -> None:
        self.unmounted.append(path)

    def exports(self, caller: Caller) -> Sequence[ExportEntry]:
        return [ExportEntry(EXPORT, (b"everyone",))]

    def getattr(self, caller: Caller, handle: bytes) -> Attributes:
        return self._node(handle).attributes

    def setattr(
        self, caller: Caller, handle: bytes, new: SetAttributes, guard_ns: int | None
    ) -> Attributes | None:
        node = self._node(handle)
        if guard_ns not in {None, node.attributes.ctime_ns}:
            raise NfsError(Status.NOT_SYNC)
        self._apply(handle, new)
        return node.attributes

    def lookup(self, caller: Caller, directory: bytes, name: bytes) -> Found:
        number = self._child(directory, name)
        return Found(_handle(number), self.nodes[number].attributes, self._node(directory).attributes)

    def access(self, caller: Caller, handle: bytes, wanted: Access) -> tuple[Access, Attributes | None]:
        return wanted & _ALL, self._node(handle).attributes

    def readlink(self, caller: Caller, handle: bytes) -> tuple[bytes, Attributes | None]:
        node = self._node(handle)
        if node.attributes.type is not FileType.SYMLINK:
            raise NfsError(Status.INVAL)
        return bytes(node.data), node.attributes

    def read(self, caller: Caller, handle: bytes, offset: int, count: int) -> ReadData:
        node = self._file(handle)
        buffers: list[Buffer] = [self._slice(node, offset, count)]
        return ReadData(buffers, offset + count >= len(node.data), node.attributes)

    @staticmethod
    def _slice(node: Node, offset: int, count: int) -> Buffer:
        piece = node.data[offset : offset + count]
        return bytes(piece) if isinstance(piece, bytearray) else piece

    def write(self, caller: Caller, handle: bytes, offset: int, data: memoryview, stable: Stable) -> Written:
        node = self._file(handle)
        if offset + len(data) > self.max_file:
            raise NfsError(Status.FBIG)
        if not isinstance(node.data, bytearray):
            node.data = bytearray(node.data)
        if offset > len(node.data):
            node.data.extend(bytes(offset - len(node.data)))
        node.data[offset : offset + len(data)] = data
        self._touch(handle)
        return Written(len(data), stable, None)

    def create(
        self,
        caller: Caller,
        directory: bytes,
        name: bytes,
        mode: CreateMode,
        new: SetAttributes,
        verifier: bytes,
    ) -> Made:
        known = self._directory(directory).entries.get(name)
        if known is None:
            made = self.make(directory, name, FileType.REGULAR, new)
            self._node(made.handle).verifier = verifier
            return made
        node = self.nodes[known[0]]
        is_repeated = mode is CreateMode.EXCLUSIVE and node.verifier == verifier
        if mode is not CreateMode.UNCHECKED and not is_repeated:
            raise NfsError(Status.EXIST)
        self._apply(_handle(known[0]), SetAttributes(size=new.size))
        return Made(_handle(known[0]), node.attributes, self._node(directory).attributes)

    def mkdir(self, caller: Caller, directory: bytes, name: bytes, new: SetAttributes) -> Maybe[Made]:
        return self.make(directory, name, FileType.DIRECTORY, new)

    def symlink(
        self, caller: Caller, directory: bytes, name: bytes, target: bytes, new: SetAttributes
    ) -> Made:
        made = self.make(directory, name, FileType.SYMLINK, new)
        self._set_data(int.from_bytes(made.handle, "big"), target)
        return made

    def remove(self, caller: Caller, directory: bytes, name: bytes) -> Attributes | None:
        number = self._child(directory, name)
        if self.nodes[number].attributes.type is FileType.DIRECTORY:
            raise NfsError(Status.ISDIR)
        return self._take_out(directory, name)

    def rmdir(self, caller: Caller, directory: bytes, name: bytes) -> Attributes | None:
        if self._directory(_handle(self._child(directory, name))).entries:
            raise NfsError(Status.NOTEMPTY)
        return self._take_out(directory, name)

    def rename(
        self, caller: Caller, source: bytes, name: bytes, target: bytes, new_name: bytes
    ) -> tuple[Attributes | None, Attributes | None]:
        number = self._child(source, name)
        at = self._directory(target)
        if (source, name) == (target, new_name):
            return at.attributes, at.attributes
        if new_name in at.entries:
            self.remove(caller, target, new_name)
        del self._directory(source).entries[name]
        at.entries[new_name] = (number, next(self.cookies))
        self.nodes[number].parent = int.from_bytes(target, "big")
        self._touch(source)
        self._touch(target)
        return self._node(source).attributes, at.attributes

    def list(self, caller: Caller, directory: bytes, cookie: int, *, plus: bool) -> Listing:
        node = self._directory(directory)
        own = int.from_bytes(directory, "big")
        found = [(b".", own, 1), (b"..", node.parent, 2)]
        found += [(name, number, cookie) for name, (number, cookie) in node.entries.items()]
        entries = [self._entry(*one, plus=plus) for one in found if one[2] > cookie]
        return Listing(entries, node.attributes)

    def space(self, caller: Caller, handle: bytes) -> Space:
        return Space(_SPACE, _SPACE // 2, 1000, 500, self._node(handle).attributes)

    def limits(self, caller: Caller, handle: bytes) -> Limits:
        return Limits(self._node(handle).attributes)

    def commit(self, caller: Caller, handle: bytes, offset: int, count: int) -> Attributes | None:
        return self._file(handle).attributes

    def _entry(self, name: bytes, number: int, cookie: int, *, plus: bool) -> Entry:
        if not plus:
            return Entry(name, number, cookie)
        return Entry(name, number, cookie, _handle(number), self.nodes[number].attributes)

    def _node(self, handle: bytes) -> Node:
        if len(handle) != 8:
            raise NfsError(Status.BADHANDLE)
        node = self.nodes.get(int.from_bytes(handle, "big"))
        if node is None:
            raise NfsError(Status.STALE)
        return node

    def _directory(self, handle: bytes) -> Node:
        node = self._node(handle)
        if node.attributes.type is not FileType.DIRECTORY:
            raise NfsError(Status.NOTDIR)
        return node

    def _file(self, handle: bytes) -> Node:
        node = self._node(handle)
        if node.attributes.type is not FileType.REGULAR:
            raise NfsError(Status.ISDIR if node.attributes.type is FileType.DIRECTORY else Status.INVAL)
        return node

    def _child(self, directory: bytes, name: bytes) -> int:
        node = self._directory(directory)
        if name == b".":
            return int.from_bytes(directory, "big")
        if name == b"..":
            return node.parent
        if name not in node.entries:
            raise NfsError(Status.NOENT)
        return node.entries[name][0]

    def _new_node(self, kind: FileType, mode: int, parent: int) -> int:
        number, now = next(self.numbers), time.time_ns()
        attributes = Attributes(
            kind, mode, 0, number, 77, 0, 0, mtime_ns=now, ctime_ns=now, atime_ns=now,
            nlink=2 if kind is FileType.DIRECTORY else 1,
        )  # fmt: skip
        self.nodes[number] = Node(attributes, parent or number)
        return number

    def _enter(self, directory: int, name: bytes, kind: FileType, mode: int) -> int:
        number = self._new_node(kind, mode, directory)
        self.nodes[directory].entries[name] = (number, next(self.cookies))
        self._touch(_handle(directory))
        return number

    def make(self, directory: bytes, name: bytes, kind: FileType, new: SetAttributes) -> Made:
        """Make an entry, or refuse to make it twice."""
        node = self._directory(directory)
        if name in node.entries:
            raise NfsError(Status.EXIST)
        mode = 0o755 if kind is FileType.DIRECTORY else 0o644
        number = self._enter(int.from_bytes(directory, "big"), name, kind, mode)
        self._apply(_handle(number), replace(new, size=None))
        return Made(_handle(number), self.nodes[number].attributes, node.attributes)

    def _take_out(self, directory: bytes, name: bytes) -> Attributes:
        node = self._directory(directory)
        number, _ = node.entries.pop(name)
        del self.nodes[number]
        self._touch(directory)
        return node.attributes

    def _set_data(self, number: int, data: bytes | bytearray | memoryview) -> None:
        self.nodes[number].data = data
        self._touch(_handle(number))

    def _touch(self, handle: bytes) -> None:
        node, now = self._node(handle), time.time_ns()
        node.attributes = replace(node.attributes, size=len(node.data), mtime_ns=now, ctime_ns=now)

    def _apply(self, handle: bytes, new: SetAttributes) -> None:
        node = self._node(handle)
        if new.size is not None:
            self._resize(handle, new.size)
        old = node.attributes
        node.attributes = replace(
            old,
            mode=stat.S_IMODE(old.mode if new.mode is None else new.mode),
            uid=old.uid if new.uid is None else new.uid,
            gid=old.gid if new.gid is None else new.gid,
            atime_ns=_time(new.atime, old.atime_ns),
            mtime_ns=_time(new.mtime, old.mtime_ns),
            ctime_ns=time.time_ns(),
        )

    def _resize(self, handle: bytes, size: int) -> None:
        node = self._file(handle)
        if size > self.max_file:
            raise NfsError(Status.FBIG)
        node.data = bytearray(bytes(node.data[:size]).ljust(size, b"\0"))
        self._touch(handle)


def _handle(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _time(new: int | ServerTime | None, old: int) -> int:
    if new is None:
        return old
    return time.time_ns() if isinstance(new, ServerTime) else new
