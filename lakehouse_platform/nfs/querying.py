"""`.query` and `.query.d`: SQL in, results out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lakehouse_platform.errors import InvalidSqlError, LakehouseError
from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.operations import NfsError, Stable, Status, Written
from lakehouse_platform.nfs.tree.handles import Kind, is_users, owned, user_of
from lakehouse_platform.nfs.tree.query_view import MOST_QUERY_BYTES, QueryFile
from lakehouse_platform.nfs.tree.scratch_tree import Node, Place
from lakehouse_platform.nfs.tree.served import ServedTable
from lakehouse_platform.nfs.tree.sql_door import SqlDoor, result_csv, result_json
from lakehouse_platform.nfs.tree.views import Text
from lakehouse_platform.nfs.turns import Turns

_T = TypeVar("_T")
_SQL = b".sql"
_PIECE = 1 << 20
# Who may read one table may ask for what takes half a minute, and a thread and a process; the server has 32 threads.
_MOST_AT_ONCE, _MOST_OF_A_USER = 8, 2


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a query in `.query.d` made: files by their ending."""

    files: dict[bytes, bytes]


class Querying:
    """Runs what is written to `.query` and `.query.d`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._turns = Turns(_MOST_AT_ONCE, _MOST_OF_A_USER)

    # ── .query ────────────────────────────────────────────────────────────────────────────────────

    def quick(self, at: At) -> Text | None:
        """Return what `.query` shows if no query waits to be run."""
        file = self._looked_at(at)
        return None if file.waiting else Text(file.content, file.changed_ns)

    async def shown(self, at: At) -> Text:
        """Return what `.query` shows, after running the query that waits."""
        file = self._looked_at(at)
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
        file = self._looked_at(at)
        if file.waiting and not await self._run(at, file):
            raise NfsError(Status.IO, "the query failed")

    async def _run(self, at: At, file: QueryFile) -> bool:
        text, file.waiting = bytes(file.text), False
        if not text.strip():
            return True
        try:
            shown = await self._asked(at.handle.mount, at.table, partial(_as_csv, text))
            file.show(shown, self._ctx.times.now_ns())
        except LakehouseError as error:
            await self._failed(at, file, error)
            return False
        return True

    async def _failed(self, at: At, file: QueryFile, error: LakehouseError) -> None:
        now_ns = self._ctx.times.now_ns()
        file.show(f"{error.message}\n".encode(), now_ns)
        shelf = owned(at.handle.mount, at.table.key)
        await asyncio.to_thread(self._ctx.rejected.say, shelf, f".query: {error.message}", now_ns)

    async def _asked(self, mount: bytes, served: ServedTable, act: Callable[[SqlDoor], _T]) -> _T:
        query = partial(self._ctx.visitors.query, mount, served, act)
        if not is_users(mount):
            return await asyncio.to_thread(query)
        async with self._turns.turn(user_of(mount)):
            return await asyncio.to_thread(query)

    def _looked_at(self, at: At) -> QueryFile:
        return self._ctx.queries.shown(at.handle.mount, at.handle.table)

    def _file(self, at: At) -> QueryFile:
        return self._ctx.queries.of(at.handle.mount, at.handle.table)

    # ── .query.d ──────────────────────────────────────────────────────────────────────────────────

    async def ran(self, number: int, mount: bytes) -> None:
        """Run a scratch file that was written, if it is one of `.query.d` and its name ends in `.sql`."""
        node = self._ctx.scratch.node(number)
        served = self._table_of(node.parent)
        if served is None or not node.name.endswith(_SQL) or node.size > MOST_QUERY_BYTES:
            return
        text = b"".join(bytes(part) for part in self._ctx.scratch.read(number, 0, MOST_QUERY_BYTES))
        if text.strip():
            try:
                outcome = await self._asked(mount, served, partial(_as_files, text))
            except LakehouseError as error:
                outcome = _Outcome({b".err": f"{error.message}\n".encode()})
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


def _as_csv(text: bytes, door: SqlDoor) -> bytes:
    return result_csv(door.run(text))


def _as_files(text: bytes, door: SqlDoor) -> _Outcome:
    result = door.run(text)
    files = {b".csv": result_csv(result)}
    try:
        files[b".json"] = result_json(result)
    except InvalidSqlError as error:  # CSV can hold columns of one name
        files[b".err"] = f"{error.message}\n".encode()
    return _Outcome(files)
