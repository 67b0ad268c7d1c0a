"""From one record to its reply: decodes a call, has the file system carry it out and encodes what comes back.

Whatever arrives, nothing is raised: a call is answered, refused, or not understood.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.nfs.operations import Caller, Filesystem, NfsError, Status
from lakehouse_platform.nfs.replay import CallKey, ReplayCache, key_of
from lakehouse_platform.nfs.statuses import status_for
from lakehouse_platform.nfs.wire import mount3, nfs3, portmap
from lakehouse_platform.nfs.wire.nfs3_results import MAX_TRANSFER
from lakehouse_platform.nfs.wire.programs import Arguments, Procedure, Program
from lakehouse_platform.nfs.wire.rpc import (
    AUTH_NONE,
    AcceptStatus,
    AuthStatus,
    Call,
    Reply,
    accepted,
    auth_refused,
    not_accepted,
    pull_call,
)
from lakehouse_platform.nfs.wire.xdr import MALFORMED

MAX_RECORD = MAX_TRANSFER + (64 << 10)
"""Bytes of the longest call that is taken: a WRITE with its headers."""
_NULL = 0
_logger = logging.getLogger(__name__)

Replays: TypeAlias = ReplayCache[asyncio.Future[Reply]]


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection.

    Attributes:
        address: `host:port`.
        trusted: See `Caller`.
    """

    address: str
    trusted: bool

    @property
    def host(self) -> str:
        """The address without its port."""
        return self.address.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class _Job:
    """A call whose arguments have been taken apart, on its way through the file system."""

    call: Call
    procedure: Procedure
    arguments: Arguments
    key: CallKey | None


class Engine:
    """Answers calls of NFS, MOUNT and the port mapper. Lives on the event loop's thread.

    Args:
        filesystem: Carries the calls out.
        replay: Remembers those that must not be carried out twice.
        now: A clock in seconds that never goes back.
    """

    def __init__(self, filesystem: Filesystem, replay: Replays, *, now: Callable[[], float]) -> None:
        self._filesystem = filesystem
        self._replay = replay
        self._now = now
        self._programs = {program.number: program for program in (nfs3.PROGRAM, mount3.PROGRAM)}

    def serve_at(self, port: int) -> None:
        """Have the port mapper name a port."""
        mapper = portmap.program(port)
        self._programs[mapper.number] = mapper

    def handle(
        self, record: bytes | bytearray | memoryview, peer: Peer
    ) -> Reply | asyncio.Future[Reply] | None:
        """Answer one record.

        Returns:
            The reply; or a future of it, which may be left alone without stopping the operation; or None if the
            record is no call.
        """
        call = pull_call(record)
        if not isinstance(call, Call):
            return call
        program = self._programs.get(call.program)
        if program is None:
            return not_accepted(call.xid, AcceptStatus.PROG_UNAVAIL)
        return self._dispatch(call, program, peer)

    def _dispatch(self, call: Call, program: Program, peer: Peer) -> Reply | asyncio.Future[Reply]:
        if call.version != program.version:
            return not_accepted(call.xid, AcceptStatus.PROG_MISMATCH, program.version, program.version)
        if call.procedure == _NULL:
            return self._null(call)
        procedure = program.procedures.get(call.procedure)
        if procedure is None:
            return not_accepted(call.xid, AcceptStatus.PROC_UNAVAIL)
        if call.credential.flavor == AUTH_NONE and not program.is_public:
            return auth_refused(call.xid, AuthStatus.TOO_WEAK)
        return (
            self._carry_out(call, procedure, peer)
            if procedure.is_repeatable
            else self._once(call, procedure, peer)
        )

    @staticmethod
    def _null(call: Call) -> Reply:
        if len(call.arguments.rest()):
            return not_accepted(call.xid, AcceptStatus.GARBAGE_ARGS)
        return accepted(call.xid, (b"",))

    def _once(self, call: Call, procedure: Procedure, peer: Peer) -> Reply | asyncio.Future[Reply]:
        key = key_of(call, peer.host)
        earlier = self._replay.find(key, self._now())
        return self._carry_out(call, procedure, peer, key) if earlier is None else earlier

    def _carry_out(
        self, call: Call, procedure: Procedure, peer: Peer, key: CallKey | None = None
    ) -> Reply | asyncio.Future[Reply]:
        try:
            arguments = procedure.pull(call.arguments)
            call.arguments.finish()
        except NfsError as error:
            return accepted(call.xid, procedure.refuse(error.status))
        except MALFORMED:
            return not_accepted(call.xid, AcceptStatus.GARBAGE_ARGS)
        return self._run(_Job(call, procedure, arguments, key), peer)

    def _run(self, job: _Job, peer: Peer) -> Reply | asyncio.Future[Reply]:
        try:
            result = job.procedure.ask(self._filesystem, _caller(job, peer), job.arguments)
        except Exception as error:  # noqa: BLE001 - a mistake in one operation must not end the connection
            return self._settle(job, self._refusal(job, error))
        if not isinstance(result, Awaitable):
            return self._settle(job, self._encode(job, result))
        future = asyncio.ensure_future(self._wait(job, result))
        if job.key:
            self._replay.start(job.key, future)
        return future

    async def _wait(self, job: _Job, result: Awaitable[Any]) -> Reply:
        try:
            answer = self._encode(job, await result)
        except asyncio.CancelledError:
            self._forget(job)
            raise
        except Exception as error:  # noqa: BLE001 - as in _run
            answer = self._refusal(job, error)
        return self._settle(job, answer)

    def _encode(self, job: _Job, result: Any) -> Reply | Status:
        try:
            results = job.procedure.push(job.arguments, result, self._filesystem.verifier)
            return accepted(job.call.xid, results)
        except Exception as error:  # noqa: BLE001 - as in _run
            return self._refusal(job, error)

    def _settle(self, job: _Job, answer: Reply | Status) -> Reply:
        """Make a reply of an answer and remember it, unless the client is to try again later."""
        if not isinstance(answer, Status):
            reply = answer
        else:
            reply = accepted(job.call.xid, job.procedure.refuse(answer))
        if answer is Status.JUKEBOX:
            self._forget(job)
        elif job.key:
            self._replay.finish(job.key, reply, self._now())
        return reply

    def _forget(self, job: _Job) -> None:
        if job.key:
            self._replay.forget(job.key)

    def _refusal(self, job: _Job, error: Exception) -> Status:
        call = job.call
        if isinstance(error, NfsError):
            return error.status
        if isinstance(error, LakehouseError):
            is_nfs = call.program == nfs3.PROGRAM.number
            return status_for(error, nfs3.Nfs3(call.procedure) if is_nfs else None)
        _logger.error("procedure %d of program %d failed", call.procedure, call.program, exc_info=error)
        return Status.SERVERFAULT


def _caller(job: _Job, peer: Peer) -> Caller:
    who, known_by = job.call.credential, job.key.to_bytes() if job.key else b""
    return Caller(who.flavor, who.uid, who.gids, who.machine, peer.address, peer.trusted, known_by)
