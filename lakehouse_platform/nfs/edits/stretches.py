"""The rows of some stretches of a content, in batches: positions of all, bytes and values of chosen ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.edits.side import Side
from lakehouse_platform.text.csv_edit import parse_columns, parse_lines
from lakehouse_platform.text.csv_lines import Offsets, row_starts

Mask = npt.NDArray[np.bool_]
_PIECE = 1 << 22  # bytes read at a time


@dataclass(frozen=True, slots=True)
class Lines:
    """Chosen rows of a piece of a content.

    Attributes:
        side: The content.
        numbers: The rows' numbers among all rows of the stretches.
        start: Where the piece begins.
        data: Its bytes.
        edges: Where its rows begin, and its size.
        picked: Which of its rows are meant.
    """

    side: Side
    numbers: Offsets
    start: int
    data: bytes
    edges: Offsets
    picked: Offsets

    def starts(self) -> Offsets:
        """Return where the chosen rows begin in the content."""
        return self.start + self.edges[self.picked]

    def stops(self) -> Offsets:
        """Return where they end."""
        return self.start + self.edges[self.picked + 1]

    def joined(self) -> bytes:
        """Return their bytes."""
        if len(self.picked) == len(self.edges) - 1:
            return self.data
        buffers = [None, pa.py_buffer(self.edges), pa.py_buffer(self.data)]
        lines = pa.Array.from_buffers(pa.large_binary(), len(self.edges) - 1, buffers)
        return lines.take(pa.array(self.picked)).buffers()[2].to_pybytes()

    def table(self) -> pa.Table:
        """Return their values.

        Raises:
            RowError: A row does not fit the table.
        """
        try:
            return parse_lines(self.joined(), self.side.names, self.side.schema, blank_end=False)
        except RowError as error:
            ends = np.cumsum(np.diff(self.edges)[self.picked])
            row = int(np.searchsorted(ends, error.offset, side="right"))
            moved = RowError(error.line, error.column, error.reason, int(self.starts()[row]))
            raise self.side.placed(moved) from error

    def columns(self, names: tuple[str, ...]) -> pa.Table:
        """Return some columns of rows that are known to fit."""
        return parse_columns(self.joined(), self.side.names, self.side.schema, names)


def chosen_lines(side: Side, ranges: Offsets, counts: Offsets, chosen: Mask) -> Iterator[Lines]:
    """Yield the chosen ones among the rows of some stretches; pieces without any are not read.

    Args:
        side: The content.
        ranges: Byte ranges of whole rows, growing, shape (stretches, 2).
        counts: How many rows each has.
        chosen: For each row of all stretches, whether it is wanted.
    """
    first = np.concatenate(([0], np.cumsum(counts)))
    for low, high in _groups(ranges):
        wanted = chosen[first[low] : first[high]]
        if not wanted.any():
            continue
        if high - low == 1:
            yield from _of_one(side, ranges[low], int(first[low]), wanted)
        else:
            yield _of_many(side, ranges[low:high], counts[low:high], int(first[low]), wanted)


def _groups(ranges: Offsets) -> Iterator[tuple[int, int]]:
    """Yield neighbouring stretches that are worth reading in one piece, as ranges of their numbers."""
    if not len(ranges):
        return
    large = ranges[:, 1] - ranges[:, 0] > _PIECE
    piece = ranges[:, 0] // _PIECE
    apart = (piece[1:] != piece[:-1]) | large[1:] | large[:-1]
    edges = np.concatenate(([0], np.flatnonzero(apart) + 1, [len(ranges)]))
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def _of_one(side: Side, stretch: Offsets, number: int, wanted: Mask) -> Iterator[Lines]:
    at, stop, done = int(stretch[0]), int(stretch[1]), 0
    while at < stop:
        data = side.rows(at, _PIECE, stop)
        edges = row_starts(data)
        picked = np.flatnonzero(wanted[done : done + len(edges) - 1])
        if len(picked):
            yield Lines(side, number + done + picked, at, data, edges, picked)
        done += len(edges) - 1
        at += len(data)


def _of_many(side: Side, ranges: Offsets, counts: Offsets, number: int, wanted: Mask) -> Lines:
    start = int(ranges[0, 0])
    data = side.read(start, int(ranges[-1, 1]))
    edges = row_starts(data)
    rows = expanded(np.searchsorted(edges, ranges[:, 0] - start), counts)
    picked = np.flatnonzero(wanted)
    return Lines(side, number + picked, start, data, edges, rows[picked])


def expanded(starts: Offsets, counts: Offsets) -> Offsets:
    """Return `start, start + 1, …` for each start, as many as its count says."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
