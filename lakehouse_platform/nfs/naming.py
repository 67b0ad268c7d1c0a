"""From a directory and a name to what it names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakehouse_platform.errors import InvalidTimestampError
from lakehouse_platform.model.times import parse_rfc3339, to_epoch_ms
from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.aliases import Moved
from lakehouse_platform.nfs.tree.data_files import MAX_NAME
from lakehouse_platform.nfs.tree.handles import NO_TABLE, Kind, hash64
from lakehouse_platform.nfs.tree.nodes import (
    DIRECTORIES,
    LAYOUT,
    LIVE,
    PARENTS,
    SCRATCH_ROOTS,
    SYSTEM_LAYOUT,
    version_param,
)
from lakehouse_platform.nfs.tree.scratch_tree import Place
from lakehouse_platform.nfs.tree.served import ServedTable

_VERSION = re.compile(rb"0|[1-9][0-9]{0,17}")
# Directories whose entries have to be asked for.
_WAITING = frozenset({Kind.LAKE, Kind.VERSIONS, Kind.TIMES, Kind.TIME, Kind.ERRORS, Kind.REJECTED})


def is_directory(at: At, ctx: Context) -> bool:
    """Tell whether an object is a directory."""
    if at.kind is Kind.SCRATCH:
        return ctx.scratch.node(at.handle.param).is_directory
    return at.kind in DIRECTORIES


def check_directory(at: At, ctx: Context) -> None:
    """Refuse what is no directory."""
    if not is_directory(at, ctx):
        raise NfsError(Status.NOTDIR)


def reserved(at: At, name: bytes) -> Kind | None:
    """Return what a name always is in a directory, None if it is free."""
    return layout(at).get(name)


def layout(at: At) -> Mapping[bytes, Kind]:
    """Return the names that a directory always has."""
    kinds = SYSTEM_LAYOUT if at.served is not None and at.served.is_system else LAYOUT
    return kinds.get(at.kind, {})


class Naming:
    """Resolves names."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def quick(self, at: At, name: bytes) -> At | None:
        """Return what a name is if that is known without waiting.

        Raises:
            NfsError: NOTDIR, NAMETOOLONG; NOENT where that is certain.
        """
        check_directory(at, self._ctx)
        if len(name) > MAX_NAME:
            raise NfsError(Status.NAMETOOLONG)
        if name == b".":
            return at
        if name == b"..":
            return self.parent(at)
        if at.kind in _WAITING:
            return None
        found = self._fixed(at, name) or self._data_file(at, name) or self.placed(at, name)
        if found is None:
            raise NfsError(Status.NOENT)
        return found

    async def find(self, at: At, name: bytes) -> At:
        """Return what a name is.

        Raises:
            NfsError: NOTDIR, NAMETOOLONG, NOENT.
        """
        if found := self.quick(at, name):
            return found
        if at.kind is Kind.LAKE:
            return await self._in_lake(at, name)
        if at.kind is Kind.VERSIONS:
            return await self._version(at, name)
        if at.kind is Kind.TIMES:
            return await self._moment(at, name)
        if at.kind is Kind.TIME:
            return await self._at_moment(at, name)
        return await self._refused_file(at, name)

    def placed(self, at: At, name: bytes) -> At | None:
        """Return a scratch entry, or a view that was moved to this name."""
        if at.kind not in SCRATCH_ROOTS and at.kind is not Kind.SCRATCH:
            return None
        place = self._ctx.place(at)
        moved = self._ctx.aliases.at(place, name)
        if moved is not None:
            handle = at.handle.to(Kind.CSV, version_param(moved.version), moved.table)
            served = self.table_of(at, moved)
            return At(handle, handle, served) if served else None
        node = self._ctx.scratch.lookup(place, name)
        return None if node is None else at.at(at.handle.to(Kind.SCRATCH, node.inode, NO_TABLE))

    def table_of(self, at: At, moved: Moved) -> ServedTable | None:
        """Return the table of a view that was moved into a directory, if it is there and whoever asks may see it.

        It may have been moved to the root, or to another table's directory, and the right be gone since.
        """
        served = self._ctx.catalog.known(moved.table)
        return served if served and self._ctx.visitors.may_read(at.handle.mount, served) else None

    def scratch_parent(self, at: At, place: Place) -> At:
        """Return the directory that scratch entries of a place are in."""
        if isinstance(place, int):
            return self._ctx.seen(at.handle.to(Kind.SCRATCH, place, NO_TABLE), None)
        handle = at.handle.to(Kind(place[8]), 0, place[:8])
        return self._ctx.seen(handle, self._ctx.catalog.known(handle.table))

    # ── Kinds of directories ──────────────────────────────────────────────────────────────────────

    def parent(self, at: At) -> At:
        """Return the directory above."""
        if at.kind is Kind.SCRATCH:
            return self.scratch_parent(at, self._ctx.scratch.node(at.handle.param).parent)
        if at.kind is Kind.LAKE or (at.kind is Kind.TABLE and not self._ctx.catalog.is_lake):
            return at
        parent = PARENTS[at.kind]
        if parent is Kind.LAKE:
            return self._ctx.seen(at.handle.to(parent, 0, NO_TABLE), None)
        return at.at(at.handle.to(parent))

    def _fixed(self, at: At, name: bytes) -> At | None:
        kind = reserved(at, name)
        if kind is None:
            return None
        if kind is Kind.CSV and at.kind is Kind.DATA:
            return self._editable(at)
        param = at.handle.param if at.kind is Kind.VERSION else LIVE
        return at.at(at.handle.to(kind, param))

    def _editable(self, at: At) -> At:
        """Return data.csv, which a client may have moved away or removed."""
        handle = at.handle.to(Kind.CSV)
        told = self._ctx.told_view(handle)
        if told is None:
            raise NfsError(Status.NOENT)
        return At(told, handle, at.served)

    def _data_file(self, at: At, name: bytes) -> At | None:
        if at.kind is not Kind.DATA or not name.endswith(b".parquet") or at.table.is_system:
            return None
        number = at.table.data_files().number_of(name)
        return None if number is None else at.at(at.handle.to(Kind.PARQUET, number))

    async def _in_lake(self, at: At, name: bytes) -> At:
        try:
            served = await self._ctx.visitors.named(at.handle.mount, name)
        except NfsError:
            if found := self.placed(at, name):
                return found
            raise
        handle = at.handle.to(Kind.TABLE, 0, served.key)
        return At(handle, handle, served)

    async def _version(self, at: At, name: bytes) -> At:
        if not _VERSION.fullmatch(name) or int(name) not in await at.table.versions():
            raise NfsError(Status.NOENT)
        return at.at(at.handle.to(Kind.VERSION, version_param(int(name))))

    async def _moment(self, at: At, name: bytes) -> At:
        try:
            instant = parse_rfc3339(name.decode())
        except (InvalidTimestampError, UnicodeDecodeError) as error:
            raise NfsError(Status.NOENT) from error
        micros = to_epoch_ms(instant) * 1000 + instant.microsecond % 1000
        if micros < 0:
            raise NfsError(Status.NOENT)
        await at.table.version_at(micros)
        return at.at(at.handle.to(Kind.TIME, micros))

    async def _at_moment(self, at: At, name: bytes) -> At:
        kind = reserved(at, name)
        if kind is None:
            raise NfsError(Status.NOENT)
        version = await at.table.version_at(at.handle.param)
        return at.at(at.handle.to(kind, version_param(version)))

    async def _refused_file(self, at: At, name: bytes) -> At:
        if name not in await self._ctx.refused_files(at):
            raise NfsError(Status.NOENT)
        kind = Kind.ERROR_FILE if at.kind is Kind.ERRORS else Kind.REJECTED_FILE
        return at.at(at.handle.to(kind, hash64(name)))
