"""Byte offsets of rows in an image as positions in data files, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.edits.side import read_bytes
from lakehouse_platform.nfs.tree.image import SegmentInfo
from lakehouse_platform.text.csv_lines import Offsets, row_starts

_FEW = 4  # offsets of a piece that are looked up one by one
_PIECE = 1 << 20  # bytes of which the rows are counted at a time


class _Segmented(Content, Protocol):
    @property
    def segments(self) -> Sequence[SegmentInfo]: ...
    def row_position(self, offset: int) -> tuple[int, int]: ...


def row_positions(image: _Segmented, offsets: Offsets) -> tuple[Offsets, Offsets]:
    """Return the segment and the row in it of each row that begins at one of some growing offsets."""
    shown = [number for number, segment in enumerate(image.segments) if segment.size]
    starts = np.array([image.segments[number].start for number in shown], np.int64)
    place = np.searchsorted(starts, offsets, side="right") - 1
    rows = np.empty(len(offsets), np.int64)
    for low, high in _pieces(place, offsets):
        rows[low:high] = _rows(image, offsets[low:high])
    return np.array(shown, np.int64)[place], rows


def _pieces(place: Offsets, offsets: Offsets) -> list[tuple[int, int]]:
    """Return ranges of offsets that lie in one segment and near each other."""
    if not len(offsets):
        return []
    piece = offsets // _PIECE
    edges = np.flatnonzero((piece[1:] != piece[:-1]) | (place[1:] != place[:-1])) + 1
    bounds = [0, *edges.tolist(), len(offsets)]
    return list(pairwise(bounds))


def _rows(image: _Segmented, offsets: Offsets) -> Offsets:
    if len(offsets) <= _FEW:
        return np.array([image.row_position(offset)[1] for offset in offsets.tolist()], np.int64)
    start, stop = int(offsets[0]), int(offsets[-1])
    _, first = image.row_position(start)
    between = row_starts(read_bytes(image, start, stop))
    return first + np.searchsorted(between, offsets - start)
