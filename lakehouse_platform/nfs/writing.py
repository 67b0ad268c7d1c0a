"""WRITE, SETATTR and COMMIT."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.operations import (
    Attributes,
    FileType,
    NfsError,
    SetAttributes,
    Stable,
    Status,
    Written,
)
from lakehouse_platform.nfs.querying import Querying
from lakehouse_platform.nfs.reading import Reading
from lakehouse_platform.nfs.tree.handles import Kind
from lakehouse_platform.nfs.tree.nodes import DIRECTORIES, is_editable


class Writing:
    """Changes bytes and attributes."""

    def __init__(self, ctx: Context, reading: Reading, querying: Querying) -> None:
        self._ctx = ctx
        self._reading = reading
        self._querying = querying

    def write(self, at: At, offset: int, data: memoryview, stable: Stable) -> Awaitable[Written] | Written:
        """Take bytes. Replies on views carry no attributes, so that Linux asks for them in the last close(2)."""
        self._check_editable(at)
        if at.kind is Kind.SCRATCH:
            return self._write_scratch(at, offset, data, stable)
        if at.kind is Kind.QUERY:
            return self._querying.write(at, offset, bytes(data), stable)
        self._ctx.readers.release(at.view)
        return self._ctx.editor.write(at.handle.mount, at.table, offset, data, stable)

    def setattr(
        self, at: At, new: SetAttributes, guard_ns: int | None
    ) -> Awaitable[Attributes | None] | Attributes | None:
        """Change attributes: of a view only its size; its times and mode stay what they are."""
        self._ctx.check_writable(at)
        if at.kind is Kind.SCRATCH:
            return self._set_scratch(at, new, guard_ns)
        if new.uid not in (None, self._ctx.access.uid) or new.gid not in (None, self._ctx.access.gid):
            raise NfsError(Status.PERM, "views belong to the server's owner")
        if new.size is None:
            return None
        return self._guarded(at, new.size, guard_ns)

    def commit(self, at: At) -> Awaitable[Attributes | None]:
        """Make what was written durable, and run a query that waits."""
        if at.kind is Kind.SCRATCH:
            return self._commit_scratch(at)
        return self._commit_view(at)

    # ── Views ─────────────────────────────────────────────────────────────────────────────────────

    def _check_editable(self, at: At) -> None:
        self._ctx.check_writable(at)
        if at.kind in DIRECTORIES:
            raise NfsError(Status.ISDIR)
        if at.kind is not Kind.SCRATCH and not is_editable(at.handle):
            raise NfsError(Status.ROFS, "only data/data.csv, .query and scratch files can be written")

    async def resize(self, at: At, size: int) -> None:
        """Cut a view."""
        self._check_editable(at)
        if at.kind is Kind.QUERY:
            self._querying.truncate(at, size)
            return
        self._ctx.readers.release(at.view)
        await self._ctx.editor.truncate(at.handle.mount, at.table, size)

    async def _guarded(self, at: At, size: int, guard_ns: int | None) -> None:
        if guard_ns is not None and (await self._attributes(at)).ctime_ns != guard_ns:
            raise NfsError(Status.NOT_SYNC)
        await self.resize(at, size)

    async def _attributes(self, at: At) -> Attributes:
        found = self._reading.getattr(at)
        return found if isinstance(found, Attributes) else await found

    async def _commit_view(self, at: At) -> None:
        if at.kind is Kind.QUERY:
            await self._querying.commit(at)
        elif is_editable(at.handle):
            await self._ctx.editor.commit(at.handle.mount, at.table)

    # ── Scratch files ─────────────────────────────────────────────────────────────────────────────

    async def _write_scratch(self, at: At, offset: int, data: memoryview, stable: Stable) -> Written:
        number = at.handle.param
        self._ctx.scratch.write(number, offset, data)
        if stable is not Stable.UNSTABLE:
            await asyncio.to_thread(self._ctx.scratch.sync, number)
            await self._querying.ran(number, at.handle.mount)
        return Written(len(data), stable, self._scratch_attributes(at))

    def _set_scratch(self, at: At, new: SetAttributes, guard_ns: int | None) -> Attributes:
        if guard_ns is not None and self._ctx.scratch.node(at.handle.param).ctime_ns != guard_ns:
            raise NfsError(Status.NOT_SYNC)
        self._ctx.scratch.set_attributes(at.handle.param, new)
        return self._scratch_attributes(at)

    async def _commit_scratch(self, at: At) -> Attributes:
        number = at.handle.param
        await asyncio.to_thread(self._ctx.scratch.sync, number)
        if self._ctx.scratch.node(number).type is FileType.REGULAR:
            await self._querying.ran(number, at.handle.mount)
        return self._scratch_attributes(at)

    def _scratch_attributes(self, at: At) -> Attributes:
        return self._ctx.presenter.scratch(at.told, self._ctx.scratch.attributes(at.handle.param))
