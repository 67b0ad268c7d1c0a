"""A file while it is edited: what the client saw, overlaid with what it wrote since. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from lakehouse_platform.nfs.content import Buffer, Content

_STEP = 1 << 20
_ZEROS = bytes(1 << 16)


class Source(Protocol):
    """Where written bytes are kept: the log of the edit."""

    def pread(self, place: int, count: int) -> bytes:
        """Return bytes at a place."""
        ...


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes in memory as a `Content`."""

    data: bytes = b""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return a range, cut at the end."""
        return [memoryview(self.data)[offset : offset + count]]


class Extents:
    """Which ranges of a file were written, and where in the log their bytes are: 24 bytes of memory for each."""

    __slots__ = ("_places", "_starts", "_stops")

    def __init__(self) -> None:
        self._starts = array("q")
        self._stops = array("q")
        self._places = array("q")

    def __len__(self) -> int:
        return len(self._starts)

    def copy(self) -> Extents:
        """Return a copy that stays as it is."""
        twin = Extents()
        twin._starts, twin._stops, twin._places = self._starts[:], self._stops[:], self._places[:]
        return twin

    def put(self, start: int, stop: int, place: int) -> None:
        """Lay the range [start, stop), kept at `place`, over everything before it."""
        first = bisect_right(self._stops, start)
        last = bisect_left(self._starts, stop)
        pieces = [(start, stop, place)]
        if first < last and self._starts[first] < start:
            pieces.insert(0, (self._starts[first], start, self._places[first]))
        if first < last and self._stops[last - 1] > stop:
            skipped = stop - self._starts[last - 1]
            pieces.append((stop, self._stops[last - 1], self._places[last - 1] + skipped))
        self._replace(first, last, pieces)

    def cut(self, size: int) -> None:
        """Forget everything from `size` on."""
        first = bisect_right(self._stops, size)
        keep = first < len(self) and self._starts[first] < size
        self._replace(first, len(self), [(self._starts[first], size, self._places[first])] if keep else [])

    def within(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield (start, stop, place) of what was written in a range, clipped to it, in order."""
        index = bisect_right(self._stops, start)
        while index < len(self) and self._starts[index] < stop:
            left = max(start, self._starts[index])
            yield left, min(stop, self._stops[index]), self._places[index] + left - self._starts[index]
            index += 1

    def run_from(self, start: int) -> int:
        """Return where the first gap at or after `start` begins."""
        index = bisect_right(self._stops, start)
        while index < len(self) and self._starts[index] <= start:
            start = self._stops[index]
            index += 1
        return start

    def _replace(self, first: int, last: int, pieces: list[tuple[int, int, int]]) -> None:
        self._starts[first:last] = array("q", [piece[0] for piece in pieces])
        self._stops[first:last] = array("q", [piece[1] for piece in pieces])
        self._places[first:last] = array("q", [piece[2] for piece in pieces])


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of an overlay that comes from one place: its base (log None, place = offset), a log, or nowhere."""

    start: int
    stop: int
    origin: object
    place: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """A draft as it was at one moment; a `Content`.

    Attributes:
        base: What shines through.
        floor: Up to where it does.
        size: Size of the whole.
        extents: What was written over it.
        log: Where that is kept.
    """

    base: Content
    floor: int
    size: int
    extents: Extents
    log: Source

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return a range, cut at the end; what nobody wrote reads as NUL."""
        parts: list[Buffer] = []
        for piece in self.pieces(offset, min(offset + count, self.size)):
            if piece.origin is self.base:
                parts += self.base.read(piece.start, piece.stop - piece.start)
            elif piece.origin is self.log:
                parts.append(self.log.pread(piece.place, piece.stop - piece.start))
            else:
                parts += _zeros(piece.stop - piece.start)
        return parts

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """Yield the pieces of a range in order."""
        for left, right, place in self.extents.within(start, stop):
            yield from self._below(start, left)
            yield Piece(left, right, self.log, place)
            start = right
        yield from self._below(start, stop)

    def _below(self, start: int, stop: int) -> Iterator[Piece]:
        floor = min(max(start, self.floor), stop)
        if start < floor:
            yield Piece(start, floor, self.base, start)
        if floor < stop:
            yield Piece(floor, stop, None, floor)

    def known_until(self, start: int) -> int:
        """Return up to where there is no hole from `start` on."""
        while start < self.size:
            end = max(self.extents.run_from(start), min(self.floor, self.size))
            if end <= start:
                return start
            start = end
        return self.size


class Draft:
    """An overlay that grows. One thread at a time changes it; `freeze` may be called by another meanwhile."""

    def __init__(self, base: Content, log: Source) -> None:
        self.base = base
        self.log = log
        self.size = base.size
        self._floor = base.size
        self._extents = Extents()
        self._lock = Lock()
        self._frozen: Overlay | None = None

    def write(self, offset: int, length: int, place: int) -> None:
        """Lay a written range over the rest; its bytes are at `place` of the log."""
        with self._lock:
            self._frozen = None
            self._extents.put(offset, offset + length, place)
            self.size = max(self.size, offset + length)

    def truncate(self, size: int) -> None:
        """Cut the draft, or lengthen it by a hole."""
        with self._lock:
            self._frozen = None
            self._extents.cut(size)
            self._floor = min(self._floor, size)
            self.size = size

    def restore(self, frozen: Overlay) -> None:
        """Make the draft what it was once."""
        with self._lock:
            self._frozen = None
            self.size, self._floor, self._extents = frozen.size, frozen.floor, frozen.extents.copy()
            self._extents.cut(frozen.size)

    def peek(self) -> Overlay:
        """Return the draft to be looked at before it changes again."""
        return Overlay(self.base, self._floor, self.size, self._extents, self.log)

    def freeze(self) -> Overlay:
        """Return the draft as it is now, to be kept."""
        with self._lock:
            if self._frozen is None:
                self._frozen = Overlay(self.base, self._floor, self.size, self._extents.copy(), self.log)
            return self._frozen


def joined(content: Content, offset: int, count: int) -> bytes:
    """Return a range as one bytes object."""
    parts = content.read(offset, count)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def chunks(content: Content, start: int, stop: int) -> Iterator[bytes]:
    """Yield a range in steps of at most 1 MiB."""
    while start < stop:
        data = joined(content, start, min(_STEP, stop - start))
        if not data:
            return
        yield data
        start += len(data)


def equal_until(old: Content, new: Content, start: int, stop: int) -> int:
    """Return where two contents first differ in [start, stop), `stop` if they do not; shared pieces are not read."""
    stop = min(stop, old.size, new.size)
    while start < stop:
        shared = shared_until(old, new, start, stop)
        if shared > start:
            start = shared
            continue
        end = min(stop, start + _STEP)
        left, right = joined(old, start, end - start), joined(new, start, end - start)
        if left != right:
            return start + first_difference(left, right)
        start = end
    return start


def first_difference(left: Buffer, right: Buffer) -> int:
    """Return the first index at which two buffers differ, the shorter's length if they do not; by halving."""
    left, right = memoryview(left), memoryview(right)
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shared_until(old: Content, new: Content, start: int, stop: int) -> int:
    """Return up to where two contents take their bytes from the same place, `start` if they do not."""
    left, right = _piece_at(old, start, stop), _piece_at(new, start, stop)
    if left.origin is right.origin and left.place == right.place and left.origin is not None:
        return min(left.stop, right.stop)
    return start


def _piece_at(content: Content, start: int, stop: int) -> Piece:
    if isinstance(content, Overlay):
        return next(content.pieces(start, stop))
    return Piece(start, stop, content, start)


def _zeros(count: int) -> Iterator[Buffer]:
    while count > 0:
        yield memoryview(_ZEROS)[:count]
        count -= len(_ZEROS)
