"""READDIR and READDIRPLUS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.naming import Naming, check_directory, layout
from lakehouse_platform.nfs.operations import Attributes, Entry, Listing
from lakehouse_platform.nfs.tree.directory import Child, after, fixed, named, version_cookie, versioned
from lakehouse_platform.nfs.tree.handles import NO_TABLE, Kind, hash64
from lakehouse_platform.nfs.tree.nodes import LIVE, SCRATCH_ROOTS, version_param

# More do not fit into one reply of 1 MiB: an entry takes 32 bytes at least, and 160 with handle and attributes
# (RFC 1813 §3.3.16, §3.3.17).
_MOST, _MOST_DETAILED = 1 << 15, 1 << 13


class DirectoryLister:
    """Lists directories."""

    def __init__(
        self, ctx: Context, naming: Naming, known_attributes: Callable[[At], Attributes | None]
    ) -> None:
        self._ctx = ctx
        self._naming = naming
        self._known_attributes = known_attributes

    async def list(self, at: At, cookie: int, *, plus: bool) -> Listing:
        """Return the entries after a cookie; attributes only where nothing has to be rendered for them."""
        check_directory(at, self._ctx)
        limit = _MOST_DETAILED if plus else _MOST
        children = after(cookie, await self._children(at, cookie, limit))[:limit]
        entries = [self._entry(at, child, plus=plus) for child in children]
        return Listing([*self._dots(at, cookie), *entries], self._ctx.directory_attributes(at))

    def _dots(self, at: At, cookie: int) -> Iterable[Entry]:
        parent = self._naming.parent(at)
        dots = (Entry(b".", at.told.fileid, 1), Entry(b"..", parent.handle.fileid, 2))
        return [entry for entry in dots if entry.cookie > cookie]

    def _entry(self, at: At, child: Child, *, plus: bool) -> Entry:
        if not plus:
            return Entry(child.name, child.handle.fileid, child.cookie)
        table = child.handle.table
        served = None if table == NO_TABLE else self._ctx.catalog.known(table)
        attributes = self._known_attributes(self._ctx.seen(child.handle, served))
        return Entry(
            child.name, child.handle.fileid, child.cookie, self._ctx.encoded(child.handle), attributes
        )

    async def _children(self, at: At, cookie: int, limit: int) -> list[Child]:
        if at.kind is Kind.LAKE:
            own = [
                named(served.name, at.handle.to(Kind.TABLE, 0, served.key))
                for served in await self._ctx.visitors.tables(at.handle.mount)
            ]
        elif at.kind is Kind.VERSIONS:
            own = await self._versions(at, cookie, limit)
        elif at.kind in {Kind.ERRORS, Kind.REJECTED}:
            own = await self._refused(at)
        else:
            own = [*await self._fixed(at), *self._data_files(at, cookie, limit)]
        taken = {child.name for child in own}
        return own + [child for child in self._scratch(at, cookie, limit) if child.name not in taken]

    async def _versions(self, at: At, cookie: int, limit: int) -> list[Child]:
        found = await at.table.versions()
        first = max(found.start, cookie - version_cookie(0) + 1)
        wanted = range(first, min(found.stop, first + limit))
        return [versioned(number, at.handle.to(Kind.VERSION, version_param(number))) for number in wanted]

    async def _fixed(self, at: At) -> list[Child]:
        param = at.handle.param if at.kind is Kind.VERSION else LIVE
        if at.kind is Kind.TIME:
            param = version_param(await at.table.version_at(at.handle.param))
        children = (
            fixed(position, name, at.handle.to(kind, param))
            for position, (name, kind) in enumerate(layout(at).items())
        )
        return [self._editable(child) or child for child in children if not self._is_hole(child)]

    def _is_hole(self, child: Child) -> bool:
        return self._is_editable(child) and self._ctx.told_view(child.handle) is None

    def _editable(self, child: Child) -> Child | None:
        told = self._ctx.told_view(child.handle) if self._is_editable(child) else None
        return replace(child, handle=told) if told else None

    @staticmethod
    def _is_editable(child: Child) -> bool:
        return child.handle.kind is Kind.CSV and child.handle.param == LIVE

    def _data_files(self, at: At, cookie: int, limit: int) -> Iterable[Child]:
        if at.kind is Kind.DATA and not at.table.is_system:
            for name, number in at.table.data_files().after(cookie, limit):
                yield named(name, at.handle.to(Kind.PARQUET, number))

    async def _refused(self, at: At) -> list[Child]:
        kind = Kind.ERROR_FILE if at.kind is Kind.ERRORS else Kind.REJECTED_FILE
        files = await self._ctx.refused_files(at)
        return [named(name, at.handle.to(kind, hash64(name))) for name in files]

    def _scratch(self, at: At, cookie: int, limit: int) -> Iterable[Child]:
        if at.kind not in SCRATCH_ROOTS and at.kind is not Kind.SCRATCH:
            return
        place = self._ctx.place(at)
        for name, moved in self._ctx.aliases.within(place):
            if self._naming.table_of(at, moved) is None:
                continue
            yield named(name, at.handle.to(Kind.CSV, version_param(moved.version), moved.table))
        for node in self._ctx.scratch.list(place, cookie, limit):
            yield Child(node.name, at.handle.to(Kind.SCRATCH, node.inode, NO_TABLE), node.cookie)
