"""The form in which NFS, MOUNT and portmap tell the engine what their procedures are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from lakehouse_platform.nfs.operations import Caller, Filesystem, Status
from lakehouse_platform.nfs.wire.rpc import Reply
from lakehouse_platform.nfs.wire.xdr import Unpacker

Arguments: TypeAlias = tuple[Any, ...]
Pull: TypeAlias = Callable[[Unpacker], Arguments]
Push: TypeAlias = Callable[[Arguments, Any, bytes], Reply]


def ask_nothing(filesystem: Filesystem, caller: Caller, arguments: Arguments) -> None:
    """Leave the file system alone: the wire knows the answer."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """How one procedure's call becomes a method of `Filesystem`, and the method's result a reply.

    Attributes:
        ask: Calls the method.
        pull: Takes the arguments apart. Raises one of `MALFORMED`, or `NfsError` for arguments that are refused.
        push: Packs the results, from the arguments, what the method returned and the server's write verifier. May raise
            `NfsError`.
        refuse: Packs the results of a refusal.
        is_repeatable: Whether carrying it out twice does no harm.
    """

    ask: Callable[[Filesystem, Caller, Arguments], Any]
    pull: Pull
    push: Push
    refuse: Callable[[Status], Reply]
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """One version of an RPC program.

    Attributes:
        number: As registered with IANA.
        version: The only version that is served.
        procedures: Its procedures by number, without NULL.
        is_public: Whether AUTH_NONE is enough for more than NULL.
    """

    number: int
    version: int
    procedures: Mapping[int, Procedure]
    is_public: bool = False
