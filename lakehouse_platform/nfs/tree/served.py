"""One served table: its images, small files and data files, and how new they are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock
from typing import TypeVar

from lakehouse_platform.errors import TimestampOutOfRangeError
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.data_files import DataFiles
from lakehouse_platform.nfs.tree.flights import Flights
from lakehouse_platform.nfs.tree.follower import Follower
from lakehouse_platform.nfs.tree.handles import Kind
from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.images import Images, table_key
from lakehouse_platform.nfs.tree.sql_door import SqlDoor
from lakehouse_platform.nfs.tree.table_image import TableImage
from lakehouse_platform.nfs.tree.views import Text, changed_ns, render
from lakehouse_platform.store.log import list_log
from lakehouse_platform.store.pinned import Pinned, PinnedFile
from lakehouse_platform.store.table import Table

_K = TypeVar("_K")
_V = TypeVar("_V")
_MOST_TEXTS = 256
_MOST_IMAGES = 32
_MOST_FILES = 4096
_NS_PER_MS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Times:
    """The clocks.

    Attributes:
        now: Seconds, for what lasts.
        now_ns: Nanoseconds since 1970, for what is shown.
    """

    now: Callable[[], float]
    now_ns: Callable[[], int]


class ServedTable:
    """A table with all that the tree knows of it. Used on the event loop's thread.

    Attributes:
        table: The table.
        key: Its place in handles.
        name: Its directory's name.
        images: Its images.
        door: Runs SQL for its directory.
        newest: Follows its newest version, without rendering anything.
        shown: Follow the newest image of each form.
        is_system: Whether it is one of the platform's own tables.
    """

    def __init__(
        self, table: Table, images: Images, door: SqlDoor, times: Times, gone: Callable[[bytes], None]
    ) -> None:
        self.table = table
        self.key = table_key(table.location)
        self.name = table.name.encode()
        self.images = images
        self.door = door
        self.is_system = False
        self.flights = Flights()
        self._opened: Pinned | None = None
        self._opening = Lock()
        self._texts: OrderedDict[tuple[str, Kind, int], Text] = OrderedDict()
        self._moments: OrderedDict[tuple[str, int, int], int] = OrderedDict()
        self._old: OrderedDict[tuple[str, int, Form], TableImage] = OrderedDict()
        self._read_files: OrderedDict[int, PinnedFile] = OrderedDict()
        self._files: DataFiles | None = None
        follow = partial(
            Follower, is_local=table.location.is_local, now=times.now, gone=lambda: gone(self.key)
        )
        self.newest: Follower[Pinned] = follow(lambda: self._opened, self._is_newest, self._open)
        self.shown: dict[Form, Follower[TableImage]] = {
            form: follow(
                partial(images.current, form),
                partial(self._is_fresh, form, times.now),
                partial(images.refresh, form),
            )
            for form in Form
        }

    @property
    def _followers(self) -> Sequence[Follower[Pinned] | Follower[TableImage]]:
        return self.newest, *self.shown.values()

    @property
    def pinned(self) -> Pinned:
        """The version that is shown.

        Raises:
            NfsError: JUKEBOX: the table was never opened.
        """
        if self._opened is None:
            raise NfsError(Status.JUKEBOX)
        return self._opened

    @property
    def _id(self) -> str:
        """Tells the table from one that took its place: what is kept is of this one."""
        return self._opened.table_id if self._opened else ""

    def _is_newest(self) -> bool:
        return self.pinned.is_newest()

    def _open(self) -> Pinned:
        # Two may look at once; the one that looked first must not have the last word.
        with self._opening:
            known = self.images.pinned or self._opened
            self._opened = known.newer() if known else Pinned.open(self.table)
            return self._opened

    def _is_fresh(self, form: Form, now: Callable[[], float]) -> bool:
        return self.images.is_fresh(now(), form)

    def expire(self) -> None:
        """Look anew before anything more is told: the server has just changed the table itself."""
        for follower in self._followers:
            follower.expire()

    async def close(self) -> None:
        """End what runs in the background."""
        for follower in self._followers:
            await follower.close()
        await self.flights.settle()

    # ── Small files ───────────────────────────────────────────────────────────────────────────────

    def known_text(self, kind: Kind, version: int) -> Text | None:
        """Return a small file if it was rendered already."""
        return self._texts.get((self._id, kind, version))

    async def text(self, kind: Kind, version: int) -> Text:
        """Return a small file of a version."""
        if found := self.known_text(kind, version):
            return found
        key = self._id, kind, version
        text = await self.flights.run(key, lambda: render(self.table, kind, version))
        return _remember(self._texts, key, text, _MOST_TEXTS)

    @property
    def changed_ns(self) -> int:
        """When the table last changed, for its directories; 0 if it was never opened."""
        pinned = self._opened
        return changed_ns(pinned.version, pinned.committed_ns // _NS_PER_MS) if pinned else 0

    # ── Images of old versions ────────────────────────────────────────────────────────────────────

    def known_image(self, version: int, form: Form) -> TableImage | None:
        """Return the image of a version if it was made lately."""
        return self._old.get((self._id, version, form))

    async def image_at(self, version: int, form: Form) -> TableImage:
        """Return the image of a version.

        Raises:
            VersionNotFoundError: It cannot be read any more.
        """
        if found := self.known_image(version, form):
            return found
        key = self._id, version, form
        image = await self.flights.run(key, lambda: self.images.at(version, form))
        return _remember(self._old, key, image, _MOST_IMAGES)

    # ── Data files and versions ───────────────────────────────────────────────────────────────────

    def data_files(self) -> DataFiles:
        """Return the live data files."""
        if self._files is None or self._files.pinned is not self.pinned:
            self._files = DataFiles(self.pinned)
        return self._files

    def data_file(self, number: int) -> PinnedFile | None:
        """Return a data file by the number in its handle: a live one, or one that was read while it was."""
        found = self.data_files().numbered(number)
        if found is None:
            return self._read_files.get(number)
        return _remember(self._read_files, number, found, _MOST_FILES)

    async def versions(self) -> range:
        """Return the versions that can still be read, the oldest first."""
        listing = await self.flights.run("versions", lambda: list_log(self.table.location))
        return range(listing.first_readable, listing.last + 1) if not listing.is_empty else range(0)

    async def version_at(self, micros: int) -> int:
        """Return the version that was the newest at a time in microseconds since 1970.

        Raises:
            NfsError: NOENT: the table was not there yet.
        """
        key = self._id, self.pinned.version, micros
        if found := self._moments.get(key):
            return found
        moment = _EPOCH + timedelta(microseconds=micros)
        try:
            version = await self.flights.run(key, lambda: self.table.version_at(moment))
        except TimestampOutOfRangeError as error:
            raise NfsError(Status.NOENT, error.message) from error
        return _remember(self._moments, key, version, _MOST_TEXTS)


def _remember(cache: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> _V:
    """Put a value into a cache that forgets the oldest."""
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)
    return value
