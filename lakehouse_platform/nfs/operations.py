"""What an NFS server is asked and what it answers, free of the wire (RFC 1813 §2.6 and §3.3).

The engine decodes a call into one method of `Filesystem` and encodes what comes back. A method returns its result, or
an awaitable of it when it must wait (for storage, rendering or a commit), and raises `NfsError` to refuse.
All methods are called on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Protocol, TypeAlias, TypeVar

_T = TypeVar("_T")
Maybe: TypeAlias = _T | Awaitable[_T]
Buffer: TypeAlias = bytes | memoryview


class Status(IntEnum):
    """nfsstat3, RFC 1813 §2.6."""

    OK = 0
    PERM = 1
    NOENT = 2
    IO = 5
    NXIO = 6
    ACCES = 13
    EXIST = 17
    XDEV = 18
    NODEV = 19
    NOTDIR = 20
    ISDIR = 21
    INVAL = 22
    FBIG = 27
    NOSPC = 28
    ROFS = 30
    MLINK = 31
    NAMETOOLONG = 63
    NOTEMPTY = 66
    DQUOT = 69
    STALE = 70
    REMOTE = 71
    BADHANDLE = 10001
    NOT_SYNC = 10002
    BAD_COOKIE = 10003
    NOTSUPP = 10004
    TOOSMALL = 10005
    SERVERFAULT = 10006
    BADTYPE = 10007
    JUKEBOX = 10008


class NfsError(Exception):
    """Refuses one operation.

    Attributes:
        status: What the client is told.
    """

    def __init__(self, status: Status, why: str = "") -> None:
        super().__init__(f"{status.name}: {why}" if why else status.name)
        self.status = status


class FileType(IntEnum):
    """ftype3, RFC 1813 §2.6."""

    REGULAR = 1
    DIRECTORY = 2
    SYMLINK = 5


class Access(IntFlag):
    """Rights that ACCESS asks for, RFC 1813 §3.3.4."""

    READ = 0x01
    LOOKUP = 0x02
    MODIFY = 0x04
    EXTEND = 0x08
    DELETE = 0x10
    EXECUTE = 0x20


class Stable(IntEnum):
    """stable_how, RFC 1813 §3.3.7."""

    UNSTABLE = 0
    DATA_SYNC = 1
    FILE_SYNC = 2


class CreateMode(IntEnum):
    """createmode3, RFC 1813 §3.3.8."""

    UNCHECKED = 0
    GUARDED = 1
    EXCLUSIVE = 2


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a call.

    Attributes:
        flavor: RPC authentication flavor: 0 AUTH_NONE, 1 AUTH_SYS.
        uid: User id that it claims (AUTH_SYS), else None.
        gids: Its group and supplementary groups.
        machine: Host name that it claims.
        peer: Address of the other end of the connection, `host:port`.
        trusted: Whether the connection's other end belongs to the server's own user, to root's kernel, or could not be
            told because it is on another machine.
        call: What makes a call that must not be carried out twice known when it is sent again; empty for others.
    """

    flavor: int
    uid: int | None
    gids: tuple[int, ...]
    machine: bytes
    peer: str
    trusted: bool
    call: bytes = b""


@dataclass(frozen=True, slots=True)
class Attributes:
    """fattr3, RFC 1813 §2.6; times in nanoseconds since 1970."""

    type: FileType
    mode: int
    size: int
    fileid: int
    fsid: int
    uid: int
    gid: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int
    nlink: int = 1
    used: int = 0


class ServerTime:
    """SET_TO_SERVER_TIME, RFC 1813 §2.6 sattr3."""


@dataclass(frozen=True, slots=True)
class SetAttributes:
    """sattr3, RFC 1813 §2.6: None leaves an attribute as it is; times in nanoseconds or the server's."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime: int | ServerTime | None = None
    mtime: int | ServerTime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """LOOKUP's answer; attributes that would need rendering may be left out."""

    handle: bytes
    attributes: Attributes | None
    directory: Attributes | None


@dataclass(frozen=True, slots=True)
class Made:
    """The answer of CREATE, MKDIR and SYMLINK."""

    handle: bytes
    attributes: Attributes | None
    directory: Attributes | None


@dataclass(frozen=True, slots=True)
class ReadData:
    """READ's answer.

    Attributes:
        buffers: The bytes, in order; they are sent without being copied, so they must not change later.
        eof: Whether they end the file.
        attributes: Of the file, after reading.
        of: What they are a part of, for who writes down what is read; never sent.
    """

    buffers: Sequence[Buffer]
    eof: bool
    attributes: Attributes | None
    of: object = None


@dataclass(frozen=True, slots=True)
class Written:
    """WRITE's answer.

    Attributes:
        count: Bytes taken; never 0 for a write of more than none.
        committed: How durable they are: at least what was asked for.
        attributes: Of the file; left out for views, so that the client asks for them when it closes the file.
    """

    count: int
    committed: Stable
    attributes: Attributes | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One directory entry; handle and attributes only where they are known without rendering.

    Attributes:
        cookie: Grows along the directory and stays the entry's own while entries come and go; at least 3.
    """

    name: bytes
    fileid: int
    cookie: int
    handle: bytes | None = None
    attributes: Attributes | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A directory's entries after a cookie, `.` and `..` (cookies 1 and 2) included."""

    entries: Sequence[Entry]
    directory: Attributes | None


@dataclass(frozen=True, slots=True)
class Space:
    """FSSTAT's answer, in bytes and files."""

    total_bytes: int
    free_bytes: int
    total_files: int
    free_files: int
    attributes: Attributes | None


@dataclass(frozen=True, slots=True)
class Limits:
    """What FSINFO and PATHCONF tell about the server."""

    attributes: Attributes | None
    max_transfer: int = 1 << 20
    max_file_size: int = (1 << 63) - 1
    max_name: int = 255


@dataclass(frozen=True, slots=True)
class Mounted:
    """MNT's answer."""

    handle: bytes
    flavors: tuple[int, ...] = (1,)


@dataclass(frozen=True, slots=True)
class ExportEntry:
    """One line of `showmount -e`; the path without its ticket."""

    path: bytes
    groups: tuple[bytes, ...] = field(default=())


class Filesystem(Protocol):
    """The 22 procedures' meaning, without the wire. Handles are opaque bytes of at most 64 (RFC 1813 §2.3.3)."""

    @property
    def verifier(self) -> bytes:
        """8 bytes that change when unstable writes may have been lost: at each start of the server."""
        ...

    def mount(self, caller: Caller, path: bytes) -> Maybe[Mounted]:
        """Return the handle of an exported directory, or of one below it."""
        ...

    def unmount(self, caller: Caller, path: bytes) -> None:
        """Note that a client has unmounted."""
        ...

    def exports(self, caller: Caller) -> Sequence[ExportEntry]:
        """Return what is exported."""
        ...

    def getattr(self, caller: Caller, handle: bytes) -> Maybe[Attributes]: ...  # noqa: D102
    def setattr(  # noqa: D102
        self, caller: Caller, handle: bytes, new: SetAttributes, guard_ns: int | None
    ) -> Maybe[Attributes | None]: ...
    def lookup(self, caller: Caller, directory: bytes, name: bytes) -> Maybe[Found]: ...  # noqa: D102
    def access(
        self, caller: Caller, handle: bytes, wanted: Access
    ) -> Maybe[tuple[Access, Attributes | None]]:
        """Return the rights among `wanted` that the caller has."""
        ...

    def readlink(self, caller: Caller, handle: bytes) -> Maybe[tuple[bytes, Attributes | None]]: ...  # noqa: D102
    def read(self, caller: Caller, handle: bytes, offset: int, count: int) -> Maybe[ReadData]: ...  # noqa: D102
    def write(  # noqa: D102
        self, caller: Caller, handle: bytes, offset: int, data: memoryview, stable: Stable
    ) -> Maybe[Written]: ...
    def create(
        self,
        caller: Caller,
        directory: bytes,
        name: bytes,
        mode: CreateMode,
        new: SetAttributes,
        verifier: bytes,
    ) -> Maybe[Made]:
        """Create a regular file; `verifier` is 8 bytes for EXCLUSIVE, else empty."""
        ...

    def mkdir(self, caller: Caller, directory: bytes, name: bytes, new: SetAttributes) -> Maybe[Made]: ...  # noqa: D102
    def symlink(  # noqa: D102
        self, caller: Caller, directory: bytes, name: bytes, target: bytes, new: SetAttributes
    ) -> Maybe[Made]: ...
    def remove(self, caller: Caller, directory: bytes, name: bytes) -> Maybe[Attributes | None]:
        """Remove a file and return its directory's attributes."""
        ...

    def rmdir(self, caller: Caller, directory: bytes, name: bytes) -> Maybe[Attributes | None]: ...  # noqa: D102
    def rename(
        self, caller: Caller, source: bytes, name: bytes, target: bytes, new_name: bytes
    ) -> Maybe[tuple[Attributes | None, Attributes | None]]:
        """Move an entry and return the attributes of both directories."""
        ...

    def list(self, caller: Caller, directory: bytes, cookie: int, *, plus: bool) -> Maybe[Listing]:
        """Return the entries after a cookie, with handles and attributes if `plus`."""
        ...

    def space(self, caller: Caller, handle: bytes) -> Maybe[Space]: ...  # noqa: D102
    def limits(self, caller: Caller, handle: bytes) -> Maybe[Limits]: ...  # noqa: D102
    def commit(self, caller: Caller, handle: bytes, offset: int, count: int) -> Maybe[Attributes | None]:
        """Make unstable writes durable."""
        ...
