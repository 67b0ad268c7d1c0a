"""Which image each client is reading: one client sees one version from the first READ to the last."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakehouse_platform.nfs.tree.nodes import ViewKey

_Image = TypeVar("_Image")
# Linux revalidates what it has cached for 3 s at least (acregmin, nfs(5)); READs of one pass come closer together.
_IDLE_SECONDS = 2.0
_TOLD_SECONDS = 3.0
# A reader that never ends must not keep an old version's files busy.
_LONGEST_SECONDS = 300.0
_MOST_READERS = 4096


@dataclass(slots=True)
class _Reader(Generic[_Image]):
    image: _Image
    since: float
    last: float
    streams: bool = False
    ended: bool = False


@dataclass(slots=True)
class Readers(Generic[_Image]):
    """The readers of all views. Pure: the time is an argument, in seconds."""

    _readers: OrderedDict[ViewKey, _Reader[_Image]] = field(
        default_factory=OrderedDict[ViewKey, _Reader[_Image]]
    )

    def told(self, view: ViewKey, image: _Image, now: float) -> None:
        """Note the image whose attributes a client was given: the READs that follow begin with it."""
        if self._streaming(view, now) is None:
            self._put(view, _Reader(image, now, now))

    def pinned(self, view: ViewKey, now: float) -> _Image | None:
        """Return the image that a client is in the middle of."""
        reader = self._streaming(view, now)
        return reader.image if reader and not reader.ended else None

    def reading(self, view: ViewKey, offset: int, now: float) -> _Image | None:
        """Return the image that a READ at an offset goes on with; None to begin with the newest."""
        reader = self._readers.get(view)
        if reader is None or (reader.ended and offset == 0):
            return None
        if now - reader.last > (_IDLE_SECONDS if reader.streams else _TOLD_SECONDS):
            return None
        return reader.image if now - reader.since <= _LONGEST_SECONDS else None

    def read(self, view: ViewKey, image: _Image, now: float, *, at_end: bool) -> None:
        """Note an answered READ. After the last bytes only READs that were overtaken still get this image."""
        reader = self._readers.get(view)
        if reader is None or reader.image is not image:
            reader = self._put(view, _Reader(image, now, now))
        reader.last = now
        reader.streams = True
        reader.ended = reader.ended or at_end

    def release(self, view: ViewKey) -> None:
        """Forget what a client was reading: it writes now."""
        self._readers.pop(view, None)

    def _streaming(self, view: ViewKey, now: float) -> _Reader[_Image] | None:
        reader = self._readers.get(view)
        if reader is None or not reader.streams or reader.ended:
            return None
        if now - reader.last > _IDLE_SECONDS or now - reader.since > _LONGEST_SECONDS:
            return None
        return reader

    def _put(self, view: ViewKey, reader: _Reader[_Image]) -> _Reader[_Image]:
        self._readers[view] = reader
        self._readers.move_to_end(view)
        while len(self._readers) > 1:
            oldest = next(iter(self._readers.values()))
            if len(self._readers) <= _MOST_READERS and reader.last - oldest.last <= _LONGEST_SECONDS:
                break
            self._readers.popitem(last=False)
        return reader
