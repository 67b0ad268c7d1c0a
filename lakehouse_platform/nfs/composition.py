"""Puts the parts of a mount together: images, scratch files, edits and the tables that they are about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.nfs.access import Access
from lakehouse_platform.nfs.context import Context
from lakehouse_platform.nfs.edits.editor import Clocks, Editor
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.filetree import FileTree
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.state import StateDirectory
from lakehouse_platform.nfs.tickets import LAKE, Profile, Ticket
from lakehouse_platform.nfs.tree.aliases import Aliases
from lakehouse_platform.nfs.tree.attributes import Presenter
from lakehouse_platform.nfs.tree.catalog import Catalog, LakeTables, OneTable
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.nfs.tree.scratch import Scratch
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.nfs.tree.served import ServedTable, Times
from lakehouse_platform.nfs.tree.sql_door import SqlDoor
from lakehouse_platform.nfs.visitors import Visitors
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.mount_users import MountUsers
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import SYSTEM_TABLES

Source: TypeAlias = Lakehouse | Table
_TIMES = Times(time.monotonic, time.time_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class MountOptions:
    """What a server allows and how much it may keep on its disk.

    Attributes:
        read_only: Whether every change is refused.
        allow_other: Whether all users of a mount are let in, not only the owner and root.
        allow_remote: Whether other machines are let in.
        uid: Owner that files show; the server's by default.
        gid: Group that files show; the server's by default.
        cache_bytes: Most bytes of rendered rows to keep.
        scratch_bytes: Most bytes of scratch files.
        scratch_files: Most scratch files.
        spool_bytes: Most bytes of edits that are not published yet.
    """

    read_only: bool = False
    allow_other: bool = False
    allow_remote: bool = False
    uid: int | None = None
    gid: int | None = None
    cache_bytes: int = 8 << 30
    scratch_bytes: int = 16 << 30
    scratch_files: int = 100_000
    spool_bytes: int = 16 << 30


@dataclass(frozen=True, slots=True)
class OpenedTree:
    """A file tree that is ready to be served.

    Attributes:
        tree: The file tree.
        access: The rules by which connections are trusted.
        exports: Paths to mount, with the ticket, by profile.
    """

    tree: FileTree
    access: Access
    exports: dict[str, str]


def source_uri(source: Source) -> str:
    """Return where a source stands."""
    return source.store.base.uri if isinstance(source, Lakehouse) else source.location.uri


@asynccontextmanager
async def open_file_tree(
    source: Source, state_dir: Path, options: MountOptions
) -> AsyncGenerator[OpenedTree]:
    """Open a source's file tree, going on with what an earlier server left in the state directory.

    At the end it publishes the edits that are complete and keeps the others for the next start.

    Args:
        source: A lakehouse, or one table.
        state_dir: The server's own directory on the local disk.
        options: What it allows.

    Raises:
        ConfigError: Another server uses the state directory.
        StorageIoError, StoragePermissionError: The state directory cannot be used.
    """
    async with AsyncExitStack() as stack:
        state = stack.enter_context(StateDirectory(state_dir))
        ticket = Ticket(state.path)
        context = make_context(stack, source, state, options)
        stack.callback(context.raw_files.close)
        stack.push_async_callback(context.visitors.close)
        await context.editor.recover()
        stack.push_async_callback(_close_tables, context)
        stack.push_async_callback(context.editor.drain)
        name = LAKE if isinstance(source, Lakehouse) else source.name.encode()
        exports = {profile.name.lower(): ticket.path(name, profile).decode() for profile in Profile}
        yield OpenedTree(FileTree(context, ticket), context.access, exports)


def make_context(
    stack: AsyncExitStack,
    source: Source,
    state: StateDirectory,
    options: MountOptions,
    times: Times = _TIMES,
) -> Context:
    """Return the parts of a file tree; the stack closes their files, which publishes nothing.

    Args:
        stack: Closes them.
        source: A lakehouse, or one table.
        state: The server's own directory.
        options: What it allows.
        times: The clocks; the first is the event loop's, on which timers run.
    """
    access = Access(
        uid=options.uid,
        gid=options.gid,
        allow_other=options.allow_other,
        allow_remote=options.allow_remote,
    )
    cache = SegmentCache(state.path, options.cache_bytes)
    stack.callback(cache.close)
    scratch = Scratch(
        state.path, options.scratch_bytes, options.scratch_files, uid=access.uid, gid=access.gid
    )
    stack.callback(scratch.close)
    aliases = Aliases(state.path)
    stack.callback(aliases.close)
    catalog = _catalog(source, state.path, cache, times)
    visitors = Visitors(_users(source), catalog, times.now)
    editor = Editor(
        state.path,
        lambda key: _view(catalog, key),
        quota_bytes=options.spool_bytes,
        clocks=Clocks(times.now, times.now_ns),
        permits=visitors,
        committed=lambda key: _expire(catalog, key),
    )
    return Context(
        key=state.key,
        access=access,
        presenter=Presenter.make(state.key, access, read_only=options.read_only),
        catalog=catalog,
        scratch=scratch,
        aliases=aliases,
        editor=editor,
        rejected=editor.rejected,
        times=times,
        read_only=options.read_only,
        visitors=visitors,
    )


def _users(source: Source) -> MountUsers | None:
    """Return the users of the lakehouse that a source is or stands in; None if it stands in none."""
    if isinstance(source, Lakehouse):
        return MountUsers(source.store)
    store = DeltaStore(source.config)
    return MountUsers(store) if store.base.child(source.name).uri == source.location.uri else None


def _catalog(source: Source, state_dir: Path, cache: SegmentCache, times: Times) -> Catalog:
    def gone(key: bytes) -> None:
        catalog.forget(key)

    def serve(table: Table) -> ServedTable:
        config = table.config
        if config.key_index_path is None:
            config = config.model_copy(update={"key_index_path": str(state_dir / "keys")})
        through = replace(table, config=config, origin=Origin(actor=table.origin.actor, door=Door.NFS))
        return ServedTable(through, Images(through, cache), _door(source, through), times, gone)

    catalog: Catalog
    if isinstance(source, Lakehouse):
        catalog = LakeTables(source, serve, times.now, times.now_ns)
    else:
        catalog = OneTable(source, serve, times.now_ns())
    return catalog


def _door(source: Source, table: Table) -> SqlDoor:
    if not isinstance(source, Lakehouse):
        return SqlDoor(table, lambda: (), lambda _: table)
    store = source.store
    # What the mount does not show cannot be queried through it either.
    return SqlDoor(table, lambda: [name for name in store.tables() if name not in SYSTEM_TABLES], store.table)


async def _view(catalog: Catalog, key: bytes) -> View | None:
    try:
        return await catalog.find(key)
    except NfsError as error:
        if error.status is Status.STALE:
            return None
        raise


def _expire(catalog: Catalog, key: bytes) -> None:
    served = catalog.known(key)
    if served is not None:
        served.expire()


async def _close_tables(context: Context) -> None:
    await asyncio.gather(*(served.close() for served in context.catalog.served))
