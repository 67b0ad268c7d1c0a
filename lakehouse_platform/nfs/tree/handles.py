"""File handles: they name an object and the mount that asked for it, and only the server can make them.

A handle says all that is needed to find its object again, so handles outlive the server and need no table. Those of a
mount of the server's owner have 32 bytes. Those of a user's mount have the 64 that NFS allows: they also say whose
sign-in the mount belongs to, so that each call tells who acts.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from uuid import UUID

from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tickets import Profile

HANDLE_SIZE = 32
USER_HANDLE_SIZE = 64  # NFS3_FHSIZE, RFC 1813 §2.4
_FORMAT_VERSION, _USER_FORMAT_VERSION = 1, 2
_BODY = struct.Struct(">BBBB4s8sQ")
_USER_BODY = struct.Struct(">BBBB36s8sQ")
_ID = struct.Struct(">B8sQ")
_MAC_SIZE = HANDLE_SIZE - _BODY.size
_USER_MAC_SIZE = USER_HANDLE_SIZE - _USER_BODY.size
NO_TABLE = bytes(8)
MOUNT_BYTES = 4
_ID_BYTES = 16
_USER_MOUNT_BYTES = MOUNT_BYTES + 2 * _ID_BYTES


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
        mount: The mount that it was given to: one client, whatever connections it uses; see `user_mount`.
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


def user_mount(mount: bytes, session_id: UUID, user_id: UUID) -> bytes:
    """Return a mount as it stands in handles if it is a user's: with the sign-in that it belongs to, and whose it is.

    The user is there too because a sign-in is forgotten when it ends, and its mount's last acts are still somebody's.
    """
    return mount + session_id.bytes + user_id.bytes


def is_users(mount: bytes) -> bool:
    """Tell whether a mount is a user's, and not the server's owner's."""
    return len(mount) == _USER_MOUNT_BYTES


def session_of(mount: bytes) -> str:
    """Return the id of the sign-in that a user's mount belongs to."""
    return str(UUID(bytes=mount[MOUNT_BYTES : MOUNT_BYTES + _ID_BYTES]))


def user_of(mount: bytes) -> str:
    """Return the id of the user whose mount it is."""
    return str(UUID(bytes=mount[MOUNT_BYTES + _ID_BYTES :]))


def owned(mount: bytes, place: bytes) -> bytes:
    """Return the place where something is kept for whoever a mount belongs to: users do not see each other's."""
    return place + mount[MOUNT_BYTES + _ID_BYTES :] if is_users(mount) else place


def encode(handle: Handle, key: bytes) -> bytes:
    """Return the bytes that clients keep."""
    of_user = is_users(handle.mount)
    body = (_USER_BODY if of_user else _BODY).pack(
        _USER_FORMAT_VERSION if of_user else _FORMAT_VERSION,
        handle.kind,
        handle.profile,
        0,
        handle.mount,
        handle.table,
        handle.param,
    )
    return body + _mac(body, key, _USER_MAC_SIZE if of_user else _MAC_SIZE)


@lru_cache(maxsize=1 << 12)
def decode(data: bytes, key: bytes) -> Handle:
    """Return what bytes from a client say.

    Raises:
        NfsError: BADHANDLE: they were not made with this key.
    """
    of_user = len(data) == USER_HANDLE_SIZE
    layout, mac_size = (_USER_BODY, _USER_MAC_SIZE) if of_user else (_BODY, _MAC_SIZE)
    body, mac = data[: layout.size], data[layout.size :]
    if len(mac) != mac_size or not hmac.compare_digest(mac, _mac(body, key, mac_size)):
        raise NfsError(Status.BADHANDLE)
    version, kind, profile, _, mount, table, param = layout.unpack(body)
    if version != (_USER_FORMAT_VERSION if of_user else _FORMAT_VERSION) or kind not in _KINDS:
        raise NfsError(Status.BADHANDLE)
    return Handle(Kind(kind), mount, Profile(profile), table, param)


def hash64(data: bytes) -> int:
    """Return a 64-bit number for a name, never 0."""
    return int.from_bytes(hashlib.blake2s(data, digest_size=8).digest(), "big") or 1


def fsid(profile: Profile, key: bytes) -> int:
    """Return the file system's number: one for each profile, or Linux would give both mounts one set of options."""
    return hash64(key + bytes([profile]))


def _mac(body: bytes, key: bytes, size: int) -> bytes:
    return hashlib.blake2s(body, digest_size=size, key=key).digest()


@lru_cache(maxsize=1 << 14)
def _fileid(kind: Kind, table: bytes, param: int) -> int:
    return hash64(_ID.pack(kind, table, param))
