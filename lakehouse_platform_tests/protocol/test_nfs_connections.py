"""Connections: many, slow, hostile and broken ones, none of which keeps the others from being answered."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import struct
import threading
from collections.abc import Generator

import pytest

from lakehouse_platform.nfs.engine import Peer
from lakehouse_platform.nfs.operations import Caller, FileType, Made, Maybe, SetAttributes, Status
from lakehouse_platform_tests.support.memory_filesystem import MemoryFilesystem
from lakehouse_platform_tests.support.nfs_client import NFS, NfsClient, NfsStatusError, call_message, marked
from lakehouse_platform_tests.support.nfs_server import LiveServer, nfs_server, trust_everyone
from lakehouse_platform_tests.support.nfs_xdr import opaque, sattr, u32, u64

ROOT = (1).to_bytes(8, "big")
MIB = 1 << 20


class Gated(MemoryFilesystem):
    """Makes directories when `gate` is opened; `entered` tells that one is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.entered, self.calls = threading.Event(), threading.Event(), 0

    def mkdir(self, caller: Caller, directory: bytes, name: bytes, new: SetAttributes) -> Maybe[Made]:
        return self._mkdir_later(directory, name, new)

    async def _mkdir_later(self, directory: bytes, name: bytes, new: SetAttributes) -> Made:
        self.calls += 1
        self.entered.set()
        await asyncio.to_thread(self.gate.wait, 30)
        return self.make(directory, name, FileType.DIRECTORY, new)


MKDIR = opaque(ROOT) + opaque(b"d") + sattr(SetAttributes())


@pytest.fixture
def gated() -> Gated:
    return Gated()


@pytest.fixture
def server(gated: Gated) -> Generator[LiveServer]:
    with nfs_server(gated) as live:
        yield live
        gated.gate.set()


def is_answering(port: int) -> bool:
    with NfsClient(port) as client:
        client.call(NFS, 0).end()
        return True


def is_hung_up(client: NfsClient) -> bool:
    try:
        return client.receive_record() == b""
    except ConnectionResetError:
        return True


def test_a_slow_operation_does_not_hold_up_those_behind_it(gated: Gated, server: LiveServer) -> None:
    with NfsClient(server.port) as client:
        slow = client.send(NFS, 9, MKDIR)
        client.receive(client.send(NFS, 0, b"")).end()
        gated.gate.set()
        assert client.receive(slow).u32() == Status.OK


def test_pipelined_calls_are_all_answered(server: LiveServer) -> None:
    with NfsClient(server.port) as client:
        calls = [marked(call_message(xid, NFS, 1, opaque(ROOT), client.credential)) for xid in range(5000)]
        sender = threading.Thread(target=client.send_raw, args=(b"".join(calls),))
        sender.start()
        answered = {int.from_bytes(client.receive_record()[:4], "big") for _ in calls}
        sender.join()
        assert answered == set(range(5000))


def test_a_retransmission_joins_the_call_that_still_runs(gated: Gated, server: LiveServer) -> None:
    with NfsClient(server.port) as lost:
        xid = lost.send(NFS, 9, MKDIR)
        assert gated.entered.wait(10)
    with NfsClient(server.port) as client:
        client.send(NFS, 9, MKDIR, xid=xid)
        client.receive(client.send(NFS, 0, b"")).end()
        gated.gate.set()
        assert client.receive(xid).u32() == Status.OK
    assert gated.calls == 1


def test_a_retransmission_after_the_answer_was_lost_is_answered_the_same(
    gated: Gated, server: LiveServer
) -> None:
    gated.gate.set()
    with NfsClient(server.port) as client:
        xid = client.send(NFS, 9, MKDIR)
        first = client.receive(xid).rest()
    with NfsClient(server.port) as client:
        client.send(NFS, 9, MKDIR, xid=xid)
        assert client.receive(xid).rest() == first
        with pytest.raises(NfsStatusError, match="EXIST"):
            client.mkdir(ROOT, "d")
    assert gated.calls == 2


@pytest.mark.parametrize(
    "hostile",
    [
        u32(0xFFFFFFFF),
        u32(0x80000000 | (MIB + (64 << 10) + 1)),
        u32(MIB) + bytes(MIB) + u32(MIB),
        marked(b""),
        marked(b"GET / HTTP/1.1\r\n\r\n"),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        marked(u32(1, 1, 0, 0, 0, 0)),
    ],
    ids=["the longest", "one byte too long", "fragments", "empty", "text in a record", "HTTP", "a reply"],
)
def test_who_does_not_speak_rpc_is_hung_up_on(
    server: LiveServer, hostile: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), NfsClient(server.port) as client:
        client.send_raw(hostile)
        assert is_hung_up(client)
        assert is_answering(server.port)
    assert "closing the connection of 127.0.0.1" in caplog.text


def test_a_record_of_exactly_the_limit_is_taken(server: LiveServer) -> None:
    with NfsClient(server.port) as client:
        head = call_message(7, NFS, 0, b"", client.credential)
        client.send_raw(marked(head + bytes(MIB + (64 << 10) - len(head))))
        assert client.receive_record()[-4:] == u32(4)


def test_a_record_in_a_thousand_fragments_is_one_call(server: LiveServer) -> None:
    with NfsClient(server.port) as client:
        message = call_message(7, NFS, 1, opaque(ROOT), client.credential)
        pieces = b"".join(u32(1) + message[at : at + 1] + u32(0) * 10 for at in range(len(message)))
        client.send_raw(pieces + u32(0x80000000))
        assert client.receive(7).u32() == Status.OK


def test_clients_that_stop_in_the_middle_hold_nobody_up(server: LiveServer) -> None:
    stuck = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    for number, one in enumerate(stuck):
        one.sendall((u32(0x80000000 | MIB) + bytes(2000))[: number + 1])
    assert is_answering(server.port)
    for one in stuck:
        one.close()


def test_a_client_that_leaves_in_the_middle_of_a_call_leaves_the_call_running(
    gated: Gated, server: LiveServer
) -> None:
    with NfsClient(server.port) as client:
        client.send(NFS, 9, MKDIR)
        assert gated.entered.wait(10)
    gated.gate.set()
    with NfsClient(server.port) as client, pytest.raises(NfsStatusError, match="EXIST"):
        client.mkdir(ROOT, "d")


def test_a_client_that_takes_no_answers_costs_no_memory_and_gets_them_later() -> None:
    filesystem = MemoryFilesystem()
    handle = filesystem.add_file("big", memoryview(bytes(range(256)) * 4096))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with nfs_server(filesystem) as server, NfsClient(server.port) as client:
        reads = 500
        for _ in range(reads):
            client.send(NFS, 6, opaque(handle) + u64(0) + u32(MIB))
        assert is_answering(server.port)
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown_kib < 100 * 1024
        for _ in range(reads):
            assert len(client.receive_record()) > MIB


def test_thousands_of_idle_connections_leave_the_server_answering(server: LiveServer) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2000)]
    assert is_answering(server.port)
    assert server.listener.connections >= 2000
    for one in idle:
        one.close()


def is_turned_away(port: int) -> bool:
    with NfsClient(port) as client:
        return is_hung_up(client)


def test_who_is_not_admitted_is_turned_away() -> None:
    with nfs_server(MemoryFilesystem(), admit=lambda _: None) as server:
        assert is_turned_away(server.port)
        assert server.listener.connections == 0


def test_a_connection_that_nobody_can_judge_is_turned_away() -> None:
    judged = 0

    def admit(transport: asyncio.Transport) -> Peer | None:
        nonlocal judged
        judged += 1
        if judged == 1:
            raise RuntimeError("a mistake")
        return trust_everyone(transport)

    with nfs_server(MemoryFilesystem(), admit=admit) as server:
        assert is_turned_away(server.port)
        assert is_answering(server.port)


def test_who_is_not_trusted_may_ask_but_not_send_much() -> None:
    def distrust(_: asyncio.Transport) -> Peer | None:
        return Peer("127.0.0.1:1", trusted=False)

    with nfs_server(MemoryFilesystem(), admit=distrust) as server, NfsClient(server.port) as client:
        client.mount("/export")
        client.send_raw(u32(0x80000000 | (8 << 10) + 1))
        assert is_hung_up(client)


def test_no_more_connections_than_allowed_are_taken() -> None:
    with (
        nfs_server(MemoryFilesystem(), max_connections=2) as server,
        NfsClient(server.port) as one,
        NfsClient(server.port) as two,
    ):
        one.call(NFS, 0).end()
        two.call(NFS, 0).end()
        assert is_turned_away(server.port)
        one.call(NFS, 0).end()


def test_closing_answers_what_is_under_way_first(gated: Gated, server: LiveServer) -> None:
    with NfsClient(server.port) as client, NfsClient(server.port) as idle:
        idle.call(NFS, 0).end()
        slow = client.send(NFS, 9, MKDIR)
        assert gated.entered.wait(10)
        closing = asyncio.run_coroutine_threadsafe(server.listener.close(drain_seconds=30), server.loop)
        assert idle.receive_record() == b""
        gated.gate.set()
        assert client.receive(slow).u32() == Status.OK
        assert client.receive_record() == b""
        closing.result(10)
    with pytest.raises(ConnectionRefusedError):
        NfsClient(server.port)


def test_closing_does_not_wait_for_ever(gated: Gated, server: LiveServer) -> None:
    with NfsClient(server.port) as client:
        client.send(NFS, 9, MKDIR)
        assert gated.entered.wait(10)
        server.do(server.listener.close(drain_seconds=0.1))
        with pytest.raises((ConnectionError, struct.error)):
            client.receive()


def test_a_mistake_in_an_operation_leaves_the_connection_open() -> None:
    class Mistaken(MemoryFilesystem):
        def mkdir(self, caller: Caller, directory: bytes, name: bytes, new: SetAttributes) -> Maybe[Made]:
            raise RuntimeError("a mistake")

    with nfs_server(Mistaken()) as server, NfsClient(server.port) as client:
        with pytest.raises(NfsStatusError, match="SERVERFAULT"):
            client.mkdir(ROOT, "d")
        client.call(NFS, 0).end()
