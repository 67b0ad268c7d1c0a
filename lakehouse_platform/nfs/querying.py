"""`.query` and `.query.d`: SQL in, results out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.operations import NfsError, Stable, Status, Written
from lakehouse_platform.nfs.tree.handles import Kind
from lakehouse_platform.nfs.tree.query_view import MOST_QUERY_BYTES, QueryFile
from lakehouse_platform.nfs.tree.scratch_tree import Node, Place
from lakehouse_platform.nfs.tree.served import ServedTable
from lakehouse_platform.nfs.tree.sql_door import SqlDoor, result_csv, result_json
from lakehouse_platform.nfs.tree.views import Text

_SQL = b".sql"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a query in `.query.d` made: files by their ending."""

    files: dict[bytes, bytes]


class Querying:
    """Runs what is written to `.query` and `.query.d`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    # ── .query ────────────────────────────────────────────────────────────────────────────────────

    def quick(self, at: At) -> Text | None:
        """Return what `.query` shows if no query waits to be run."""
        file = self._file(at)
        return None if file.waiting else Text(file.content, file.changed_ns)

    async def shown(self, at: At) -> Text:
        """Return what `.query` shows, after running the query that waits."""
        file = self._file(at)
        if file.waiting:
            await self._run(at, file)
        return Text(file.content, file.changed_ns)

    def truncate(self, at: At, size: int) -> None:
        """Begin a new query."""
        self._file(at).truncate(size, self._ctx.times.now_ns())

    async def write(self, at: At, offset: int, data: bytes, stable: Stable) -> Written:
        """Take a piece of SQL, and run it unless more is announced.

        Raises:
            NfsError: INVAL: the query fails; the file then shows why.
        """
        file = self._file(at)
        file.write(offset, data)
        if stable is Stable.UNSTABLE:
            return Written(len(data), Stable.UNSTABLE, None)
        if not await self._run(at, file):
            raise NfsError(Status.INVAL, "the query failed")
        return Written(len(data), Stable.FILE_SYNC, None)

    async def commit(self, at: At) -> None:
        """Run the query that waits.

        Raises:
            NfsError: IO: it fails; the file then shows why.
        """
        file = self._file(at)
        if file.waiting and not await self._run(at, file):
            raise NfsError(Status.IO, "the query failed")

    async def _run(self, at: At, file: QueryFile) -> bool:
        text, file.waiting = bytes(file.text), False
        if not text.strip():
            return True
        try:
            file.show(await asyncio.to_thread(_as_csv, at.table.door, text), self._ctx.times.now_ns())
        except LakehouseError as error:
            await self._failed(at, file, error)
            return False
        return True

    async def _failed(self, at: At, file: QueryFile, error: LakehouseError) -> None:
        now_ns = self._ctx.times.now_ns()
        file.show(f"{error.message}\n".encode(), now_ns)
        await asyncio.to_thread(self._ctx.rejected.say, at.table.key, f".query: {error.message}", now_ns)

    def _file(self, at: At) -> QueryFile:
        return self._ctx.queries.of(at.handle.mount, at.handle.table)

    # ── .query.d ──────────────────────────────────────────────────────────────────────────────────

    async def ran(self, number: int) -> None:
        """Run a scratch file that was written, if it is one of `.query.d` and its name ends in `.sql`."""
        node = self._ctx.scratch.node(number)
        served = self._table_of(node.parent)
        if served is None or not node.name.endswith(_SQL) or node.size > MOST_QUERY_BYTES:
            return
        text = b"".join(bytes(part) for part in self._ctx.scratch.read(number, 0, MOST_QUERY_BYTES))
        if text.strip():
            outcome = await asyncio.to_thread(_as_files, served.door, text)
            self._put(node, outcome)

    def _table_of(self, place: Place) -> ServedTable | None:
        if isinstance(place, int) or place[8] != Kind.QUERIES:
            return None
        return self._ctx.catalog.known(place[:8])

    def _put(self, node: Node, outcome: _Outcome) -> None:
        stem = node.name.removesuffix(_SQL)
        for ending in (b".csv", b".json", b".err"):
            name = stem + ending
            if ending in outcome.files:
                self._write(node.parent, name, outcome.files[ending])
            elif self._ctx.scratch.lookup(node.parent, name):
                self._ctx.scratch.remove(node.parent, name)

    def _write(self, place: Place, name: bytes, data: bytes) -> None:
        made = self._ctx.scratch.make_file(place, name)
        self._ctx.scratch.truncate(made.inode, 0)
        for start in range(0, len(data), _PIECE):
            self._ctx.scratch.write(made.inode, start, data[start : start + _PIECE])


def _as_csv(door: SqlDoor, text: bytes) -> bytes:
    return result_csv(door.run(text))


def _as_files(door: SqlDoor, text: bytes) -> _Outcome:
    try:
        result = door.run(text)
        return _Outcome({b".csv": result_csv(result), b".json": result_json(result)})
    except LakehouseError as error:
        return _Outcome({b".err": f"{error.message}\n".encode()})
