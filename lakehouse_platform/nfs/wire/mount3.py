"""The MOUNT protocol, version 3: from an exported path to its handle (RFC 1813 appendix I)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from lakehouse_platform.nfs.operations import (
    Caller,
    ExportEntry,
    Filesystem,
    Maybe,
    Mounted,
    NfsError,
    Status,
)
from lakehouse_platform.nfs.wire.programs import Arguments, Procedure, Program, ask_nothing
from lakehouse_platform.nfs.wire.rpc import Reply
from lakehouse_platform.nfs.wire.xdr import U32, Unpacker, opaque

_MAX_PATH = 1024  # MNTPATHLEN, RFC 1813 §5.1.1
_MAX_SENT_PATH = 1 << 16
_FALSE, _TRUE, _OK = U32.pack(0), U32.pack(1), U32.pack(0)
# mountstat3 has fewer members than nfsstat3, with the same numbers (RFC 1813 §5.1.2).
_MOUNT_STATUSES = {
    Status.PERM, Status.NOENT, Status.IO, Status.ACCES, Status.NOTDIR, Status.INVAL, Status.NAMETOOLONG,
    Status.NOTSUPP, Status.SERVERFAULT,
}  # fmt: skip
_NEAREST = {Status.STALE: Status.NOENT, Status.BADHANDLE: Status.NOENT, Status.JUKEBOX: Status.IO}


class Mount3(IntEnum):
    """Numbers of the procedures."""

    MNT = 1
    DUMP = 2
    UMNT = 3
    UMNTALL = 4
    EXPORT = 5


def _pull_path(unpacker: Unpacker) -> tuple[bytes]:
    path = bytes(unpacker.opaque(_MAX_SENT_PATH))
    if len(path) > _MAX_PATH:
        raise NfsError(Status.NAMETOOLONG, f"{len(path)} bytes")
    return (path,)


def _pull_nothing(_: Unpacker) -> tuple[()]:
    return ()


def _push_mounted(_: Arguments, mounted: Mounted, __: bytes) -> Reply:
    flavors = b"".join(map(U32.pack, mounted.flavors))
    return (b"".join((_OK, opaque(mounted.handle), U32.pack(len(mounted.flavors)), flavors)),)


def _push_exports(_: Arguments, entries: Sequence[ExportEntry], __: bytes) -> Reply:
    return (b"".join((*map(_export, entries), _FALSE)),)


def _export(entry: ExportEntry) -> bytes:
    groups = (_TRUE + opaque(group) for group in entry.groups)
    return b"".join((_TRUE, opaque(entry.path), *groups, _FALSE))


def _push_nothing(_: Arguments, __: object, ___: bytes) -> Reply:
    return (b"",)


def _push_no_mounts(_: Arguments, __: object, ___: bytes) -> Reply:
    return (_FALSE,)


def _refuse_mount(status: Status) -> Reply:
    nearest = _NEAREST.get(status, status)
    return (U32.pack(nearest if nearest in _MOUNT_STATUSES else Status.SERVERFAULT),)


def _refuse_nothing(_: Status) -> Reply:
    """Return the void of UMNT, which cannot say no."""
    return (b"",)


def _refuse_listing(_: Status) -> Reply:
    """Return the empty list of EXPORT, which cannot say no either."""
    return (_FALSE,)


def _ask_mount(filesystem: Filesystem, caller: Caller, arguments: Arguments) -> Maybe[Mounted]:
    return filesystem.mount(caller, *arguments)


def _ask_unmount(filesystem: Filesystem, caller: Caller, arguments: Arguments) -> None:
    filesystem.unmount(caller, *arguments)


def _ask_exports(filesystem: Filesystem, caller: Caller, _: Arguments) -> Sequence[ExportEntry]:
    return filesystem.exports(caller)


PROGRAM = Program(
    number=100005,
    version=3,
    procedures={
        Mount3.MNT: Procedure(_ask_mount, _pull_path, _push_mounted, _refuse_mount),
        # Who has mounted what is nobody else's business; only `showmount -a` asks.
        Mount3.DUMP: Procedure(ask_nothing, _pull_nothing, _push_no_mounts, _refuse_listing),
        Mount3.UMNT: Procedure(_ask_unmount, _pull_path, _push_nothing, _refuse_nothing),
        Mount3.UMNTALL: Procedure(ask_nothing, _pull_nothing, _push_nothing, _refuse_nothing),
        Mount3.EXPORT: Procedure(_ask_exports, _pull_nothing, _push_exports, _refuse_listing),
    },
)
