"""CREATE, MKDIR, SYMLINK, REMOVE, RMDIR and RENAME: what becomes of names, and of the table if one is its data.csv."""

from __future__ import annotations

import asyncio
import secrets

from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.naming import Naming, check_directory, reserved
from lakehouse_platform.nfs.operations import (
    Attributes,
    CreateMode,
    FileType,
    Made,
    NfsError,
    SetAttributes,
    Status,
)
from lakehouse_platform.nfs.querying import Querying
from lakehouse_platform.nfs.reading import Reading
from lakehouse_platform.nfs.tree.aliases import Moved
from lakehouse_platform.nfs.tree.data_files import MAX_NAME
from lakehouse_platform.nfs.tree.handles import NO_TABLE, Kind, owned
from lakehouse_platform.nfs.tree.nodes import LIVE, SCRATCH_ROOTS, version_param
from lakehouse_platform.nfs.tree.scratch_tree import Node
from lakehouse_platform.nfs.writing import Writing


class Changing:
    """Makes, removes and moves entries."""

    def __init__(
        self, ctx: Context, naming: Naming, reading: Reading, writing: Writing, querying: Querying
    ) -> None:
        self._ctx = ctx
        self._naming = naming
        self._reading = reading
        self._writing = writing
        self._querying = querying

    # ── Making ────────────────────────────────────────────────────────────────────────────────────

    async def create(
        self, at: At, name: bytes, mode: CreateMode, new: SetAttributes, verifier: bytes
    ) -> Made:
        """Create a scratch file; fill the place of a data.csv that was moved away or removed; open what is there."""
        self._check_place(at)
        if self._is_hole(at, name):
            return await self._fill(at)
        found = await self._own(at, name)
        if found is not None:
            return await self._open(at, found, mode, new)
        if self._ctx.aliases.at(self._ctx.place(at), name) is not None:
            if mode is not CreateMode.UNCHECKED:
                raise NfsError(Status.EXIST)
            self._clear(at, name)
        node = self._ctx.scratch.make_file(self._ctx.place(at), name, mode, new, verifier)
        return self._made(at, node)

    async def mkdir(self, at: At, name: bytes, new: SetAttributes) -> Made:
        """Create a scratch directory."""
        await self._check_free(at, name)
        return self._made(at, self._ctx.scratch.make_directory(self._ctx.place(at), name, new))

    async def symlink(self, at: At, name: bytes, target: bytes, new: SetAttributes) -> Made:
        """Create a symbolic link."""
        await self._check_free(at, name)
        return self._made(at, self._ctx.scratch.make_symlink(self._ctx.place(at), name, target, new))

    def made(self, at: At, name: bytes) -> Made:
        """Return what a call of before has made.

        Raises:
            NfsError: STALE: it is gone.
        """
        node = self._ctx.scratch.lookup(self._ctx.place(at), name)
        if node is None:
            raise NfsError(Status.STALE)
        return self._made(at, node)

    async def _fill(self, at: At) -> Made:
        view = at.handle.to(Kind.CSV)
        await self._ctx.editor.create(view.mount, at.table)
        if self._ctx.aliases.of(view.mount, view.table) is not None:
            # The client goes on using the view's handle for what it moved away, so the new file needs another one.
            self._ctx.aliases.become(self._fresh_number(at), view.mount, view.table, self._ctx.times.now_ns())
        told = self._ctx.told_view(view) or view
        attributes = self._reading.attributes_now(At(told, view, at.served))
        return Made(self._ctx.encoded(told), attributes, self._ctx.directory_attributes(at))

    async def _open(self, at: At, found: At, mode: CreateMode, new: SetAttributes) -> Made:
        if mode is not CreateMode.UNCHECKED:
            raise NfsError(Status.EXIST)
        if new.size is not None:
            await self._writing.resize(found, new.size)
        attributes = self._reading.known_attributes(found)
        return Made(self._ctx.encoded(found.told), attributes, self._ctx.directory_attributes(at))

    def _made(self, at: At, node: Node) -> Made:
        handle = at.handle.to(Kind.SCRATCH, node.inode, NO_TABLE)
        attributes = self._ctx.presenter.scratch(handle, self._ctx.scratch.attributes(node.inode))
        return Made(self._ctx.encoded(handle), attributes, self._ctx.directory_attributes(at))

    def _fresh_number(self, at: At) -> int:
        """Return the number of a scratch file that never was."""
        place, name = self._ctx.place(at), b".lakehouse-" + secrets.token_hex(8).encode()
        self._ctx.scratch.make_file(place, name)
        return self._ctx.scratch.remove(place, name).inode

    # ── Removing ──────────────────────────────────────────────────────────────────────────────────

    async def remove(self, at: At, name: bytes) -> Attributes:
        """Remove a scratch file, or data.csv, which deletes all rows unless a file takes its place at once."""
        self._check_place(at, refused_too=True)
        if at.kind in {Kind.ERRORS, Kind.REJECTED}:
            await self._remove_refused(at, name)
            return self._ctx.directory_attributes(at)
        if self._is_hole(at, name):
            raise NfsError(Status.NOENT)
        found = await self._own(at, name)
        if found is None:
            if self._ctx.aliases.drop(self._ctx.place(at), name, self._ctx.times.now_ns()) is None:
                self._ctx.scratch.remove(self._ctx.place(at), name)
        elif _is_live(found):
            self._ctx.readers.release(found.view)
            await self._ctx.editor.remove(at.handle.mount, at.table)
        else:
            raise NfsError(Status.ROFS)
        return self._ctx.directory_attributes(at)

    async def rmdir(self, at: At, name: bytes) -> Attributes:
        """Remove an empty scratch directory."""
        self._check_place(at)
        if await self._own(at, name) is not None:
            raise NfsError(Status.ROFS)
        self._ctx.scratch.remove_directory(self._ctx.place(at), name)
        return self._ctx.directory_attributes(at)

    async def _remove_refused(self, at: At, name: bytes) -> None:
        if name not in await self._ctx.refused_files(at):
            raise NfsError(Status.NOENT)
        shelf = owned(at.handle.mount, at.table.key)
        await asyncio.to_thread(self._ctx.rejected.remove, shelf, name.decode())

    # ── Moving ────────────────────────────────────────────────────────────────────────────────────

    async def rename(
        self, at: At, name: bytes, to: At, new_name: bytes
    ) -> tuple[Attributes | None, Attributes | None]:
        """Move an entry; onto data.csv it publishes, and away from there it leaves a hole that the next file fills."""
        self._ctx.visitors.check_same(at.handle.mount, to.handle.mount)
        self._check_place(at)
        self._check_place(to)
        if len(new_name) > MAX_NAME:
            raise NfsError(Status.NAMETOOLONG)
        source = None if self._is_hole(at, name) else await self._own(at, name)
        if source is not None:
            await self._rename_view(at, source, to, new_name)
        elif _is_csv(to, new_name):
            await self._replace(at, name, to)
        else:
            await self._rename_scratch(at, name, to, new_name)
        return self._ctx.directory_attributes(at), self._ctx.directory_attributes(to)

    async def _rename_view(self, at: At, source: At, to: At, new_name: bytes) -> None:
        if not _is_live(source):
            raise NfsError(Status.ROFS)
        if _is_csv(to, new_name):
            if to.table is at.table:
                return
            raise NfsError(Status.XDEV, "rows are moved between tables by copying them")
        if await self._own(to, new_name) is not None:
            raise NfsError(Status.ROFS)
        self._check_file_in_the_way(to, new_name)
        self._ctx.readers.release(source.view)
        image = await self._ctx.editor.rename_away(at.handle.mount, at.table)
        self._clear(to, new_name)
        moved = Moved(at.table.key, at.handle.mount, image.version)
        self._ctx.aliases.put(self._ctx.place(to), new_name, moved, self._ctx.times.now_ns())

    async def _replace(self, at: At, name: bytes, to: At) -> None:
        """Publish a scratch file, or an image that was moved away, as the table's data.csv."""
        self._ctx.readers.release(to.at(to.handle.to(Kind.CSV)).view)
        place = self._ctx.place(at)
        moved = self._ctx.aliases.at(place, name)
        if moved is not None:
            await self._put_back(moved, to)
            self._ctx.aliases.drop(place, name, self._ctx.times.now_ns())
            return
        node = self._entry(at, name)
        with self._ctx.scratch.content(node.inode) as content:
            await self._ctx.editor.replace(to.handle.mount, to.table, content)
        self._ctx.aliases.become(node.inode, to.handle.mount, to.table.key, self._ctx.times.now_ns())
        self._ctx.scratch.remove(place, name)

    async def _put_back(self, moved: Moved, to: At) -> None:
        editor, mount = self._ctx.editor, to.handle.mount
        if moved.table == to.table.key and editor.is_hole(mount, to.table.key):
            await editor.rename_back(mount, to.table)
            return
        version = to.handle.to(Kind.CSV, version_param(moved.version), moved.table)
        served = await self._ctx.catalog.find(moved.table)
        # Since it was moved, the right to read it may be gone.
        await self._ctx.visitors.look(mount)
        self._ctx.visitors.check(mount, served)
        image = await self._reading.content(self._ctx.seen(version, served))
        await editor.replace(mount, to.table, image)

    async def _rename_scratch(self, at: At, name: bytes, to: At, new_name: bytes) -> None:
        if await self._own(to, new_name) is not None:
            # `mv` copies when it is told XDEV, which is what can be done with `.query`.
            raise NfsError(Status.XDEV if reserved(to, new_name) is Kind.QUERY else Status.ROFS)
        aliases, now_ns = self._ctx.aliases, self._ctx.times.now_ns()
        place, target = self._ctx.place(at), self._ctx.place(to)
        moved = aliases.at(place, name)
        if moved is None:
            node = self._ctx.scratch.rename(place, name, target, new_name)
            aliases.drop(target, new_name, now_ns)
            if node.type is FileType.REGULAR:
                await self._querying.ran(node.inode, at.handle.mount)
            return
        if (place, name) == (target, new_name):
            return
        self._check_file_in_the_way(to, new_name)
        self._clear(to, new_name)
        aliases.put(target, new_name, moved, now_ns)
        aliases.drop(place, name, now_ns)

    def _entry(self, at: At, name: bytes) -> Node:
        node = self._ctx.scratch.lookup(self._ctx.place(at), name)
        if node is None:
            raise NfsError(Status.NOENT)
        if node.type is not FileType.REGULAR:
            raise NfsError(Status.NOTDIR if node.is_directory else Status.INVAL)
        return node

    # ── Rules ─────────────────────────────────────────────────────────────────────────────────────

    def _check_place(self, at: At, *, refused_too: bool = False) -> None:
        """Refuse changes of directories whose entries nobody but the server makes."""
        self._ctx.check_writable(at)
        check_directory(at, self._ctx)
        own = {Kind.ERRORS, Kind.REJECTED} if refused_too else set[Kind]()
        if at.kind not in SCRATCH_ROOTS | own and at.kind is not Kind.SCRATCH:
            raise NfsError(Status.ROFS)

    async def _check_free(self, at: At, name: bytes) -> None:
        self._check_place(at)
        if self._is_hole(at, name) or await self._own(at, name) is not None:
            raise NfsError(Status.EXIST)
        if self._ctx.aliases.at(self._ctx.place(at), name) is not None:
            raise NfsError(Status.EXIST)

    async def _own(self, at: At, name: bytes) -> At | None:
        """Return what a name is if it is not a scratch entry or an alias."""
        if name in (b".", b"..") or len(name) > MAX_NAME or at.kind is Kind.SCRATCH:
            return None
        try:
            found = await self._naming.find(at, name)
        except NfsError as error:
            if error.status is not Status.NOENT:
                raise
            return None
        is_alias = self._ctx.aliases.at(self._ctx.place(at), name) is not None
        return None if found.kind is Kind.SCRATCH or (is_alias and reserved(at, name) is None) else found

    def _is_hole(self, at: At, name: bytes) -> bool:
        return _is_csv(at, name) and self._ctx.told_view(at.handle.to(Kind.CSV)) is None

    def _check_file_in_the_way(self, to: At, name: bytes) -> None:
        node = self._ctx.scratch.lookup(self._ctx.place(to), name)
        if node is not None and node.is_directory:
            raise NfsError(Status.ISDIR)

    def _clear(self, to: At, name: bytes) -> None:
        """Remove a scratch file or a moved view whose name something else takes."""
        place = self._ctx.place(to)
        self._ctx.aliases.drop(place, name, self._ctx.times.now_ns())
        if self._ctx.scratch.lookup(place, name) is not None:
            self._ctx.scratch.remove(place, name)


def _is_csv(at: At, name: bytes) -> bool:
    return at.kind is Kind.DATA and reserved(at, name) is Kind.CSV


def _is_live(found: At) -> bool:
    return found.kind is Kind.CSV and found.handle.param == LIVE
