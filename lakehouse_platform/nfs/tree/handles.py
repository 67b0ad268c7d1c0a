"""File handles: 32 bytes that name an object and the mount that asked for it, and that only the server can make.

A handle says all that is needed to find its object again, so handles outlive the server and need no table.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tickets import Profile

HANDLE_SIZE = 32
_FORMAT_VERSION = 1
_BODY = struct.Struct(">BBBB4s8sQ")
_ID = struct.Struct(">B8sQ")
_MAC_SIZE = HANDLE_SIZE - _BODY.size
NO_TABLE = bytes(8)


class Kind(IntEnum):
    """What a handle names. Numbers are part of handles that clients hold: never give one a new meaning."""

    LAKE = 1
    TABLE = 2
    DATA = 3
    VERSIONS = 4
    VERSION = 5
    TIMES = 6
    TIME = 7
    QUERIES = 8
    ERRORS = 9
    REJECTED = 10
    CSV = 16
    JSON = 17
    JSONL = 18
    SCHEMA = 19
    QUERY = 20
    HISTORY = 21
    STATS = 22
    LAST_ERROR = 23
    PARQUET = 24
    ERROR_FILE = 25
    REJECTED_FILE = 26
    SCRATCH = 32


_KINDS = frozenset(map(int, Kind))


@dataclass(frozen=True, slots=True)
class Handle:
    """What a file handle says.

    Attributes:
        kind: What it names.
        mount: The mount that it was given to: one client, whatever connections it uses.
        profile: The mount's profile.
        table: 8-byte hash of the table's location; zeros outside of tables.
        param: Which one of its kind: a version, a time, a hash of a path, a scratch file's number.
    """

    kind: Kind
    mount: bytes
    profile: Profile = Profile.SYNC
    table: bytes = NO_TABLE
    param: int = 0

    def to(self, kind: Kind, param: int = 0, table: bytes | None = None) -> Handle:
        """Return the handle of another object for the same mount, of the same table if no other is given."""
        return Handle(kind, self.mount, self.profile, self.table if table is None else table, param)

    @property
    def fileid(self) -> int:
        """The object's number, the same for all mounts and never 0."""
        return _fileid(self.kind, self.table, self.param)


def encode(handle: Handle, key: bytes) -> bytes:
    """Return the 32 bytes that clients keep."""
    body = _BODY.pack(
        _FORMAT_VERSION, handle.kind, handle.profile, 0, handle.mount, handle.table, handle.param
    )
    return body + _mac(body, key)


@lru_cache(maxsize=1 << 12)
def decode(data: bytes, key: bytes) -> Handle:
    """Return what 32 bytes from a client say.

    Raises:
        NfsError: BADHANDLE: they were not made with this key.
    """
    body, mac = data[: _BODY.size], data[_BODY.size :]
    if len(data) != HANDLE_SIZE or not hmac.compare_digest(mac, _mac(body, key)):
        raise NfsError(Status.BADHANDLE)
    version, kind, profile, _, mount, table, param = _BODY.unpack(body)
    if version != _FORMAT_VERSION or kind not in _KINDS:
        raise NfsError(Status.BADHANDLE)
    return Handle(Kind(kind), mount, Profile(profile), table, param)


def hash64(data: bytes) -> int:
    """Return a 64-bit number for a name, never 0."""
    return int.from_bytes(hashlib.blake2s(data, digest_size=8).digest(), "big") or 1


def fsid(profile: Profile, key: bytes) -> int:
    """Return the file system's number: one for each profile, or Linux would give both mounts one set of options."""
    return hash64(key + bytes([profile]))


def _mac(body: bytes, key: bytes) -> bytes:
    return hashlib.blake2s(body, digest_size=_MAC_SIZE, key=key).digest()


@lru_cache(maxsize=1 << 14)
def _fileid(kind: Kind, table: bytes, param: int) -> int:
    return hash64(_ID.pack(kind, table, param))
