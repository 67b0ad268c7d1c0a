"""A client that caches, asks and writes as a kernel does, over a wire that repeats calls and changes their order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from lakehouse_platform.nfs.operations import Attributes, CreateMode, SetAttributes, Stable, Status
from lakehouse_platform_tests.support.nfs_client import MOUNT, NFS, NfsStatusError
from lakehouse_platform_tests.support.nfs_xdr import Reader, opaque, sattr, u32, u64
from lakehouse_platform_tests.support.simulated_server import SimulatedServer
from lakehouse_platform_tests.support.virtual_time import START_SECONDS

PAGE = 4096
_HEADER_BYTES = 4 + 4 + 4 + 4 + 8 + 4  # record mark, xid, reply, accepted, no verifier, success
_JUKEBOX_SECONDS = 5.0
_MOST_READ = 1 << 16

_NAMES = {
    1: "GETATTR", 2: "SETATTR", 3: "LOOKUP", 6: "READ", 7: "WRITE",
    8: "CREATE", 12: "REMOVE", 14: "RENAME", 21: "COMMIT",
}  # fmt: skip

Piece = tuple[int, bytes]


class KernelClient:
    """One mount on one machine.

    Attributes:
        content: What is cached of data.csv.
        handle: Of data.csv, as it was looked up last.
        sent: Data of all WRITEs.
        log: What was asked and answered.
    """

    def __init__(
        self, server: SimulatedServer, machine: bytes, chance: random.Random, log: list[str]
    ) -> None:
        self._server = server
        self.log = log
        self._machine = machine
        self._chance = chance
        self._xid = chance.getrandbits(31)
        self._cached: tuple[bytes, int, int] | None = None
        self.directory = b""
        self.handle = b""
        self.content = b""
        self.sent: list[bytes] = []

    @property
    def lives(self) -> int:
        """How often the server was killed."""
        return self._server.kills

    async def mount(self) -> None:
        """Mount the table."""
        reply = await self._call(MOUNT, 1, opaque(self._server.export.encode()))
        assert reply.u32() == 0
        self.directory = await self._lookup(reply.opaque(), b"data")

    # ── One call ──────────────────────────────────────────────────────────────────────────────────

    async def _call(self, program: int, procedure: int, arguments: bytes) -> Reader:
        self._xid = (self._xid + 1) & 0xFFFFFFFF
        xid, chance = self._xid, self._chance.random()
        reply = await self._server.ask(self._machine, xid, program, procedure, arguments)
        if chance < 0.05:
            # The answer was lost, so the same call comes again.
            await asyncio.sleep(self._chance.choice([0.0, 0.01, 0.1]))
            reply = await self._server.ask(self._machine, xid, program, procedure, arguments)
        return Reader(reply[_HEADER_BYTES:])

    async def _twice(self, program: int, procedure: int, arguments: bytes) -> Reader:
        """Send a call, and sometimes the same call again before the first is answered."""
        if self._chance.random() >= 0.05:
            return await self._call(program, procedure, arguments)
        self._xid = (self._xid + 1) & 0xFFFFFFFF
        xid, replies = self._xid, list[bytes]()

        async def ask() -> None:
            replies.append(
                await self._server.ask(
                    self._machine, xid, program, procedure, arguments, is_awaited=lambda: not replies
                )
            )

        await asyncio.gather(ask(), ask())
        return Reader(replies[0][_HEADER_BYTES:])

    async def _operate(self, procedure: int, arguments: bytes) -> Reader:
        while True:
            self._note(f"> {_NAMES.get(procedure, procedure)} {arguments[36:100]!r}")
            reply = await self._twice(NFS, procedure, arguments)
            status = Status(reply.u32())
            self._note(f"< {_NAMES.get(procedure, procedure)} {status.name}")
            if not status:
                return reply
            if status is not Status.JUKEBOX:
                raise NfsStatusError(status)
            await asyncio.sleep(_JUKEBOX_SECONDS)

    def _note(self, what: str) -> None:
        now = asyncio.get_running_loop().time() - START_SECONDS
        self.log.append(f"{now:8.3f} {self._machine.decode()} {what}")

    async def _lookup(self, directory: bytes, name: bytes) -> bytes:
        return (await self._operate(3, opaque(directory) + opaque(name))).opaque()

    async def getattr(self) -> Attributes:
        """Ask for the attributes of data.csv, as open(2) does, and the last close(2)."""
        return (await self._operate(1, opaque(self.handle))).attributes()

    async def commit(self, handle: bytes) -> bytes:
        """Make WRITEs durable; return the verifier."""
        reply = await self._operate(21, opaque(handle) + u64(0) + u32(0))
        reply.wcc()
        return reply.take(8)

    async def write(self, handle: bytes, piece: Piece, stable: Stable) -> bytes:
        """Send one WRITE; return the verifier."""
        offset, data = piece
        self.sent.append(data)
        reply = await self._operate(7, opaque(handle) + u64(offset) + u32(len(data), stable) + opaque(data))
        reply.wcc()
        assert reply.u32() == len(data)
        assert reply.u32() >= stable
        return reply.take(8)

    # ── data.csv ──────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> bytes:
        """Open data.csv, read what has changed of it, and return all of it."""
        self.handle = await self._lookup(self.directory, b"data.csv")
        await self._revalidate(await self.getattr())
        return self.content

    async def _revalidate(self, found: Attributes) -> None:
        while (key := (self.handle, found.size, found.ctime_ns)) != self._cached:
            data = bytearray()
            changed = False
            while len(data) < found.size and not changed:
                reply = await self._operate(
                    6, opaque(self.handle) + u64(len(data)) + u32(self._chance.choice([PAGE, _MOST_READ]))
                )
                now = reply.post_op()
                assert now is not None
                changed = (now.size, now.ctime_ns) != (found.size, found.ctime_ns)
                found = now
                reply.u32()
                ended = reply.flag()
                data += reply.opaque()
                if ended and not changed:
                    break
            if not changed:
                self.content, self._cached = bytes(data), key

    async def truncate(self, size: int) -> None:
        """Cut data.csv."""
        await self._operate(2, opaque(self.handle) + sattr(SetAttributes(size=size)) + u32(0))

    async def flush(self, handle: bytes, pieces: Sequence[Piece], *, unstable: bool) -> None:
        """Send dirty pages: durable ones in order, others in any, which a COMMIT follows."""
        if not unstable:
            for piece in pieces:
                await self.write(handle, piece, Stable.FILE_SYNC)
            return
        while True:
            order = self._chance.sample(pieces, len(pieces))
            width = len(order) if self._chance.random() < 0.5 else 1
            results = [
                result
                for at in range(0, len(order), width)
                for result in await self._at_once(handle, order[at : at + width])
            ]
            taken = {result for result in results if isinstance(result, bytes)}
            failed = [result for result in results if isinstance(result, NfsStatusError)]
            if not taken and failed:
                # Nothing to commit: the server waits so long for more of what it has refused.
                await asyncio.sleep(2.1)
                raise failed[0]
            verifier = await self._commit_after(handle, failed)
            if taken == {verifier}:
                return

    async def _at_once(self, handle: bytes, pieces: Sequence[Piece]) -> list[bytes | NfsStatusError]:
        async def one(piece: Piece) -> bytes | NfsStatusError:
            try:
                return await self.write(handle, piece, Stable.UNSTABLE)
            except NfsStatusError as error:
                return error

        return await asyncio.gather(*map(one, pieces))

    async def _commit_after(self, handle: bytes, failed: Sequence[NfsStatusError]) -> bytes:
        """Commit what was taken; then report what was not."""
        try:
            return await self.commit(handle)
        finally:
            if failed:
                raise failed[0]

    def wrote(self, content: bytes) -> None:
        """Note what the cache holds now; the next attributes that are asked for throw it away."""
        self.content, self._cached = content, None

    # ── Names ─────────────────────────────────────────────────────────────────────────────────────

    async def create(self, name: bytes, *, empty: bool = False) -> bytes:
        """Create a file with O_CREAT, and O_TRUNC if it is to be empty, and return its handle."""
        how = u32(CreateMode.UNCHECKED) + sattr(SetAttributes(mode=0o644, size=0 if empty else None))
        reply = await self._operate(8, opaque(self.directory) + opaque(name) + how)
        handle = reply.maybe(reply.opaque)
        return handle or await self._lookup(self.directory, name)

    async def remove(self, name: bytes) -> None:
        """Remove a name."""
        await self._operate(12, opaque(self.directory) + opaque(name))

    async def rename(self, old: bytes, new: bytes) -> None:
        """Move a name."""
        await self._operate(14, opaque(self.directory) + opaque(old) + opaque(self.directory) + opaque(new))


def pages(content: bytes, start: int, stop: int, *, whole: bool) -> list[Piece]:
    """Return the WRITEs of the pages that hold a range: one for each page, or one."""
    first = start // PAGE * PAGE
    last = min(len(content), -(-stop // PAGE) * PAGE)
    if whole:
        return [(first, content[first:last])] if last > first else []
    return [(at, content[at : min(at + PAGE, last)]) for at in range(first, last, PAGE)]
