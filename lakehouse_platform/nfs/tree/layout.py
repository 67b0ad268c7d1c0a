"""Segments behind each other: where each begins and where its bytes are.

A layout only grows at its end, so that all images of a table that was only appended to share one: an append costs what
it adds. Neighbours in one cache file are one run, so that thousands of tiny segments are read as one slice.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.tree.segments import Segment, SegmentCache
from lakehouse_platform.nfs.tree.sizes import Placement

_NOWHERE = Placement(0, 0)
# When evicted bytes are needed, so many segments from there on are brought back at once.
_AHEAD = 64


@dataclass(slots=True)
class _Runs:
    """Stretches of neighbouring bytes; parallel lists, `starts` grows last."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    units: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))

    def add(self, start: int, size: int, place: Placement) -> None:
        """Put a segment's bytes behind the others."""
        if not size:
            return
        if self.starts and self.units[-1] == place.unit:
            expected = self.offsets[-1] + start - self.starts[-1]
            if place == _NOWHERE or place.at == expected:
                return
        self.units.append(place.unit)
        self.offsets.append(place.at)
        self.starts.append(start)

    def at(self, position: int) -> tuple[int, int, int, int | None]:
        """Return start, unit and offset of the run at a position, and where the next begins."""
        number = bisect_right(self.starts, position) - 1
        end = self.starts[number + 1] if number + 1 < len(self.starts) else None
        return self.starts[number], self.units[number], self.offsets[number], end


class Layout:
    """A growing sequence of segments; grown by one thread at a time, read by any."""

    def __init__(self, cache: SegmentCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._places: list[Placement] = []
        self._runs = _Runs()
        self.segments: list[Segment] = []
        self.starts = array("q")
        self.ends = array("q")

    def __len__(self) -> int:
        return len(self.segments)

    def extend(self, added: Sequence[tuple[Segment, Placement | None]]) -> None:
        """Put segments behind the others."""
        with self._lock:
            for segment, place in added:
                start, size = self.size_of(len(self)), segment.measured.size
                self._places.append(place or _NOWHERE)
                self._runs.add(start, size, place or _NOWHERE)
                self.starts.append(start)
                self.ends.append(start + size)
                self.segments.append(segment)

    def parts(self, count: int) -> list[tuple[Segment, Placement | None]]:
        """Return the first segments and where their bytes were when last looked for."""
        with self._lock:
            return list(zip(self.segments[:count], self._places[:count], strict=True))

    def size_of(self, count: int) -> int:
        """Return how many bytes the first segments have."""
        return self.ends[count - 1] if count else 0

    def segment_at(self, position: int) -> int:
        """Return the number of the segment that holds a byte."""
        return bisect_right(self.ends, position)

    def is_ready(self, start: int, stop: int) -> bool:
        """Tell whether all bytes of a range are in the cache."""
        while start < stop:
            _, unit, _, end = self._runs.at(start)
            if not self._cache.has(unit):
                return False
            start = stop if end is None else end
        return True

    def read(self, start: int, stop: int) -> list[Buffer]:
        """Return the bytes of a range as few slices; renders what was evicted."""
        views: list[Buffer] = []
        while start < stop:
            view = self._slice(start, stop) or self._fetched(start, stop)
            views.append(view)
            start += len(view)
        return views

    def prepare(self, start: int, stop: int) -> None:
        """Bring the bytes of a range into the cache."""
        if start < stop and not self.is_ready(start, stop):
            self._place(self.segment_at(start), self.segment_at(stop - 1) + 1)

    def _slice(self, start: int, stop: int) -> memoryview | None:
        run, unit, offset, end = self._runs.at(start)
        size = (stop if end is None else min(stop, end)) - start
        return self._cache.view(unit, offset + start - run, size)

    def _fetched(self, start: int, stop: int) -> memoryview:
        """Return the first bytes of a range whose bytes are gone."""
        first = self.segment_at(start)
        last = min(self.segment_at(stop - 1) + 1, first + _AHEAD)
        while True:
            place = self._place(first, last)[0]
            size = min(stop, self.ends[first]) - start
            view = self._cache.view(place.unit, place.at + start - self.starts[first], size)
            if view is not None:
                return view
            last = first + 1  # the cache is so small that what comes later has evicted this already

    def _place(self, first: int, last: int) -> list[Placement]:
        places = self._cache.placed(self.segments[first:last])
        with self._lock:
            self._places[first:last] = places
            runs = _Runs()
            for segment, start, place in zip(self.segments, self.starts, self._places, strict=True):
                runs.add(start, segment.measured.size, place)
            self._runs = runs
        return places
