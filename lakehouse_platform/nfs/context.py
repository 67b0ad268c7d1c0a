"""What all parts of the file tree share, and what a handle means to the client that holds it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from lakehouse_platform.nfs.access import Access
from lakehouse_platform.nfs.edits.editor import Editor
from lakehouse_platform.nfs.edits.rejected import Kept, Rejected
from lakehouse_platform.nfs.operations import Attributes, NfsError, Status
from lakehouse_platform.nfs.tree.aliases import Aliases, Moved
from lakehouse_platform.nfs.tree.attributes import Presenter
from lakehouse_platform.nfs.tree.catalog import Catalog
from lakehouse_platform.nfs.tree.directory import Entries, Stamps
from lakehouse_platform.nfs.tree.handles import NO_TABLE, Handle, Kind, encode, owned
from lakehouse_platform.nfs.tree.image import Image
from lakehouse_platform.nfs.tree.nodes import LIVE, ViewKey, is_editable, version_param
from lakehouse_platform.nfs.tree.query_view import QueryFiles
from lakehouse_platform.nfs.tree.raw import RawFiles
from lakehouse_platform.nfs.tree.readers import Readers
from lakehouse_platform.nfs.tree.scratch import Scratch
from lakehouse_platform.nfs.tree.scratch_tree import Place
from lakehouse_platform.nfs.tree.served import ServedTable, Times
from lakehouse_platform.nfs.visitors import Visitors


@dataclass(frozen=True, slots=True)
class At:
    """An object as one client sees it.

    Attributes:
        told: The handle that the client has; its file number is what the client is told.
        handle: What it means: another one if it is an alias.
        served: The table that it belongs to, if it belongs to one.
    """

    told: Handle
    handle: Handle
    served: ServedTable | None

    @property
    def kind(self) -> Kind:
        """What it is."""
        return self.handle.kind

    @property
    def table(self) -> ServedTable:
        """The table that it belongs to."""
        assert self.served is not None  # noqa: S101 - only the root and its scratch files have none
        return self.served

    @property
    def view(self) -> ViewKey:
        """What is kept for this client and view."""
        return ViewKey.of(self.handle)

    def at(self, handle: Handle) -> At:
        """Return another object of the same table."""
        return At(handle, handle, self.served)


@dataclass(slots=True)
class Context:
    """The parts that the file tree is made of."""

    key: bytes
    access: Access
    presenter: Presenter
    catalog: Catalog
    scratch: Scratch
    aliases: Aliases
    editor: Editor
    rejected: Rejected
    times: Times
    read_only: bool
    visitors: Visitors
    raw_files: RawFiles = field(default_factory=RawFiles)
    readers: Readers[Image] = field(default_factory=Readers[Image])
    stamps: Stamps = field(default_factory=Stamps)
    queries: QueryFiles = field(init=False)
    _refused: dict[tuple[bytes, bool], frozenset[bytes]] = field(
        default_factory=dict[tuple[bytes, bool], frozenset[bytes]]
    )

    def __post_init__(self) -> None:
        self.queries = QueryFiles(self.times.now_ns())

    def encoded(self, handle: Handle) -> bytes:
        """Return a handle as clients keep it."""
        return encode(handle, self.key)

    def check_writable(self, at: At) -> None:
        """Refuse a change if nothing may be changed, or this not by whoever asks."""
        if self.read_only:
            raise NfsError(Status.ROFS)
        self.visitors.check_change(at.handle.mount, at.kind, at.served)

    def may_change(self, at: At) -> bool:
        """Tell whether whoever asks may change a file, or make and remove entries of a directory."""
        return self.visitors.may_change(at.handle.mount, at.kind, at.served)

    def is_editable(self, at: At) -> bool:
        """Tell whether whoever asks may change the bytes of a view."""
        return is_editable(at.handle) and self.may_change(at)

    def meaning(self, told: Handle) -> Handle:
        """Return what a handle means: a scratch file may have become a view, and a view may have been moved away."""
        if told.kind is Kind.SCRATCH:
            table = self.aliases.table_of(told.param)
            return told if table is None else told.to(Kind.CSV, LIVE, table)
        if told.kind is Kind.CSV and told.param == LIVE:
            moved = self._moved(told)
            return told if moved is None else told.to(Kind.CSV, version_param(moved.version))
        return told

    def told_view(self, view: Handle) -> Handle | None:
        """Return the handle of a table's data.csv as its mount is to know it; None if the mount has moved it away."""
        if self.editor.is_hole(view.mount, view.table):
            return None
        filled = self.aliases.filled(view.mount, view.table)
        return view if filled is None else view.to(Kind.SCRATCH, filled, NO_TABLE)

    def seen(self, told: Handle, served: ServedTable | None) -> At:
        """Return what a client that holds a handle sees."""
        return At(told, self.meaning(told), served)

    def _moved(self, view: Handle) -> Moved | None:
        """Return where a mount has moved data.csv, while its handle means the moved file and not the table's."""
        moved = self.aliases.of(view.mount, view.table)
        if moved is None or self.aliases.filled(view.mount, view.table) is not None:
            return moved
        return moved if self.editor.has_moved(view.mount, view.table) else None

    async def refused_files(self, at: At) -> dict[bytes, Kept]:
        """Return the files of `.errors` or `.rejected` by their names."""
        is_errors = at.kind in {Kind.ERRORS, Kind.ERROR_FILE}
        find = self.rejected.errors if is_errors else self.rejected.files
        shelf = owned(at.handle.mount, at.table.key)
        files = {kept.name.encode(): kept for kept in await asyncio.to_thread(find, shelf)}
        self._refused[shelf, is_errors] = frozenset(files)
        return files

    def place(self, at: At) -> Place:
        """Return where a directory keeps its scratch entries.

        Raises:
            NfsError: NOTDIR: it is a file.
        """
        if at.kind is Kind.SCRATCH:
            return at.handle.param
        return _root(at.handle)

    def directory_attributes(self, at: At) -> Attributes:
        """Return a directory's attributes."""
        if at.kind is Kind.SCRATCH:
            return self.presenter.scratch(at.told, self.scratch.attributes(at.handle.param))
        place = _root(at.handle)
        root = self.scratch.root(place)
        changed_ns = self.stamps.changed_ns(place, self._entries(at, place), self.times.now_ns())
        return self.presenter.directory(
            at.told, changed_ns, subdirectories=root.subdirectories, changeable=self.may_change(at)
        )

    def _entries(self, at: At, place: bytes) -> Entries:
        table_ns = at.served.changed_ns if at.served else self.catalog.changed_ns
        others: object = None
        if at.kind is Kind.DATA:
            others = self.editor.is_hole(at.handle.mount, at.handle.table)
        elif at.kind in {Kind.ERRORS, Kind.REJECTED}:
            others = self._refused.get((owned(at.handle.mount, at.handle.table), at.kind is Kind.ERRORS))
        elif at.kind is Kind.LAKE and (others := self.visitors.shown(at.handle.mount)) is not None:
            # When tables come and go that are none of a user's is not theirs to know.
            table_ns = self.queries.started_ns
        return Entries(table_ns, self.scratch.root(place).changed_ns, self.aliases.changed_ns(place), others)


def _root(handle: Handle) -> bytes:
    """Return where one of the tree's own directories keeps its scratch entries."""
    return owned(handle.mount, handle.table + bytes([handle.kind]))
