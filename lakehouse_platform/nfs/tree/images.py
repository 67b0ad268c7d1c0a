"""A table's images: the newest of each form, those shown lately, and those of old versions."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lakehouse_platform.errors import NotADeltaTableError, TableNotFoundError
from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.layout import Layout
from lakehouse_platform.nfs.tree.segments import Segment, SegmentCache, Source
from lakehouse_platform.nfs.tree.sizes import Placement
from lakehouse_platform.nfs.tree.table_image import TableImage
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.pinned import Pinned, PinnedFile
from lakehouse_platform.store.table import Table

# What clients may still send back: a page cache that was filled before so many changes by others is rare.
_RETAINED = 64
_OLD_VERSIONS = 16
# A look at the log of a remote table takes a round trip, so its answer is believed for so long.
_REMOTE_FRESH_SECONDS = 1.0

_Part: TypeAlias = tuple[Segment, Placement | None]


def table_key(location: Location) -> bytes:
    """Return the 8 bytes that stand for a table in handles and in the cache."""
    return hashlib.blake2b(location.uri.encode(), digest_size=8).digest()


@dataclass(slots=True)
class _Shown:
    """One form's images."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pinned: Pinned | None = None
    images: deque[TableImage] = field(default_factory=lambda: deque[TableImage](maxlen=_RETAINED))
    checked: float = float("-inf")


class Images:
    """The images of one table. `current`, `retained` and `is_fresh` never block; the others may for long."""

    def __init__(
        self,
        table: Table,
        cache: SegmentCache,
        *,
        remote_fresh_seconds: float = _REMOTE_FRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the images of a table; nothing is opened yet.

        Args:
            table: The table.
            cache: Keeps rendered segments.
            remote_fresh_seconds: How long a table on an object store is believed not to have changed.
            clock: The clock that `is_fresh` is asked by.
        """
        self._table = table
        self._cache = cache
        self._owner = table_key(table.location)
        self._fresh_seconds = 0.0 if table.location.is_local else remote_fresh_seconds
        self._clock = clock
        self._pin_lock = threading.Lock()
        self._pinned: Pinned | None = None
        self._shown = {form: _Shown() for form in Form}
        self._old: OrderedDict[tuple[int, Form], TableImage] = OrderedDict()

    @property
    def pinned(self) -> Pinned | None:
        """The newest version that was seen."""
        return self._pinned

    def current(self, form: Form = Form.CSV) -> TableImage | None:
        """Return the last image of a form; None before the first `refresh` and after the table was dropped."""
        images = self._shown[form].images
        return images[0] if images else None

    def retained(self, form: Form = Form.CSV) -> Sequence[TableImage]:
        """Return the last images of a form, newest first."""
        return tuple(self._shown[form].images)

    def is_fresh(self, now: float, form: Form = Form.CSV) -> bool:
        """Tell whether `current` shows the newest version; for a remote table, whether it did a moment ago."""
        shown, pinned = self._shown[form], self._pinned
        if pinned is None or shown.pinned is not pinned:
            return False
        if self._table.location.is_local:
            return pinned.is_newest()
        return now - shown.checked < self._fresh_seconds

    def refresh(self, form: Form = Form.CSV) -> TableImage:
        """Find the newest version, render what is new in it, and return its image.

        Raises:
            TableNotFoundError, NotADeltaTableError: The table is gone; its images are forgotten.
            DataFilesMissingError: A data file is missing.
        """
        shown = self._shown[form]
        checked = self._clock()
        self._advance()
        with shown.lock:
            pinned = self._pinned
            if pinned is None:
                return self._gone()
            if shown.pinned is not pinned:
                made = self._next(pinned, form, shown)
                if shown.pinned is not None and shown.pinned.table_id != pinned.table_id:
                    shown.images.clear()
                shown.images.appendleft(made)
                shown.pinned = pinned
            shown.checked = checked
            return shown.images[0]

    def at(self, version: int, form: Form = Form.CSV) -> TableImage:
        """Return the image of any version.

        Raises:
            VersionNotFoundError: It cannot be read any more.
            DataFilesMissingError: Its data files were vacuumed.
        """
        with self._pin_lock:
            found = self._old.get((version, form))
        if found is not None:
            return found
        pinned = Pinned.open(self._table, version)
        changed_ns = self._cache.sizes.changed_before(
            self._owner, pinned.table_id, pinned.version, pinned.committed_ns
        )
        made = self._image(pinned, form, self._whole(pinned, form, {}), changed_ns)
        with self._pin_lock:
            self._old[version, form] = made
            if len(self._old) > _OLD_VERSIONS:
                self._old.popitem(last=False)
        return made

    def prepare(self, image: TableImage) -> None:
        """Bring all bytes of an image into the cache, as far as its budget goes."""
        image.prepare(0, image.size)

    def _advance(self) -> None:
        with self._pin_lock:
            before = self._pinned
            try:
                now = before.newer() if before else Pinned.open(self._table)
            except (TableNotFoundError, NotADeltaTableError):
                self._forget()
                raise
            if before is not None and now.table_id != before.table_id:
                self._old.clear()
            self._pinned = now

    def _forget(self) -> None:
        self._pinned = None
        self._old.clear()
        for shown in self._shown.values():
            shown.pinned = None
            shown.images.clear()

    def _gone(self) -> TableImage:
        raise TableNotFoundError(f"Table {self._table.name} was dropped.", table=self._table.name)

    def _next(self, pinned: Pinned, form: Form, shown: _Shown) -> TableImage:
        layout = self._grown(pinned, form, shown) or self._whole(pinned, form, _taken_over(pinned, shown))
        changed_ns = self._cache.sizes.changed(
            self._owner, pinned.table_id, pinned.version, pinned.committed_ns
        )
        return self._image(pinned, form, layout, changed_ns)

    def _grown(self, pinned: Pinned, form: Form, shown: _Shown) -> Layout | None:
        """Return the last image's layout with the new files behind, if nothing else has changed."""
        before = shown.pinned
        if before is None or before.reader.fingerprint != pinned.reader.fingerprint:
            return None
        layout, count = shown.images[0].layout, len(before.files)
        if len(layout) != count or pinned.files[:count] != before.files:
            return None
        layout.extend(self._measured(pinned.files[count:], pinned, form))
        return layout

    def _whole(self, pinned: Pinned, form: Form, known: Mapping[bytes, _Part]) -> Layout:
        """Return a new layout of segments that are known already and others."""
        others = [file for file in pinned.files if file.token not in known]
        parts = dict(zip((file.token for file in others), self._measured(others, pinned, form), strict=True))
        layout = Layout(self._cache)
        layout.extend([known.get(file.token) or parts[file.token] for file in pinned.files])
        return layout

    def _measured(self, files: Sequence[PinnedFile], pinned: Pinned, form: Form) -> list[_Part]:
        return self._cache.measured([Source(self._owner, form, pinned.reader, file) for file in files])

    def _image(self, pinned: Pinned, form: Form, layout: Layout, changed_ns: int) -> TableImage:
        return TableImage(
            form=form,
            version=pinned.version,
            changed_ns=changed_ns,
            schema=pinned.schema,
            key=pinned.key,
            constraints=pinned.constraints,
            layout=layout,
            count=len(pinned.files),
        )


def _taken_over(pinned: Pinned, shown: _Shown) -> Mapping[bytes, _Part]:
    """Return the segments of the last image by their files' tokens, if its columns are the same."""
    before = shown.pinned
    if before is None or before.reader.fingerprint != pinned.reader.fingerprint:
        return {}
    parts = shown.images[0].layout.parts(len(before.files))
    return {part[0].source.file.token: part for part in parts}
