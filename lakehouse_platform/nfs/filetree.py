"""The file tree of the mount: every procedure of `Filesystem`, put together from its rooms."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

from lakehouse_platform.nfs.access import granted
from lakehouse_platform.nfs.changing import Changing
from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.listing import DirectoryLister
from lakehouse_platform.nfs.naming import Naming, is_directory
from lakehouse_platform.nfs.once import once
from lakehouse_platform.nfs.operations import (
    Access,
    Attributes,
    Caller,
    CreateMode,
    ExportEntry,
    Filesystem,
    Found,
    Limits,
    Listing,
    Made,
    Maybe,
    Mounted,
    NfsError,
    ReadData,
    SetAttributes,
    Space,
    Stable,
    Status,
    Written,
)
from lakehouse_platform.nfs.querying import Querying
from lakehouse_platform.nfs.reading import Reading, opened_by
from lakehouse_platform.nfs.tickets import (
    LAKE,
    Export,
    Profile,
    Ticket,
    export_name,
    user_export,
    user_ticket,
)
from lakehouse_platform.nfs.tree.handles import MOUNT_BYTES, NO_TABLE, Handle, Kind, decode, is_users
from lakehouse_platform.nfs.tree.nodes import SCRATCH_ROOTS, is_editable
from lakehouse_platform.nfs.writing import Writing

_T = TypeVar("_T")


class FileTree(Filesystem):
    """Serves the tables of a context. All methods are called on the event loop's thread."""

    def __init__(self, ctx: Context, ticket: Ticket) -> None:
        self._ctx = ctx
        self._ticket = ticket
        self._verifier = secrets.token_bytes(8)
        self._naming = Naming(ctx)
        querying = Querying(ctx)
        self._reading = Reading(ctx, querying)
        self._writing = Writing(ctx, self._reading, querying)
        self._changing = Changing(ctx, self._naming, self._reading, self._writing, querying)
        self._lister = DirectoryLister(ctx, self._naming, self._reading.known_attributes)

    @property
    def verifier(self) -> bytes:
        """8 bytes of this start."""
        return self._verifier

    # ── Mounting ──────────────────────────────────────────────────────────────────────────────────

    async def mount(self, caller: Caller, path: bytes) -> Mounted:
        """Return the handle of an exported directory, made for a new mount."""
        self._ctx.access.origin(caller)
        ticket = user_ticket(path)
        if ticket is None:
            export, mount = self._ticket.parse(path), secrets.token_bytes(MOUNT_BYTES)
        else:
            mount = await self._ctx.visitors.admit(ticket, caller)
            export = user_export(path)
        at = await self._root(export, mount)
        for name in export.below:
            at = await self._step(at, name)
        if not is_directory(at, self._ctx):
            raise NfsError(Status.NOTDIR)
        return Mounted(self._ctx.encoded(at.told))

    def unmount(self, caller: Caller, path: bytes) -> None:
        """Do nothing: the call does not say which mount it ends."""

    def exports(self, caller: Caller) -> Sequence[ExportEntry]:
        """Return the exports' names, which are of no use without the ticket."""
        names = [LAKE] if self._ctx.catalog.is_lake else [t.name for t in self._ctx.catalog.served]
        return [ExportEntry(b"/" + export_name(name, profile)) for name in names for profile in Profile]

    async def _root(self, export: Export, mount: bytes) -> At:
        catalog = self._ctx.catalog
        if catalog.is_lake and export.name == LAKE:
            root = Handle(Kind.LAKE, mount, export.profile)
            await self._ctx.visitors.look(mount)
            return At(root, root, None)
        served = await self._ctx.visitors.named(mount, export.name)
        root = Handle(Kind.TABLE, mount, export.profile, served.key)
        return At(root, root, served)

    async def _step(self, at: At, name: bytes) -> At:
        await _opened(at)
        return await self._naming.find(at, name)

    # ── Looking ───────────────────────────────────────────────────────────────────────────────────

    def getattr(self, caller: Caller, handle: bytes) -> Maybe[Attributes]:
        """Return the attributes; for a view that is being edited, the client may just be closing it."""
        return self._with(caller, handle, self._reading.getattr, opened=True)

    def lookup(self, caller: Caller, directory: bytes, name: bytes) -> Maybe[Found]:
        """Return what a name is."""
        return self._with(caller, directory, lambda at: self._look_up(at, name), opened=True)

    def _look_up(self, at: At, name: bytes) -> Maybe[Found]:
        found = self._naming.quick(at, name)
        if found and self._is_known(found):
            return self._found(at, found)
        return self._look_up_later(at, name)

    def _is_known(self, found: At) -> bool:
        """Tell whether there is nothing to wait for: attributes of a view that is being edited are not told here."""
        return self._reading.is_dirty(found) or self._reading.known_attributes(found) is not None

    async def _look_up_later(self, at: At, name: bytes) -> Found:
        found = await self._naming.find(at, name)
        if not self._is_known(found) and not is_directory(found, self._ctx):
            await self._reading.content(found)  # libnfs would take missing attributes for zeros
        return self._found(at, found)

    def _found(self, at: At, found: At) -> Found:
        attributes = self._reading.known_attributes(found)
        return Found(self._ctx.encoded(found.told), attributes, self._reading.known_attributes(at))

    def access(
        self, caller: Caller, handle: bytes, wanted: Access
    ) -> Maybe[tuple[Access, Attributes | None]]:
        """Return the rights: those to change are left out where nothing can be changed, so that open(2) fails."""
        return self._with(caller, handle, lambda at: self._granted(at, wanted))

    def _granted(self, at: At, wanted: Access) -> tuple[Access, Attributes | None]:
        scratch = self._ctx.scratch.node(at.handle.param) if at.kind is Kind.SCRATCH else None
        directory = is_directory(at, self._ctx)
        writable = scratch is not None or at.kind in SCRATCH_ROOTS or is_editable(at.handle)
        writable = writable and self._ctx.may_change(at)
        rights = granted(
            wanted,
            directory=directory,
            writable=writable and not self._ctx.read_only,
            executable=scratch is not None and bool(scratch.mode & 0o111),
        )
        return rights, self._reading.known_attributes(at)

    def readlink(self, caller: Caller, handle: bytes) -> Maybe[tuple[bytes, Attributes | None]]:
        """Return what a symbolic link says."""
        return self._with(caller, handle, self._link)

    def _link(self, at: At) -> tuple[bytes, Attributes | None]:
        if at.kind is not Kind.SCRATCH:
            raise NfsError(Status.INVAL)
        return self._ctx.scratch.read_link(at.handle.param), self._reading.known_attributes(at)

    def read(self, caller: Caller, handle: bytes, offset: int, count: int) -> Maybe[ReadData]:
        """Return bytes of a file."""
        return self._with(caller, handle, lambda at: self._read(at, offset, count), opened=True)

    def _read(self, at: At, offset: int, count: int) -> Maybe[ReadData]:
        data = self._reading.read(at, offset, count)
        if not is_users(at.handle.mount):
            return data
        if isinstance(data, ReadData) and self._ctx.visitors.is_told(at.handle, opened_by(data)):
            return data
        return self._told(at, data)

    async def _told(self, at: At, data: Maybe[ReadData]) -> ReadData:
        """Hand out bytes once it is written down that a user reads what they are of."""
        found = await data if isinstance(data, Awaitable) else data
        opened = opened_by(found)
        if opened is not None and not self._ctx.visitors.is_told(at.handle, opened):
            await self._ctx.visitors.tell(at.handle, at.table, opened)
        return found

    def list(self, caller: Caller, directory: bytes, cookie: int, *, plus: bool) -> Maybe[Listing]:
        """Return the entries of a directory."""
        return self._with(caller, directory, lambda at: self._lister.list(at, cookie, plus=plus), opened=True)

    # ── Changing ──────────────────────────────────────────────────────────────────────────────────

    def setattr(
        self, caller: Caller, handle: bytes, new: SetAttributes, guard_ns: int | None
    ) -> Maybe[Attributes | None]:
        """Change attributes."""
        return self._with(caller, handle, lambda at: self._writing.setattr(at, new, guard_ns), opened=True)

    def write(
        self, caller: Caller, handle: bytes, offset: int, data: memoryview, stable: Stable
    ) -> Maybe[Written]:
        """Take bytes; never refused with STALE, on which clients drop what they have not written yet."""
        return self._with(
            caller, handle, lambda at: self._writing.write(at, offset, data, stable), if_gone=Status.IO
        )

    def commit(self, caller: Caller, handle: bytes, offset: int, count: int) -> Maybe[Attributes | None]:
        """Make the whole file durable, whatever the range."""
        return self._with(caller, handle, self._writing.commit, if_gone=Status.IO)

    def create(
        self,
        caller: Caller,
        directory: bytes,
        name: bytes,
        mode: CreateMode,
        new: SetAttributes,
        verifier: bytes,
    ) -> Maybe[Made]:
        """Create a scratch file, or open a view that is there."""
        return self._with(
            caller, directory, lambda at: self._changing.create(at, name, mode, new, verifier), opened=True
        )

    def mkdir(self, caller: Caller, directory: bytes, name: bytes, new: SetAttributes) -> Maybe[Made]:
        """Create a scratch directory."""
        return self._with(
            caller,
            directory,
            lambda at: self._once_made(caller, at, name, lambda: self._changing.mkdir(at, name, new)),
            opened=True,
        )

    def symlink(
        self, caller: Caller, directory: bytes, name: bytes, target: bytes, new: SetAttributes
    ) -> Maybe[Made]:
        """Create a symbolic link."""
        return self._with(
            caller,
            directory,
            lambda at: self._once_made(
                caller, at, name, lambda: self._changing.symlink(at, name, target, new)
            ),
            opened=True,
        )

    def remove(self, caller: Caller, directory: bytes, name: bytes) -> Maybe[Attributes | None]:
        """Remove a file."""
        return self._with(
            caller,
            directory,
            lambda at: self._once_gone(caller, at, lambda: self._changing.remove(at, name)),
            opened=True,
        )

    def rmdir(self, caller: Caller, directory: bytes, name: bytes) -> Maybe[Attributes | None]:
        """Remove a directory."""
        return self._with(
            caller,
            directory,
            lambda at: self._once_gone(caller, at, lambda: self._changing.rmdir(at, name)),
            opened=True,
        )

    def rename(
        self, caller: Caller, source: bytes, name: bytes, target: bytes, new_name: bytes
    ) -> Maybe[tuple[Attributes | None, Attributes | None]]:
        """Move an entry."""
        return self._with(
            caller,
            source,
            lambda at: self._with(
                caller, target, lambda to: self._once_moved(caller, at, name, to, new_name), opened=True
            ),
            opened=True,
        )

    # ── Over a restart ────────────────────────────────────────────────────────────────────────────

    def _once_made(
        self, caller: Caller, at: At, name: bytes, act: Callable[[], Awaitable[Made]]
    ) -> Awaitable[Made]:
        async def again() -> Made:
            return self._changing.made(at, name)

        return once(self._ctx.scratch, self._ctx.editor, caller.call, act, again)

    def _once_gone(
        self, caller: Caller, at: At, act: Callable[[], Awaitable[Attributes]]
    ) -> Awaitable[Attributes]:
        async def again() -> Attributes:
            return self._ctx.directory_attributes(at)

        return once(self._ctx.scratch, self._ctx.editor, caller.call, act, again)

    def _once_moved(
        self, caller: Caller, at: At, name: bytes, to: At, new_name: bytes
    ) -> Awaitable[tuple[Attributes | None, Attributes | None]]:
        async def again() -> tuple[Attributes | None, Attributes | None]:
            return self._ctx.directory_attributes(at), self._ctx.directory_attributes(to)

        return once(
            self._ctx.scratch,
            self._ctx.editor,
            caller.call,
            lambda: self._changing.rename(at, name, to, new_name),
            again,
        )

    # ── The server ────────────────────────────────────────────────────────────────────────────────

    def space(self, caller: Caller, handle: bytes) -> Maybe[Space]:
        """Return the room for scratch files, which is all that can fill up."""
        return self._with(caller, handle, self._space)

    def _space(self, at: At) -> Space:
        found = self._ctx.scratch.space()
        return Space(
            found.total_bytes,
            found.free_bytes,
            found.total_files,
            found.free_files,
            self._reading.known_attributes(at),
        )

    def limits(self, caller: Caller, handle: bytes) -> Maybe[Limits]:
        """Return what the server can do."""
        return self._with(caller, handle, lambda at: Limits(self._reading.known_attributes(at)))

    # ── From handles to objects ───────────────────────────────────────────────────────────────────

    def _with(
        self,
        caller: Caller,
        data: bytes,
        act: Callable[[At], Maybe[_T]],
        *,
        opened: bool = False,
        if_gone: Status = Status.STALE,
    ) -> Maybe[_T]:
        """Admit the caller and act on what a handle means; wait only if the table has to be found or opened.

        For a user it is also waited until what they may do is known.
        """
        self._ctx.access.origin(caller)
        told = decode(data, self._ctx.key)
        meaning = self._ctx.meaning(told)
        served = None if meaning.table == NO_TABLE else self._ctx.catalog.known(meaning.table)
        if meaning.table != NO_TABLE and (served is None or (opened and served.newest.known() is None)):
            return self._found_first(told, act, if_gone)
        if is_users(told.mount):
            if not self._ctx.visitors.is_known(told.mount):
                return self._found_first(told, act, if_gone)
            self._ctx.visitors.check(told.mount, served)
        return act(At(told, meaning, served))

    async def _found_first(self, told: Handle, act: Callable[[At], Maybe[_T]], if_gone: Status) -> _T:
        table = self._ctx.meaning(told).table
        try:
            served = None if table == NO_TABLE else await self._ctx.catalog.find(table)
            await self._ctx.visitors.look(told.mount)
            self._ctx.visitors.check(told.mount, served)
            if served is not None:
                await served.newest.newest()
        except NfsError as error:
            raise NfsError(if_gone if error.status is Status.STALE else error.status, str(error)) from error
        result = act(self._ctx.seen(told, served))
        return cast("_T", await result if isinstance(result, Awaitable) else result)


async def _opened(at: At) -> None:
    if at.served is not None:
        await at.served.newest.newest()
