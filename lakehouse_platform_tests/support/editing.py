"""Clients that edit one real table through the `Editor`, as a kernel does it, with clocks that tests move by hand."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.nfs.edits.editor import Clocks, Editor
from lakehouse_platform.nfs.edits.permits import OWNERS, Permits
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import Stable
from lakehouse_platform.nfs.tree.images import Images, table_key
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.store.table import Table

PAGE = 4096
PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("age", pa.int32())])
PEOPLE_ROWS = [{"id": n, "name": f"n{n}", "age": 30 + n} for n in (1, 2, 3)]
PEOPLE_FILE = b"id,name,age\n1,n1,31\n2,n2,32\n3,n3,33\n"


class HandClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def now_ns(self) -> int:
        return int(self.time * 1e9)


@dataclass(frozen=True, slots=True)
class EditedTable:
    """A table as the editor sees it."""

    table: Table
    images: Images
    key: bytes

    @classmethod
    def of(cls, table: Table, cache: SegmentCache) -> EditedTable:
        table = table.through(Origin(door=Door.NFS))
        return cls(table, Images(table, cache), table_key(table.location))


@dataclass
class Mount:
    """One client: what it has cached, and how it writes that."""

    editor: Editor
    view: View
    id: bytes = b"mnt1"
    cached: bytes = b""

    async def getattr(self) -> int:
        """Ask for attributes: a close or an open; return the size."""
        if self.editor.is_dirty(self.id, self.view.key):
            await self.editor.close_signal(self.id, self.view)
        await asyncio.to_thread(self.view.images.refresh)
        seen = self.editor.seen(self.id, self.view)
        assert seen is not None
        if not hasattr(seen, "content"):
            self.editor.tell(self.id, self.view, seen)  # type: ignore[arg-type]
        return seen.size

    async def read(self) -> bytes:
        """Open the file and read all of it."""
        await self.getattr()
        seen = self.editor.seen(self.id, self.view)
        assert seen is not None
        content = getattr(seen, "content", seen)
        if content is seen:
            self.editor.note_read(self.id, self.view, seen)  # type: ignore[arg-type]
        self.cached = b"".join(bytes(part) for part in content.read(0, content.size))
        return self.cached

    async def write(self, offset: int, data: bytes, stable: Stable = Stable.FILE_SYNC) -> None:
        """Send one WRITE."""
        await self.editor.write(self.id, self.view, offset, memoryview(data), stable)

    async def append(self, rows: bytes, *, pages: bool = True) -> None:
        """Append as a client does that has the last page cached."""
        size = len(self.cached)
        start = size // PAGE * PAGE if pages else size
        self.cached += rows
        await self.write(start, self.cached[start:])

    async def overwrite(self, content: bytes) -> None:
        """Do what `cat > f` does."""
        await self.editor.truncate(self.id, self.view, 0)
        self.cached = content
        if content:
            await self.write(0, content)

    async def echo(self, rows: bytes) -> None:
        """Do what `echo >> f` does, close included."""
        await self.read()
        await self.append(rows)
        await self.getattr()


@dataclass
class Bench:
    """An editor for one table, and its clients."""

    table: Table
    state: Path
    clock: HandClock = field(default_factory=HandClock)
    wakes_itself: bool = False
    quota_bytes: int = 1 << 30
    permits: Permits = OWNERS

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Running]:
        """Run the editor; the server is not stopped properly at the end, as after `kill -9`."""
        cache = SegmentCache(self.state, 1 << 24)
        view = EditedTable.of(self.table, cache)

        async def find(key: bytes) -> View | None:
            return view if key == view.key and self.table.exists() else None

        clocks = Clocks() if self.wakes_itself else Clocks(self.clock.now, self.clock.now_ns)
        editor = Editor(
            self.state,
            find,
            clocks=clocks,
            wakes_itself=self.wakes_itself,
            quota_bytes=self.quota_bytes,
            permits=self.permits,
        )
        try:
            await editor.recover()
            yield Running(editor, view, self.clock)
        finally:
            editor.close()
            cache.close()


@dataclass
class Running:
    """A running editor."""

    editor: Editor
    view: EditedTable
    clock: HandClock
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def mount(self, number: int | None = None) -> Mount:
        """Return a client."""
        name = next(self._ids) if number is None else number
        return Mount(self.editor, self.view, f"mnt{name}".encode())

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.time += seconds
        await self.editor.run_due()

    def rows(self) -> list[dict[str, object]]:
        """Return the table's rows, as a reader beside the mount sees them."""
        return sorted(self.view.table.scan().to_pylist(), key=repr)

    def shown(self) -> bytes:
        """Return what every other client sees."""
        image = self.view.images.refresh()
        return b"".join(bytes(part) for part in image.read(0, image.size))

    @property
    def version(self) -> int:
        """The table's newest version."""
        return self.view.table.version()

    def last_error(self) -> str:
        """Return what `.last_error` says."""
        return self.editor.rejected.last_error(self.view.key)[0].decode()

    def rejected(self) -> Sequence[bytes]:
        """Return the refused bytes."""
        return [
            kept.path.read_bytes()
            for kept in self.editor.rejected.files(self.view.key)
            if kept.name.endswith("-data.csv")
        ]
