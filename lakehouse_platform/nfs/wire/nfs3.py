"""NFS version 3: its 22 procedures and how their arguments are laid out (RFC 1813 §3.3)."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

from lakehouse_platform.nfs.operations import (
    Access,
    Caller,
    CreateMode,
    Filesystem,
    Listing,
    Maybe,
    NfsError,
    ServerTime,
    SetAttributes,
    Stable,
    Status,
)
from lakehouse_platform.nfs.wire import nfs3_results as results
from lakehouse_platform.nfs.wire.nfs3_results import MAX_NAME, MAX_OFFSET, MAX_TRANSFER
from lakehouse_platform.nfs.wire.programs import Arguments, Procedure, Program, Pull, Push, ask_nothing
from lakehouse_platform.nfs.wire.rpc import Reply
from lakehouse_platform.nfs.wire.xdr import Unpacker

_MAX_HANDLE = 64  # NFS3_FHSIZE, RFC 1813 §2.4
_MAX_PATH = 4096  # PATH_MAX of Linux, which no symbolic link exceeds
_VERIFIER_SIZE = 8
_SECOND_NS = 1_000_000_000
_ALL_RIGHTS = Access(0x3F)


class Nfs3(IntEnum):
    """Numbers of the procedures."""

    GETATTR = 1
    SETATTR = 2
    LOOKUP = 3
    ACCESS = 4
    READLINK = 5
    READ = 6
    WRITE = 7
    CREATE = 8
    MKDIR = 9
    SYMLINK = 10
    MKNOD = 11
    REMOVE = 12
    RMDIR = 13
    RENAME = 14
    LINK = 15
    READDIR = 16
    READDIRPLUS = 17
    FSSTAT = 18
    FSINFO = 19
    PATHCONF = 20
    COMMIT = 21


def _handle(unpacker: Unpacker) -> bytes:
    return bytes(unpacker.opaque(_MAX_HANDLE))


def _name(unpacker: Unpacker, illegal: Status) -> bytes:
    """Take a name that can be one entry of a directory: never a path."""
    name = bytes(unpacker.opaque(_MAX_PATH))
    if len(name) > MAX_NAME:
        raise NfsError(Status.NAMETOOLONG, f"{len(name)} bytes")
    if not name or b"/" in name or b"\0" in name:
        raise NfsError(illegal, f"{name!r} is no name")
    return name


def _own_name(unpacker: Unpacker, for_dots: Status) -> bytes:
    """Take a name of an entry that is made, moved or removed, which `.` and `..` never are."""
    name = _name(unpacker, Status.INVAL)
    if name in {b".", b".."}:
        raise NfsError(for_dots, f"{name!r} is always there")
    return name


def _time_ns(unpacker: Unpacker) -> int:
    seconds, nanoseconds = unpacker.uint(), unpacker.uint()
    if nanoseconds >= _SECOND_NS:
        raise NfsError(Status.INVAL, f"{nanoseconds} nanoseconds")
    return seconds * _SECOND_NS + nanoseconds


def _new_time(unpacker: Unpacker) -> int | ServerTime | None:
    how = unpacker.uint()
    if how == 0:
        return None
    if how == 1:
        return ServerTime()
    if how == 2:
        return _time_ns(unpacker)
    raise ValueError(f"{how} is no time_how")


def _new_size(unpacker: Unpacker) -> int:
    size = unpacker.hyper()
    if size > MAX_OFFSET:
        raise NfsError(Status.FBIG, f"a size of {size}")
    return size


def _new_attributes(unpacker: Unpacker) -> SetAttributes:
    return SetAttributes(
        mode=unpacker.uint() & 0o7777 if unpacker.flag() else None,
        uid=unpacker.uint() if unpacker.flag() else None,
        gid=unpacker.uint() if unpacker.flag() else None,
        size=_new_size(unpacker) if unpacker.flag() else None,
        atime=_new_time(unpacker),
        mtime=_new_time(unpacker),
    )


def _pull_handle(unpacker: Unpacker) -> tuple[bytes]:
    return (_handle(unpacker),)


def _pull_setattr(unpacker: Unpacker) -> tuple[bytes, SetAttributes, int | None]:
    handle, new = _handle(unpacker), _new_attributes(unpacker)
    return handle, new, _time_ns(unpacker) if unpacker.flag() else None


def _pull_lookup(unpacker: Unpacker) -> tuple[bytes, bytes]:
    return _handle(unpacker), _name(unpacker, Status.NOENT)


def _pull_access(unpacker: Unpacker) -> tuple[bytes, Access]:
    return _handle(unpacker), Access(unpacker.uint()) & _ALL_RIGHTS


def _pull_read(unpacker: Unpacker) -> tuple[bytes, int, int]:
    return _handle(unpacker), min(unpacker.hyper(), MAX_OFFSET), min(unpacker.uint(), MAX_TRANSFER)


def _pull_write(unpacker: Unpacker) -> tuple[bytes, int, memoryview, Stable]:
    handle, offset = _handle(unpacker), unpacker.hyper()
    count, stable = unpacker.uint(), Stable(unpacker.uint())
    data = unpacker.opaque(1 << 31)  # the record's own limit is smaller
    if count > len(data):
        raise NfsError(Status.INVAL, f"{count} bytes announced, {len(data)} sent")
    if offset + count > MAX_OFFSET:
        raise NfsError(Status.FBIG, f"{count} bytes at {offset}")
    return handle, offset, data[: min(count, MAX_TRANSFER)], stable


def _pull_create(unpacker: Unpacker) -> tuple[bytes, bytes, CreateMode, SetAttributes, bytes]:
    directory, name = _handle(unpacker), _own_name(unpacker, Status.EXIST)
    mode = CreateMode(unpacker.uint())
    if mode is CreateMode.EXCLUSIVE:
        return directory, name, mode, SetAttributes(), bytes(unpacker.fixed(_VERIFIER_SIZE))
    return directory, name, mode, _new_attributes(unpacker), b""


def _pull_mkdir(unpacker: Unpacker) -> tuple[bytes, bytes, SetAttributes]:
    return _handle(unpacker), _own_name(unpacker, Status.EXIST), _new_attributes(unpacker)


def _pull_symlink(unpacker: Unpacker) -> tuple[bytes, bytes, bytes, SetAttributes]:
    directory, name, new = _pull_mkdir(unpacker)
    target = bytes(unpacker.opaque(MAX_TRANSFER))
    if len(target) > _MAX_PATH:
        raise NfsError(Status.NAMETOOLONG, f"{len(target)} bytes")
    return directory, name, target, new


def _pull_remove(unpacker: Unpacker) -> tuple[bytes, bytes]:
    return _handle(unpacker), _own_name(unpacker, Status.INVAL)


def _pull_rename(unpacker: Unpacker) -> tuple[bytes, bytes, bytes, bytes]:
    return (*_pull_remove(unpacker), *_pull_remove(unpacker))


def _pull_readdir(unpacker: Unpacker) -> tuple[bytes, int, int]:
    directory, cookie = _handle(unpacker), unpacker.hyper()
    unpacker.fixed(_VERIFIER_SIZE)  # never compared: cookies stay good for as long as their directory
    return directory, cookie, unpacker.uint()


def _pull_readdirplus(unpacker: Unpacker) -> tuple[bytes, int, int, int]:
    return (*_pull_readdir(unpacker), unpacker.uint())


def _pull_commit(unpacker: Unpacker) -> tuple[bytes, int, int]:
    return _handle(unpacker), unpacker.hyper(), unpacker.uint()


def _pull_unsupported(_: Unpacker) -> tuple[()]:
    raise NfsError(Status.NOTSUPP)


def _ask_names(filesystem: Filesystem, caller: Caller, arguments: Arguments) -> Maybe[Listing]:
    directory, cookie, _ = arguments
    return filesystem.list(caller, directory, cookie, plus=False)


def _ask_entries(filesystem: Filesystem, caller: Caller, arguments: Arguments) -> Maybe[Listing]:
    directory, cookie, _, __ = arguments
    return filesystem.list(caller, directory, cookie, plus=True)


def _calling(method: str) -> Callable[[Filesystem, Caller, Arguments], Any]:
    return lambda filesystem, caller, arguments: getattr(filesystem, method)(caller, *arguments)


def _refusing(absent: int) -> Callable[[Status], Reply]:
    """Return the packer of a refusal in which so many optional attributes are absent."""
    return partial(results.push_refusal, bytes(4 * absent))


_WCC = 2  # wcc_data: the attributes before and after


def _asking(method: str, pull: Pull, push: Push, absent: int = 1) -> Procedure:
    return Procedure(_calling(method), pull, push, _refusing(absent))


def _changing(method: str, pull: Pull, push: Push, absent: int = _WCC) -> Procedure:
    return Procedure(_calling(method), pull, push, _refusing(absent), is_repeatable=False)


def _unsupported(absent: int) -> Procedure:
    return Procedure(ask_nothing, _pull_unsupported, results.push_changed, _refusing(absent))


PROGRAM = Program(
    number=100003,
    version=3,
    procedures={
        Nfs3.GETATTR: _asking("getattr", _pull_handle, results.push_getattr, absent=0),
        Nfs3.SETATTR: _changing("setattr", _pull_setattr, results.push_changed),
        Nfs3.LOOKUP: _asking("lookup", _pull_lookup, results.push_found),
        Nfs3.ACCESS: _asking("access", _pull_access, results.push_access),
        Nfs3.READLINK: _asking("readlink", _pull_handle, results.push_target),
        Nfs3.READ: _asking("read", _pull_read, results.push_read),
        Nfs3.WRITE: _changing("write", _pull_write, results.push_written),
        Nfs3.CREATE: _changing("create", _pull_create, results.push_made),
        Nfs3.MKDIR: _changing("mkdir", _pull_mkdir, results.push_made),
        Nfs3.SYMLINK: _changing("symlink", _pull_symlink, results.push_made),
        Nfs3.MKNOD: _unsupported(_WCC),
        Nfs3.REMOVE: _changing("remove", _pull_remove, results.push_changed),
        Nfs3.RMDIR: _changing("rmdir", _pull_remove, results.push_changed),
        Nfs3.RENAME: _changing("rename", _pull_rename, results.push_renamed, absent=2 * _WCC),
        Nfs3.LINK: _unsupported(1 + _WCC),
        Nfs3.READDIR: Procedure(_ask_names, _pull_readdir, results.push_names, _refusing(1)),
        Nfs3.READDIRPLUS: Procedure(_ask_entries, _pull_readdirplus, results.push_entries, _refusing(1)),
        Nfs3.FSSTAT: _asking("space", _pull_handle, results.push_space),
        Nfs3.FSINFO: _asking("limits", _pull_handle, results.push_fsinfo),
        Nfs3.PATHCONF: _asking("limits", _pull_handle, results.push_pathconf),
        Nfs3.COMMIT: _changing("commit", _pull_commit, results.push_committed),
    },
)
