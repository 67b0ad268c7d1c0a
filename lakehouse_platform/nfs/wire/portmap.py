"""The port mapper, version 2 (RFC 1833 §3): where NFS and MOUNT are, for clients that ask before they connect."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct

from lakehouse_platform.nfs.operations import Status
from lakehouse_platform.nfs.wire import mount3, nfs3
from lakehouse_platform.nfs.wire.programs import Arguments, Procedure, Program, ask_nothing
from lakehouse_platform.nfs.wire.rpc import Reply
from lakehouse_platform.nfs.wire.xdr import U32, Unpacker

_NUMBER, _VERSION = 100000, 2
_TCP = 6
_MAPPING = Struct(">4I")
_FALSE, _TRUE = U32.pack(0), U32.pack(1)


class Portmap2(IntEnum):
    """Numbers of the procedures that are served."""

    GETPORT = 3
    DUMP = 4


def program(port: int) -> Program:
    """Return the port mapper of a server whose programs are all at one TCP port."""
    served = [(nfs3.PROGRAM.number, nfs3.PROGRAM.version), (mount3.PROGRAM.number, mount3.PROGRAM.version)]
    mappings = [(number, version, _TCP, port) for number, version in [(_NUMBER, _VERSION), *served]]

    def push_port(arguments: Arguments, _: object, __: bytes) -> Reply:
        wanted = arguments[:3]
        return (U32.pack(next((port for *served, port in mappings if tuple(served) == wanted), 0)),)

    def push_mappings(_: Arguments, __: object, ___: bytes) -> Reply:
        return (_list(mappings),)

    procedures: dict[int, Procedure] = {
        Portmap2.GETPORT: Procedure(ask_nothing, _pull_mapping, push_port, _refuse),
        Portmap2.DUMP: Procedure(ask_nothing, _pull_nothing, push_mappings, _refuse),
    }
    return Program(_NUMBER, _VERSION, procedures, is_public=True)


def _pull_mapping(unpacker: Unpacker) -> tuple[int, ...]:
    return unpacker.numbers(_MAPPING)


def _pull_nothing(_: Unpacker) -> tuple[()]:
    return ()


def _list(mappings: Sequence[tuple[int, int, int, int]]) -> bytes:
    return b"".join((*(_TRUE + _MAPPING.pack(*mapping) for mapping in mappings), _FALSE))


def _refuse(_: Status) -> Reply:
    """Return port 0, or the empty list: neither procedure has a status."""
    return (_FALSE,)
