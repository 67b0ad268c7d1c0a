"""From one record to one reply, whatever the record holds and whatever the file system does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from lakehouse_platform.errors import InvalidRowsError, StorageUnavailableError
from lakehouse_platform.nfs.engine import Engine, Peer
from lakehouse_platform.nfs.operations import (
    Attributes,
    Caller,
    FileType,
    Made,
    Maybe,
    NfsError,
    SetAttributes,
    Status,
)
from lakehouse_platform.nfs.replay import ReplayCache
from lakehouse_platform.nfs.wire.rpc import Reply
from lakehouse_platform_tests.support.memory_filesystem import EXPORT, MemoryFilesystem
from lakehouse_platform_tests.support.nfs_client import auth_sys, call_message
from lakehouse_platform_tests.support.nfs_xdr import Reader, opaque, sattr, u32, u64

PEER = Peer("127.0.0.1:700", trusted=True)
NFS, MOUNT, PORTMAP = 100003, 100005, 100000
NOBODY = u32(0, 0, 0, 0)


def engine_of(filesystem: MemoryFilesystem, now: Callable[[], float] = lambda: 0.0) -> Engine:
    engine = Engine(filesystem, ReplayCache(), now=now)
    engine.serve_at(2049)
    return engine


def words(reply: object) -> tuple[int, ...]:
    assert isinstance(reply, tuple)
    data = b"".join(reply)
    return tuple(int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4))[1:]


def answer(
    engine: Engine,
    program: int,
    procedure: int,
    arguments: bytes = b"",
    credential: bytes | None = None,
    xid: int = 7,
) -> Reply | Awaitable[Reply] | None:
    credential = auth_sys() if credential is None else credential
    return engine.handle(call_message(xid, program, procedure, arguments, credential), PEER)


def mkdir(name: bytes) -> bytes:
    return opaque((1).to_bytes(8, "big")) + opaque(name) + sattr(SetAttributes())


def test_null_is_answered_to_anybody() -> None:
    engine = engine_of(MemoryFilesystem())
    for program in (NFS, MOUNT, PORTMAP):
        assert words(answer(engine, program, 0, credential=NOBODY)) == (7, 1, 0, 0, 0, 0)


def test_all_else_needs_a_name() -> None:
    engine = engine_of(MemoryFilesystem())
    for program, procedure, arguments in (
        (NFS, 1, opaque(b"x")),
        (NFS, 19, b""),
        (MOUNT, 1, opaque(EXPORT)),
        (MOUNT, 5, b""),
    ):
        assert words(answer(engine, program, procedure, arguments, NOBODY)) == (7, 1, 1, 1, 5)


def test_the_port_mapper_answers_callers_without_a_name() -> None:
    engine = engine_of(MemoryFilesystem())
    assert words(answer(engine, PORTMAP, 3, u32(NFS, 3, 6, 0), NOBODY))[-1] == 2049


@pytest.mark.parametrize(
    ("program", "version", "procedure", "refusal"),
    [
        (100227, 3, 0, (1,)),
        (100021, 4, 0, (1,)),
        (NFS, 4, 0, (2, 3, 3)),
        (NFS, 2, 1, (2, 3, 3)),
        (MOUNT, 1, 1, (2, 3, 3)),
        (PORTMAP, 4, 3, (2, 2, 2)),
        (NFS, 3, 22, (3,)),
        (MOUNT, 3, 6, (3,)),
        (PORTMAP, 2, 5, (3,)),
    ],
)
def test_what_is_not_served_is_named(
    program: int, version: int, procedure: int, refusal: tuple[int, ...]
) -> None:
    message = u32(7, 0, 2, program, version, procedure) + auth_sys()
    assert words(engine_of(MemoryFilesystem()).handle(message, PEER)) == (7, 1, 0, 0, 0, *refusal)


@pytest.mark.parametrize(
    ("procedure", "arguments"), [(0, b"junk"), (1, b""), (1, opaque(b"handle") + b"junk")]
)
def test_garbage_is_called_garbage(procedure: int, arguments: bytes) -> None:
    assert words(answer(engine_of(MemoryFilesystem()), NFS, procedure, arguments)) == (7, 1, 0, 0, 0, 4)


def test_what_is_no_call_has_no_answer() -> None:
    assert engine_of(MemoryFilesystem()).handle(b"hello", PEER) is None


def test_hard_links_and_devices_are_not_supported() -> None:
    engine = engine_of(MemoryFilesystem())
    assert words(answer(engine, NFS, 11, b"whatever")) == (7, 1, 0, 0, 0, 0, Status.NOTSUPP, 0, 0)
    assert words(answer(engine, NFS, 15, b"whatever")) == (7, 1, 0, 0, 0, 0, Status.NOTSUPP, 0, 0, 0)


def test_the_file_system_is_told_who_calls() -> None:
    callers: list[Caller] = []

    class Asking(MemoryFilesystem):
        def getattr(self, caller: Caller, handle: bytes) -> Attributes:
            callers.append(caller)
            raise NfsError(Status.STALE)

    answer(engine_of(Asking()), NFS, 1, opaque(b"x"), auth_sys(b"host", 1000, (5, 6)))
    assert callers == [Caller(1, 1000, (0, 5, 6), b"host", "127.0.0.1:700", trusted=True)]


class Failing(MemoryFilesystem):
    """Raises what it is given, at once or a little later."""

    def __init__(self, error: Exception, *, late: bool) -> None:
        super().__init__()
        self.error, self.late, self.calls = error, late, 0

    def mkdir(self, caller: Caller, directory: bytes, name: bytes, new: SetAttributes) -> Maybe[Made]:
        self.calls += 1
        if self.late:
            return self._fail_late()
        raise self.error

    async def _fail_late(self) -> Made:
        await asyncio.sleep(0)
        raise self.error


async def finished(reply: Reply | Awaitable[Reply] | None) -> Reply | None:
    return await reply if isinstance(reply, Awaitable) else reply


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NfsError(Status.DQUOT), Status.DQUOT),
        (InvalidRowsError("no"), Status.INVAL),
        (StorageUnavailableError("away"), Status.JUKEBOX),
        (RuntimeError("a mistake"), Status.SERVERFAULT),
    ],
)
def test_errors_become_statuses(error: Exception, status: Status, late: bool) -> None:
    async def run() -> Reply | None:
        return await finished(answer(engine_of(Failing(error, late=late)), NFS, 9, mkdir(b"d")))

    assert words(asyncio.run(run())) == (7, 1, 0, 0, 0, 0, status, 0, 0)


def test_a_mistake_is_logged_with_where_it_happened(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer(engine_of(Failing(RuntimeError("a mistake"), late=False)), NFS, 9, mkdir(b"d"))
    assert "a mistake" in caplog.text
    assert "memory_filesystem" in caplog.text or "test_engine" in caplog.text


def test_a_result_that_cannot_be_told_is_a_fault_of_the_server() -> None:
    class Odd(MemoryFilesystem):
        def getattr(self, caller: Caller, handle: bytes) -> Attributes:
            return cast("Attributes", "not attributes")

    assert words(answer(engine_of(Odd()), NFS, 1, opaque(b"x"))) == (7, 1, 0, 0, 0, 0, Status.SERVERFAULT)


def test_a_change_that_is_asked_for_again_is_answered_again_but_made_once() -> None:
    filesystem = MemoryFilesystem()
    engine = engine_of(filesystem)
    first = answer(engine, NFS, 9, mkdir(b"d"))
    again = engine.handle(
        call_message(7, NFS, 9, mkdir(b"d"), auth_sys()), Peer("127.0.0.1:999", trusted=True)
    )
    assert words(first) == words(again)
    assert words(first)[6] == Status.OK
    assert words(answer(engine, NFS, 9, mkdir(b"d"), xid=8))[6] == Status.EXIST


@pytest.mark.parametrize(
    ("credential", "peer"),
    [
        (auth_sys(b"another"), PEER),
        (auth_sys(uid=5), PEER),
        (auth_sys(), Peer("10.0.0.1:700", trusted=True)),
    ],
    ids=["machine", "user", "address"],
)
def test_another_client_with_the_same_transaction_id_is_not_answered_for_the_first(
    credential: bytes, peer: Peer
) -> None:
    engine = engine_of(MemoryFilesystem())
    answer(engine, NFS, 9, mkdir(b"d"))
    assert words(engine.handle(call_message(7, NFS, 9, mkdir(b"d"), credential), peer))[6] == Status.EXIST


def test_a_transaction_id_that_comes_round_again_for_something_else_is_new() -> None:
    engine = engine_of(MemoryFilesystem())
    answer(engine, NFS, 9, mkdir(b"d"))
    assert words(answer(engine, NFS, 9, mkdir(b"e")))[6] == Status.OK


def test_an_old_answer_is_not_given_again() -> None:
    clock = [0.0]
    engine = engine_of(MemoryFilesystem(), lambda: clock[0])
    answer(engine, NFS, 9, mkdir(b"d"))
    clock[0] = 121.0
    assert words(answer(engine, NFS, 9, mkdir(b"d")))[6] == Status.EXIST


@pytest.mark.parametrize("late", [False, True])
def test_a_call_that_is_to_be_tried_later_is_carried_out_again(late: bool) -> None:
    filesystem = Failing(NfsError(Status.JUKEBOX), late=late)

    async def run() -> None:
        engine = engine_of(filesystem)
        for _ in range(2):
            await finished(answer(engine, NFS, 9, mkdir(b"d")))

    asyncio.run(run())
    assert filesystem.calls == 2


def test_a_call_that_is_asked_for_while_it_runs_is_joined() -> None:
    async def run() -> None:
        filesystem = Slow(asyncio.Event())
        engine = engine_of(filesystem)
        first, again = (answer(engine, NFS, 9, mkdir(b"d")) for _ in range(2))
        assert isinstance(first, Awaitable)
        assert first is again
        filesystem.gate.set()
        assert words(await first)[6] == Status.OK
        assert answer(engine, NFS, 9, mkdir(b"d")) == await first
        assert filesystem.calls == 1

    asyncio.run(run())


def test_a_cancelled_call_may_be_made_again() -> None:
    async def run() -> None:
        filesystem = Slow(asyncio.Event())
        engine = engine_of(filesystem)
        first = answer(engine, NFS, 9, mkdir(b"d"))
        assert isinstance(first, asyncio.Future)
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        filesystem.gate.set()
        assert words(await finished(answer(engine, NFS, 9, mkdir(b"d"))))[6] == Status.OK

    asyncio.run(run())


class Slow(MemoryFilesystem):
    """Makes directories when a gate opens."""

    def __init__(self, gate: asyncio.Event) -> None:
        super().__init__()
        self.gate, self.calls = gate, 0

    def mkdir(self, caller: Caller, directory: bytes, name: bytes, new: SetAttributes) -> Maybe[Made]:
        return self._mkdir_later(directory, name, new)

    async def _mkdir_later(self, directory: bytes, name: bytes, new: SetAttributes) -> Made:
        self.calls += 1
        await self.gate.wait()
        return self.make(directory, name, FileType.DIRECTORY, new)


def test_read_hands_on_the_file_system_s_own_buffers() -> None:
    filesystem = MemoryFilesystem()
    handle = filesystem.add_file("big", memoryview(bytes(1 << 20)))
    reply = answer(engine_of(filesystem), NFS, 6, opaque(handle) + u64(0) + u32(1 << 20))
    assert isinstance(reply, tuple)
    _, data, padding = reply
    assert isinstance(data, memoryview)
    assert (len(data), padding) == (1 << 20, b"")


def test_mounting_tells_the_handle() -> None:
    engine = engine_of(MemoryFilesystem())
    reply = answer(engine, MOUNT, 1, opaque(EXPORT))
    assert isinstance(reply, tuple)
    reader = Reader(b"".join(reply)[28:])
    assert (reader.u32(), reader.opaque()) == (0, (1).to_bytes(8, "big"))
    assert words(answer(engine, MOUNT, 1, opaque(b"/elsewhere")))[6] == 2
