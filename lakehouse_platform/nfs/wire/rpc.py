"""Calls and replies of ONC RPC version 2 (RFC 5531), with the credentials AUTH_NONE and AUTH_SYS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import TypeAlias

from lakehouse_platform.nfs.operations import Buffer
from lakehouse_platform.nfs.wire.records import LAST_FRAGMENT
from lakehouse_platform.nfs.wire.xdr import MALFORMED, Unpacker

Reply: TypeAlias = Sequence[Buffer]
"""One record with its mark, in pieces that are sent one after the other."""

AUTH_NONE, AUTH_SYS = 0, 1
_RPC_VERSION = 2
_CALL, _REPLY = 0, 1
_ACCEPTED, _DENIED = 0, 1
_RPC_MISMATCH, _AUTH_ERROR = 0, 1
# RFC 5531 §8.2 and appendix A.
_MAX_AUTH_BYTES, _MAX_MACHINE_NAME, _MAX_GIDS = 400, 255, 16
_CALL_HEAD = Struct(">6I")
_IDS = Struct(">3I")
_REPLY_HEAD = Struct(">7I")
_REPLY_HEAD_BYTES = _REPLY_HEAD.size - 4


class AcceptStatus(IntEnum):
    """accept_stat, RFC 5531 §9."""

    SUCCESS = 0
    PROG_UNAVAIL = 1
    PROG_MISMATCH = 2
    PROC_UNAVAIL = 3
    GARBAGE_ARGS = 4


class AuthStatus(IntEnum):
    """auth_stat, RFC 5531 §9."""

    BAD_CREDENTIAL = 1
    BAD_VERIFIER = 3
    TOO_WEAK = 5


@dataclass(frozen=True, slots=True)
class Credential:
    """Who a call says it comes from."""

    flavor: int
    uid: int | None = None
    gids: tuple[int, ...] = ()
    machine: bytes = b""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, its arguments not yet taken apart."""

    xid: int
    program: int
    version: int
    procedure: int
    credential: Credential
    arguments: Unpacker


def pull_call(record: bytes | bytearray | memoryview) -> Call | Reply | None:
    """Take a call apart.

    Returns:
        The call; or the reply that refuses it; or None for what is no call at all, which nothing can be replied to.
    """
    unpacker = Unpacker(record)
    try:
        xid, kind, rpc_version, program, version, procedure = unpacker.numbers(_CALL_HEAD)
    except MALFORMED:
        return None
    if kind != _CALL:
        return None
    if rpc_version != _RPC_VERSION:
        return _denied(xid, _RPC_MISMATCH, _RPC_VERSION, _RPC_VERSION)
    try:
        credential = _pull_credential(unpacker)
    except MALFORMED:
        return auth_refused(xid, AuthStatus.BAD_CREDENTIAL)
    if not _has_empty_verifier(unpacker):
        return auth_refused(xid, AuthStatus.BAD_VERIFIER)
    return Call(xid, program, version, procedure, credential, unpacker)


def _pull_credential(unpacker: Unpacker) -> Credential:
    flavor = unpacker.uint()
    body = bytes(unpacker.opaque(_MAX_AUTH_BYTES))
    if flavor == AUTH_SYS:
        return _auth_sys(body)
    if flavor == AUTH_NONE and not body:
        return Credential(AUTH_NONE)
    raise ValueError(f"credential of flavor {flavor}")


@lru_cache(maxsize=1024)  # a client sends the same few credentials with every call
def _auth_sys(body: bytes) -> Credential:
    unpacker = Unpacker(body)
    unpacker.uint()  # an arbitrary stamp
    machine = bytes(unpacker.opaque(_MAX_MACHINE_NAME))
    uid, gid, count = unpacker.numbers(_IDS)
    if count > _MAX_GIDS:
        raise ValueError(f"{count} supplementary groups")
    gids = (gid, *(unpacker.uint() for _ in range(count)))
    unpacker.finish()
    return Credential(AUTH_SYS, uid, gids, machine)


def _has_empty_verifier(unpacker: Unpacker) -> bool:
    """Tell whether the verifier is AUTH_NONE's, as both flavors demand (RFC 5531 §10.1 and appendix A)."""
    try:
        return unpacker.uint() == AUTH_NONE and unpacker.uint() == 0
    except MALFORMED:
        return False


def accepted(xid: int, results: Reply) -> Reply:
    """Return the reply of a call that was carried out."""
    return _with_head(xid, AcceptStatus.SUCCESS, results)


def not_accepted(xid: int, status: AcceptStatus, *numbers: int) -> Reply:
    """Return the reply of a call that was not carried out; for PROG_MISMATCH with the lowest and highest version."""
    return _with_head(xid, status, (Struct(f">{len(numbers)}I").pack(*numbers),))


def auth_refused(xid: int, status: AuthStatus) -> Reply:
    """Return the reply of a call whose credential is not enough."""
    return _denied(xid, _AUTH_ERROR, status)


def _with_head(xid: int, status: AcceptStatus, results: Reply) -> Reply:
    size = _REPLY_HEAD_BYTES + sum(map(len, results))
    head = _REPLY_HEAD.pack(LAST_FRAGMENT | size, xid, _REPLY, _ACCEPTED, AUTH_NONE, 0, status)
    return (head + results[0], *results[1:])


def _denied(xid: int, status: int, *numbers: int) -> Reply:
    layout = Struct(f">{5 + len(numbers)}I")
    return (layout.pack(LAST_FRAGMENT | (layout.size - 4), xid, _REPLY, _DENIED, status, *numbers),)
