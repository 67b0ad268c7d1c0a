"""How the results of NFS version 3 are laid out (RFC 1813 §2.6 and §3.3).

Every `push_` function is given the call's arguments, what the method returned and the server's write verifier.
`before` attributes are always left out: they are only of use if nothing can happen between reading them and the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct

from lakehouse_platform.nfs.operations import (
    Access,
    Attributes,
    Entry,
    Found,
    Limits,
    Listing,
    Made,
    NfsError,
    ReadData,
    Space,
    Status,
    Written,
)
from lakehouse_platform.nfs.wire.programs import Arguments
from lakehouse_platform.nfs.wire.rpc import Reply
from lakehouse_platform.nfs.wire.xdr import PADDING, U32, U64, opaque

MAX_TRANSFER = 1 << 20
"""Bytes of one READ or WRITE: what Linux asks for at most (NFS_MAX_FILE_IO_SIZE)."""
MAX_NAME = 255
MAX_OFFSET = (1 << 63) - 1
_PREFERRED_LISTING = 1 << 16
_BLOCK = 4096  # transfers should be multiples of it
# FSF3_SYMLINK, FSF3_HOMOGENEOUS and FSF3_CANSETTIME (RFC 1813 §3.3.19): no hard links.
_PROPERTIES = 0x02 | 0x08 | 0x10
_SECOND_NS = 1_000_000_000
_LAST_SECOND = (1 << 32) - 1

_FALSE, _TRUE, _OK = U32.pack(0), U32.pack(1), U32.pack(Status.OK)
_NO_VERIFIER = bytes(8)
_END_OF_LIST = 8  # no further entry, and whether the directory ends here
_POST_OP = Struct(">6I 2Q 2I 2Q 6I")
_READ = Struct(">3I")
_WRITTEN = Struct(">2I")
_ENTRY_HEAD = Struct(">IQI")
_SPACE = Struct(">6QI")
_FSINFO = Struct(">7IQ3I")
_PATHCONF = Struct(">6I")


def _time(nanoseconds: int) -> tuple[int, int]:
    """Split a time, as near as the wire can say it: from 1970 to 2106."""
    seconds, rest = divmod(nanoseconds, _SECOND_NS)
    return (seconds, rest) if 0 <= seconds <= _LAST_SECOND else (0 if seconds < 0 else _LAST_SECOND, 0)


def post_op(attributes: Attributes | None) -> bytes:
    """Pack post_op_attr."""
    if attributes is None:
        return _FALSE
    a = attributes
    # A file that occupies nothing is taken for one hole by tools that copy sparsely.
    return _POST_OP.pack(
        1, a.type, a.mode, a.nlink, a.uid, a.gid, a.size, a.used or a.size, 0, 0, a.fsid, a.fileid,
        *_time(a.atime_ns), *_time(a.mtime_ns), *_time(a.ctime_ns),
    )  # fmt: skip


def _changed(attributes: Attributes | None) -> bytes:
    return _FALSE + post_op(attributes)


def push_refusal(absent: bytes, status: Status) -> tuple[bytes]:
    """Pack a status and the attributes that are absent after it."""
    return (U32.pack(status) + absent,)


def push_getattr(_: Arguments, attributes: Attributes, __: bytes) -> Reply:
    """Pack GETATTR3resok."""
    return (_OK + post_op(attributes)[4:],)


def push_changed(_: Arguments, attributes: Attributes | None, __: bytes) -> Reply:
    """Pack the results of SETATTR, REMOVE and RMDIR."""
    return (_OK + _changed(attributes),)


def push_found(_: Arguments, found: Found, __: bytes) -> Reply:
    """Pack LOOKUP3resok."""
    return (b"".join((_OK, opaque(found.handle), post_op(found.attributes), post_op(found.directory))),)


def push_access(_: Arguments, answer: tuple[Access, Attributes | None], __: bytes) -> Reply:
    """Pack ACCESS3resok."""
    granted, attributes = answer
    return (_OK + post_op(attributes) + U32.pack(granted),)


def push_target(_: Arguments, answer: tuple[bytes, Attributes | None], __: bytes) -> Reply:
    """Pack READLINK3resok."""
    target, attributes = answer
    return (_OK + post_op(attributes) + opaque(target),)


def push_read(_: Arguments, data: ReadData, __: bytes) -> Reply:
    """Pack READ3resok, the data as it is: it is not copied."""
    size = sum(map(len, data.buffers))
    head = _OK + post_op(data.attributes) + _READ.pack(size, data.eof, size)
    return (head, *data.buffers, PADDING[-size & 3])


def push_written(_: Arguments, written: Written, verifier: bytes) -> Reply:
    """Pack WRITE3resok."""
    sizes = _WRITTEN.pack(written.count, written.committed)
    return (b"".join((_OK, _changed(written.attributes), sizes, verifier)),)


def push_made(_: Arguments, made: Made, __: bytes) -> Reply:
    """Pack the results of CREATE, MKDIR and SYMLINK."""
    entry = (_TRUE, opaque(made.handle), post_op(made.attributes))
    return (b"".join((_OK, *entry, _changed(made.directory))),)


def push_renamed(_: Arguments, both: tuple[Attributes | None, Attributes | None], __: bytes) -> Reply:
    """Pack RENAME3resok."""
    source, target = both
    return (_OK + _changed(source) + _changed(target),)


def push_committed(_: Arguments, attributes: Attributes | None, verifier: bytes) -> Reply:
    """Pack COMMIT3resok."""
    return (_OK + _changed(attributes) + verifier,)


def push_space(_: Arguments, space: Space, __: bytes) -> Reply:
    """Pack FSSTAT3resok; numbers that a client's signed 64 bits cannot hold are cut."""
    total, free = min(space.total_bytes, MAX_OFFSET), min(space.free_bytes, MAX_OFFSET)
    files, free_files = min(space.total_files, MAX_OFFSET), min(space.free_files, MAX_OFFSET)
    numbers = _SPACE.pack(total, free, free, files, free_files, free_files, 0)
    return (_OK + post_op(space.attributes) + numbers,)


def push_fsinfo(_: Arguments, limits: Limits, __: bytes) -> Reply:
    """Pack FSINFO3resok; times are exact to the nanosecond."""
    transfer = min(limits.max_transfer, MAX_TRANSFER)
    sizes = (transfer, transfer, _BLOCK, transfer, transfer, _BLOCK, _PREFERRED_LISTING)
    numbers = _FSINFO.pack(*sizes, limits.max_file_size, 0, 1, _PROPERTIES)
    return (_OK + post_op(limits.attributes) + numbers,)


def push_pathconf(_: Arguments, limits: Limits, __: bytes) -> Reply:
    """Pack PATHCONF3resok: one link, long names refused, owners kept, case told apart and kept."""
    numbers = _PATHCONF.pack(1, min(limits.max_name, MAX_NAME), True, True, False, True)
    return (_OK + post_op(limits.attributes) + numbers,)


@dataclass(frozen=True, slots=True)
class _Room:
    """How much of a listing fits: bytes of the whole reply, and of names alone."""

    reply: int
    names: int


def push_names(arguments: Arguments, listing: Listing, _: bytes) -> Reply:
    """Pack READDIR3resok, as much of it as the client has room for."""
    *_others, count = arguments
    return _push_listing(listing, _name_of, _Room(min(count, MAX_TRANSFER), MAX_TRANSFER))


def push_entries(arguments: Arguments, listing: Listing, _: bytes) -> Reply:
    """Pack READDIRPLUS3resok, as much of it as the client has room for."""
    *_others, names, reply = arguments
    return _push_listing(listing, _entry_of, _Room(min(reply, MAX_TRANSFER), names))


def _name_of(entry: Entry) -> bytes:
    head = _ENTRY_HEAD.pack(1, entry.fileid, len(entry.name))
    return b"".join((head, entry.name, PADDING[-len(entry.name) & 3], U64.pack(entry.cookie)))


def _entry_of(entry: Entry) -> bytes:
    handle = _FALSE if entry.handle is None else _TRUE + opaque(entry.handle)
    return _name_of(entry) + post_op(entry.attributes) + handle


def _push_listing(listing: Listing, pack: Callable[[Entry], bytes], room: _Room) -> Reply:
    head = post_op(listing.directory) + _NO_VERIFIER
    entries = _fitting(listing.entries, pack, _Room(room.reply - len(head) - _END_OF_LIST, room.names))
    is_end = len(entries) == len(listing.entries)
    if not entries and (not is_end or len(head) + _END_OF_LIST > room.reply):
        raise NfsError(Status.TOOSMALL, f"{room.reply} bytes")
    return (b"".join((_OK, head, *entries, _FALSE, _TRUE if is_end else _FALSE)),)


def _fitting(entries: Sequence[Entry], pack: Callable[[Entry], bytes], room: _Room) -> list[bytes]:
    """Pack entries while there is room; the room for names is a wish that the first entry may exceed."""
    packed: list[bytes] = []
    used = names = 0
    for entry in entries:
        item = pack(entry)
        used += len(item)
        names += _ENTRY_HEAD.size + len(entry.name) + U64.size
        if used > room.reply or (packed and names > room.names):
            return packed
        packed.append(item)
    return packed
