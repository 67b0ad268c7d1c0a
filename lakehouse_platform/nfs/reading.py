"""GETATTR and READ: what each client sees of each file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

from lakehouse_platform.errors import VersionNotFoundError
from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.context import At, Context
from lakehouse_platform.nfs.edits.editor import Sight as Edited
from lakehouse_platform.nfs.operations import Attributes, NfsError, ReadData, Status
from lakehouse_platform.nfs.querying import Querying
from lakehouse_platform.nfs.tree.handles import Kind, hash64, owned
from lakehouse_platform.nfs.tree.image import Image
from lakehouse_platform.nfs.tree.nodes import DIRECTORIES, FORMS, LIVE, TEXTS, version_of
from lakehouse_platform.nfs.tree.raw import FileContent
from lakehouse_platform.nfs.tree.table_image import TableImage
from lakehouse_platform.nfs.tree.views import Text
from lakehouse_platform.nfs.visitors import Opened

MOST_READ = 1 << 20
_NS_PER_MS = 1_000_000
_REFUSED = frozenset({Kind.ERRORS, Kind.REJECTED})


@dataclass(frozen=True, slots=True)
class Sight:
    """What a client sees of a file.

    Attributes:
        content: Its bytes.
        changed_ns: Its ctime and mtime.
        image: The image that the bytes are of, if they are of one that follows the table.
        rows: The rows of a data file, if its writer has told.
    """

    content: Content
    changed_ns: int
    image: Image | None = None
    rows: int | None = None


class Reading:
    """Answers GETATTR and READ."""

    def __init__(self, ctx: Context, querying: Querying) -> None:
        self._ctx = ctx
        self._querying = querying

    # ── Attributes ────────────────────────────────────────────────────────────────────────────────

    def getattr(self, at: At) -> Attributes | Awaitable[Attributes]:
        """Return the attributes; waits where the size has to be found out, or for an edit to be published."""
        if self.is_dirty(at):
            return self._closed(at)
        known = self.known_attributes(at)
        return self._found_out(at) if known is None else known

    def known_attributes(self, at: At) -> Attributes | None:
        """Return the attributes if nothing has to be waited for, and no edit is open."""
        if at.kind is Kind.SCRATCH:
            return self._ctx.presenter.scratch(at.told, self._ctx.scratch.attributes(at.handle.param))
        if at.kind in DIRECTORIES:
            is_known = self._is_opened(at) and at.kind not in _REFUSED
            return self._ctx.directory_attributes(at) if is_known else None
        sight = self._quick(at)
        return None if sight is None else self._shown(at, sight)

    def _is_opened(self, at: At) -> bool:
        return at.served is None or at.served.changed_ns > 0

    def attributes_now(self, at: At) -> Attributes | None:
        """Return the attributes as they are now, of an edit too, without taking the asking for a close."""
        edited = self._edited(at)
        return self._shown(at, edited) if edited else self.known_attributes(at)

    async def content(self, at: At) -> Content:
        """Return the bytes of a file."""
        return (await self._sight(at)).content

    def is_dirty(self, at: At) -> bool:
        """Tell whether a client is editing a view, so that its asking for attributes may be a close."""
        return _is_live(at) and self._ctx.editor.is_dirty(at.handle.mount, at.table.key)

    async def _closed(self, at: At) -> Attributes:
        await self._ctx.editor.close_signal(at.handle.mount, at.table)
        return await self._found_out(at)

    async def _found_out(self, at: At) -> Attributes:
        if at.kind in DIRECTORIES:
            await at.table.newest.newest()
            if at.kind in _REFUSED:
                await self._ctx.refused_files(at)
            return self._ctx.directory_attributes(at)
        return self._shown(at, await self._sight(at))

    def _shown(self, at: At, sight: Sight) -> Attributes:
        if sight.image is not None:
            self._ctx.readers.told(at.view, sight.image, self._ctx.times.now())
            self._tell(at, sight.image)
        return self._ctx.presenter.file(
            at.told, sight.content.size, sight.changed_ns, editable=self._ctx.is_editable(at)
        )

    # ── Bytes ─────────────────────────────────────────────────────────────────────────────────────

    def read(self, at: At, offset: int, count: int) -> ReadData | Awaitable[ReadData]:
        """Return bytes; at once if they are at hand."""
        count = min(count, MOST_READ)
        if at.kind in DIRECTORIES:
            raise NfsError(Status.ISDIR)
        if at.kind is Kind.SCRATCH:
            return self._read_scratch(at, offset, count)
        sight = self._streamed(at, offset) or self._quick(at)
        if sight is None or not _is_at_hand(sight.content, offset, count):
            return self._read_later(at, sight, offset, count)
        return self._read_now(at, sight, offset, count)

    def _read_scratch(self, at: At, offset: int, count: int) -> ReadData:
        scratch = self._ctx.scratch
        found = scratch.attributes(at.handle.param)
        buffers = scratch.read(at.handle.param, offset, count)
        return ReadData(buffers, offset + count >= found.size, self._ctx.presenter.scratch(at.told, found))

    def _streamed(self, at: At, offset: int) -> Sight | None:
        """Return the image that the client is in the middle of."""
        if at.kind not in FORMS or at.handle.param != LIVE:
            return None
        image = self._ctx.readers.reading(at.view, offset, self._ctx.times.now())
        if image is None or self._edited(at):
            return None
        return Sight(image, image.changed_ns, image)

    async def _read_later(self, at: At, sight: Sight | None, offset: int, count: int) -> ReadData:
        found = sight or await self._sight(at)
        if not _is_at_hand(found.content, offset, count):
            buffers = await asyncio.to_thread(found.content.read, offset, count)
            return self._answered(at, found, ReadData(buffers, _ends(found.content, offset, count), None))
        return self._read_now(at, found, offset, count)

    def _read_now(self, at: At, sight: Sight, offset: int, count: int) -> ReadData:
        buffers = sight.content.read(offset, count) if offset < sight.content.size else []
        return self._answered(at, sight, ReadData(buffers, _ends(sight.content, offset, count), None))

    def _answered(self, at: At, sight: Sight, data: ReadData) -> ReadData:
        if sight.image is not None:
            self._ctx.readers.read(at.view, sight.image, self._ctx.times.now(), at_end=data.eof)
            self._tell(at, sight.image)
            if at.kind is Kind.CSV:
                self._ctx.editor.note_read(at.handle.mount, at.table, sight.image)
        attributes = self._ctx.presenter.file(
            at.told, sight.content.size, sight.changed_ns, editable=self._ctx.is_editable(at)
        )
        return ReadData(data.buffers, data.eof, attributes, sight)

    def _tell(self, at: At, image: Image) -> None:
        if at.kind is Kind.CSV:
            self._ctx.editor.tell(at.handle.mount, at.table, image)

    # ── What is seen ──────────────────────────────────────────────────────────────────────────────

    def _quick(self, at: At) -> Sight | None:
        """Return what a client sees if that is known."""
        if at.kind in FORMS:
            return self._quick_image(at)
        if at.kind in TEXTS:
            return self._quick_text(at)
        if at.kind is Kind.QUERY:
            return _of_text(self._querying.quick(at))
        return self._data_file(at) if at.kind is Kind.PARQUET and self._is_opened(at) else None

    def _quick_image(self, at: At) -> Sight | None:
        version = version_of(at.handle)
        if version is not None:
            image = at.table.known_image(version, FORMS[at.kind])
            return None if image is None else Sight(image, image.changed_ns)
        if self.is_dirty(at):
            return None
        if edited := self._edited(at):
            return edited
        image = (
            self._ctx.readers.pinned(at.view, self._ctx.times.now()) or at.table.shown[FORMS[at.kind]].known()
        )
        return None if image is None else Sight(image, image.changed_ns, image)

    def _quick_text(self, at: At) -> Sight | None:
        version = version_of(at.handle)
        if version is None:
            newest = at.table.newest.known()
            version = newest.version if newest else -1
        return _of_text(at.table.known_text(at.kind, version))

    async def _sight(self, at: At) -> Sight:
        if at.kind in FORMS:
            return await self._image(at)
        if at.kind in TEXTS:
            return await self._text(at)
        if at.kind is Kind.QUERY:
            text = await self._querying.shown(at)
            return Sight(text, text.changed_ns)
        if at.kind is Kind.LAST_ERROR:
            shelf = owned(at.handle.mount, at.table.key)
            data, changed_ns = await asyncio.to_thread(self._ctx.rejected.last_error, shelf)
            changed_ns = changed_ns or self._ctx.queries.started_ns
            return Sight(Text(data, changed_ns), changed_ns)
        return self._data_file(at) if at.kind is Kind.PARQUET else await self._refused_file(at)

    async def _image(self, at: At) -> Sight:
        version = version_of(at.handle)
        if version is not None:
            image = await self._old_image(at, version)
            return Sight(image, image.changed_ns)
        if edited := self._edited(at):
            return edited
        image = await at.table.shown[FORMS[at.kind]].newest()
        return Sight(image, image.changed_ns, image)

    def _edited(self, at: At) -> Sight | None:
        """Return what a client edits, or wrote last where the newest image does not hold it yet."""
        if not _is_live(at):
            return None
        seen = self._ctx.editor.seen(at.handle.mount, at.table)
        return Sight(seen.content, seen.changed_ns) if isinstance(seen, Edited) else None

    async def _old_image(self, at: At, version: int) -> Image:
        try:
            return await at.table.image_at(version, FORMS[at.kind])
        except VersionNotFoundError as error:
            raise NfsError(Status.STALE, error.message) from error

    async def _text(self, at: At) -> Sight:
        version = version_of(at.handle)
        if version is None:
            version = (await at.table.newest.newest()).version
        text = await at.table.text(at.kind, version)
        return Sight(text, text.changed_ns)

    def _data_file(self, at: At) -> Sight:
        file = at.table.data_file(at.handle.param)
        if file is None:
            raise NfsError(Status.STALE, "the data file is not part of the table any more")
        content = self._ctx.raw_files.content(at.table.table.location, file.path, file.size)
        return Sight(content, file.modified_ms * _NS_PER_MS, rows=file.rows)

    async def _refused_file(self, at: At) -> Sight:
        for name, kept in (await self._ctx.refused_files(at)).items():
            if at.handle.param == hash64(name):
                return Sight(FileContent(kept.path, kept.size), kept.changed_ns)
        raise NfsError(Status.STALE)


def opened_by(data: ReadData) -> Opened | None:
    """Return what file of a table, with what content, bytes are of; None for scratch files."""
    sight = data.of
    if not isinstance(sight, Sight):
        return None
    content = sight.content
    return Opened((sight.changed_ns, content.size), content.size, partial(_rows, sight))


def _rows(sight: Sight) -> int | None:
    content = sight.content
    return (
        sum(segment.rows for segment in content.segments) if isinstance(content, TableImage) else sight.rows
    )


def _is_live(at: At) -> bool:
    return at.kind is Kind.CSV and at.handle.param == LIVE


def _of_text(text: Text | None) -> Sight | None:
    return None if text is None else Sight(text, text.changed_ns)


def _ends(content: Content, offset: int, count: int) -> bool:
    return offset + count >= content.size


def _is_at_hand(content: Content, offset: int, count: int) -> bool:
    if isinstance(content, Text) or offset >= content.size:
        return True
    return isinstance(content, TableImage) and content.is_ready(offset, count)
