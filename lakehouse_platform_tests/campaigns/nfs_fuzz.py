"""Damaged NFS calls: each is answered or refused, none raises, hangs or makes the server grow.

`python -m lakehouse_platform_tests.campaigns.nfs_fuzz --seconds 60 [--seed 1]`
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import random
import resource
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakehouse_platform.nfs.engine import MAX_RECORD, Engine, Peer
from lakehouse_platform.nfs.replay import ReplayCache
from lakehouse_platform.nfs.wire.records import RecordAssembler
from lakehouse_platform_tests.support.nfs_client import NFS, NfsClient, marked
from lakehouse_platform_tests.support.nfs_recording import prepared_filesystem, recorded_calls
from lakehouse_platform_tests.support.nfs_server import nfs_server

_PEER = Peer("127.0.0.1:700", trusted=True)
_SLOWEST_SECONDS = 2.0
_PATIENCE_SECONDS = 60
_ROUNDS_PER_FILESYSTEM = 2000
_WARM_UP_ROUNDS = 20_000
_MAX_GROWTH = 64 << 20
_WORDS = (
    0,
    1,
    2,
    3,
    4,
    5,
    16,
    17,
    64,
    65,
    255,
    256,
    1024,
    4096,
    1 << 16,
    1 << 20,
    1 << 31,
    (1 << 31) - 1,
    (1 << 32) - 1,
)
_XID_AND_KIND = 8


@dataclass
class Report:
    """What a campaign found.

    Attributes:
        rounds: Damaged messages that were sent.
        outcomes: How many were answered, refused as no call, or as no record.
        problems: Sentences on what is wrong; empty if all is well.
    """

    rounds: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])


class _Mistakes(logging.Handler):
    """Notes what the server logs as its own mistakes."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.ERROR)
        self._report = report
        self.message = b""

    def emit(self, record: logging.LogRecord) -> None:
        why = record.exc_info[1] if record.exc_info else None
        self._report.problems.append(f"{record.getMessage()}: {why!r} on {self.message.hex()}")


def _flip(message: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 8)):
        message[chance.randrange(len(message))] ^= 1 << chance.randrange(8)


def _set_word(message: bytearray, chance: random.Random) -> None:
    at = 4 * chance.randrange(max(1, len(message) // 4))
    message[at : at + 4] = struct.pack(">I", chance.choice(_WORDS))


def _cut(message: bytearray, chance: random.Random) -> None:
    del message[chance.randrange(len(message)) :]


def _extend(message: bytearray, chance: random.Random) -> None:
    message += chance.randbytes(chance.choice((1, 3, 4, 100, 5000)))


def _take_out(message: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(message))
    del message[at : at + chance.choice((1, 4, 8, 32))]


def _repeat(message: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(message))
    message[at:at] = message[at : at + 64]


_DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip, _set_word, _set_word, _set_word, _cut, _extend, _take_out, _repeat,
)  # fmt: skip


def damaged(calls: list[bytes], chance: random.Random) -> bytes:
    """Return a valid call with a few things wrong, most often behind its header."""
    message = bytearray(chance.choice(calls))
    if chance.random() < 0.2:
        other = chance.choice(calls)
        message = message[: chance.randrange(len(message)) or 1] + other[chance.randrange(len(other)) :]
    head = bytes(message[:_XID_AND_KIND]) if chance.random() < 0.8 else b""
    for _ in range(chance.randint(1, 3)):
        if message:
            chance.choice(_DAMAGES)(message, chance)
    return head + bytes(message[len(head) :])


def fuzz(seconds: float, seed: int) -> Report:
    """Send damaged calls for some time, straight to the engine."""
    report, chance, calls = Report(), random.Random(seed), recorded_calls()
    stop, memory = time.monotonic() + seconds, 0
    with _mistakes(report) as mistakes:
        engine = _new_engine()
        while time.monotonic() < stop:
            if report.rounds % _ROUNDS_PER_FILESYSTEM == 0:
                engine = _new_engine()
            if report.rounds == _WARM_UP_ROUNDS:
                memory = _peak_memory()
            mistakes.message = damaged(calls, chance)
            _send(engine, mistakes.message, chance, report)
    if memory and _peak_memory() - memory > _MAX_GROWTH:
        report.problems.append(f"memory grew by {(_peak_memory() - memory) >> 20} MiB")
    return report


def fuzz_connections(seed: int, connections: int) -> Report:
    """Send damaged calls with damaged marks over so many connections to a live server."""
    report, chance, calls = Report(), random.Random(seed), recorded_calls()
    with _mistakes(report) as mistakes, nfs_server(prepared_filesystem()) as server:
        for _ in range(connections):
            mistakes.message = damaged(calls, chance)
            report.rounds += 1
            report.outcomes[_exchange(server.port, mistakes.message, chance)] += 1
            with NfsClient(server.port) as client:
                client.call(NFS, 0).end()
    return report


def _exchange(port: int, message: bytes, chance: random.Random) -> str:
    stream = bytearray(marked(message) * chance.randint(1, 3))
    if chance.random() < 0.5:
        _flip(stream, chance)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            connection.sendall(stream)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass
        except OSError:
            return "hung up on"
    return "closed"


def _new_engine() -> Engine:
    engine = Engine(prepared_filesystem(), ReplayCache(), now=time.monotonic)
    engine.serve_at(2049)
    return engine


@contextmanager
def _mistakes(report: Report) -> Generator[_Mistakes]:
    mistakes = _Mistakes(report)
    loggers = [logging.getLogger(name) for name in ("lakehouse_platform.nfs", "asyncio")]
    for logger in loggers:
        logger.addHandler(mistakes)
    try:
        yield mistakes
    finally:
        for logger in loggers:
            logger.removeHandler(mistakes)


def _send(engine: Engine, message: bytes, chance: random.Random, report: Report) -> None:
    report.rounds += 1
    start = time.monotonic()
    try:
        outcome = _handle(engine, message) if chance.random() < 0.9 else _stream(engine, message, chance)
    except Exception as error:  # noqa: BLE001 - what escapes is what is looked for
        outcome = "escaped"
        report.problems.append(f"{error!r} on {message.hex()}")
    report.outcomes[outcome] += 1
    if time.monotonic() - start > _SLOWEST_SECONDS:
        report.problems.append(f"{time.monotonic() - start:.1f} s for {message.hex()}")


def _handle(engine: Engine, message: bytes) -> str:
    reply = engine.handle(message, _PEER)
    if reply is None:
        return "no call"
    assert isinstance(reply, tuple)
    data = b"".join(reply)
    (word,) = struct.unpack_from(">I", data)
    assert word == 0x80000000 | (len(data) - 4)
    assert data[4:8] == message[:4]
    return "answered"


def _stream(engine: Engine, message: bytes, chance: random.Random) -> str:
    """Send a stream of records whose marks are damaged too, in pieces."""
    stream = bytearray(marked(message) * chance.randint(1, 3))
    if chance.random() < 0.5:
        _flip(stream, chance)
    assembler = RecordAssembler(MAX_RECORD)
    size = chance.choice((1, 7, 64, 5000))
    for at in range(0, len(stream), size):
        try:
            records = list(assembler.feed(memoryview(stream)[at : at + size]))
        except ValueError:
            return "no record"
        for record in records:
            engine.handle(record, _PEER)
    return "streamed"


def _peak_memory() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10  # bytes there, KiB elsewhere


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    faulthandler.dump_traceback_later(arguments.seconds + _PATIENCE_SECONDS, exit=True)
    reports = [
        fuzz(arguments.seconds, arguments.seed),
        fuzz_connections(arguments.seed, connections=int(10 * arguments.seconds)),
    ]
    for report in reports:
        told = ", ".join(f"{count} {outcome}" for outcome, count in report.outcomes.most_common())
        sys.stdout.write(f"{report.rounds} damaged calls: {told}; {len(report.problems)} problems\n")
        sys.stdout.writelines(f"{problem}\n" for problem in report.problems[:20])
    return 1 if any(report.problems for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
