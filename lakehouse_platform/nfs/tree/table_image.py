"""The image of one version in one form: a frame around the first segments of a layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import pyarrow as pa

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.tree.image import Form, SegmentInfo
from lakehouse_platform.nfs.tree.layout import Layout
from lakehouse_platform.nfs.tree.render import frame, rows_before


@dataclass(frozen=True, slots=True)
class TableImage:
    """An image; see `image.Image` for what its members mean."""

    form: Form
    version: int
    changed_ns: int
    schema: pa.Schema
    key: tuple[str, ...]
    constraints: dict[str, str]
    layout: Layout = field(repr=False)
    count: int
    size: int = field(init=False)
    header: bytes = field(init=False, repr=False)
    _trailer: bytes = field(init=False, repr=False)
    _shift: int = field(init=False, repr=False)
    _body: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        body = self.layout.size_of(self.count)
        header, trailer = frame(self.form, self.schema, body)
        # The bracket of a JSON array takes the place of the first row's comma.
        hidden = 1 if self.form is Form.JSON and body else 0
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "_trailer", trailer)
        object.__setattr__(self, "_shift", len(header) - hidden)
        object.__setattr__(self, "_body", body)
        object.__setattr__(self, "size", len(header) - hidden + body + len(trailer))

    @property
    def header_size(self) -> int:
        """Bytes before the first segment: the CSV header's; in a JSON array the bracket's."""
        return len(self.header)

    @property
    def segments(self) -> Sequence[SegmentInfo]:
        """The data files in the order in which they are shown."""
        return _Segments(self.layout, self.count, self._shift)

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return a range without copying; renders what was evicted.

        Raises:
            DataFilesMissingError: What would have to be rendered again was vacuumed.
            StorageIoError: The cache cannot be written, or a data file has changed.
        """
        stop = min(offset + count, self.size)
        if offset >= stop:
            return []
        head = self.header[offset:stop]
        first, last = self._within(offset, stop)
        tail = self._trailer[max(0, offset - self._tail_start) : max(0, stop - self._tail_start)]
        return [part for part in (head, *self.layout.read(first, last), tail) if part]

    def is_ready(self, offset: int, count: int) -> bool:
        """Tell whether reading a range needs no rendering."""
        return self.layout.is_ready(*self._within(offset, min(offset + count, self.size)))

    def prepare(self, offset: int, count: int) -> None:
        """Bring the bytes of a range into the cache, several files at a time."""
        self.layout.prepare(*self._within(offset, min(offset + count, self.size)))

    def row_position(self, offset: int) -> tuple[int, int]:
        """Return (segment number, row number in it) of the row that begins at an offset.

        Raises:
            InvalidArgumentError: No segment holds that offset.
        """
        position = offset - self._shift
        if not 0 <= position < self._body:
            raise InvalidArgumentError(f"No row begins at offset {offset}.", offset=offset)
        number = self.layout.segment_at(position)
        start = self.layout.starts[number]
        row, mark = _last_mark(self.layout.segments[number].measured.marks, position - start)
        between = b"".join(self.layout.read(start + mark, position))
        return number, row + rows_before(between, self.form)

    @property
    def _tail_start(self) -> int:
        return self._shift + self._body

    def _within(self, offset: int, stop: int) -> tuple[int, int]:
        """Return the part of the segments' bytes that a range of the image shows."""
        first = max(offset, len(self.header)) - self._shift
        return first, max(first, min(stop - self._shift, self._body))


class _Segments(Sequence[SegmentInfo]):
    """The first segments of a layout, each described when it is asked for."""

    def __init__(self, layout: Layout, count: int, shift: int) -> None:
        self._layout, self._count, self._shift = layout, count, shift

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> SegmentInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SegmentInfo]: ...
    def __getitem__(self, index: int | slice) -> SegmentInfo | Sequence[SegmentInfo]:
        if isinstance(index, slice):
            return [self._info(number) for number in range(self._count)[index]]
        return self._info(range(self._count)[index])

    def __iter__(self) -> Iterator[SegmentInfo]:
        return map(self._info, range(self._count))

    def _info(self, number: int) -> SegmentInfo:
        segment = self._layout.segments[number]
        start = self._layout.starts[number] + self._shift
        return SegmentInfo(segment.source.file.path, start, segment.measured.size, segment.measured.rows)


def _last_mark(marks: Sequence[int], position: int) -> tuple[int, int]:
    """Return row number and offset of the last marked row at or before a position in its segment."""
    low, high = 0, len(marks) // 2
    while low < high:
        middle = (low + high) // 2
        if marks[2 * middle + 1] <= position:
            low = middle + 1
        else:
            high = middle
    return (marks[2 * low - 2], marks[2 * low - 1]) if low else (0, 0)
