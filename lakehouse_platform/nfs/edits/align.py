"""Two contents' rows side by side: the stretches of rows ("hunks") in which they differ.

Equal rows are skipped by comparing memory. Where a difference begins, windows of rows are compared by hashes, larger
ones as long as nothing matches. Rows that do not match stay as hashes, so that memory is bounded by 16 bytes for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakehouse_platform.nfs.edits.common import skip_common, skip_common_end
from lakehouse_platform.nfs.edits.line_hash import Hashes, line_hashes, no_hashes
from lakehouse_platform.nfs.edits.side import Side
from lakehouse_platform.nfs.edits.window_match import common_lines
from lakehouse_platform.text.csv_lines import Offsets, row_starts

_SMALLEST, _LARGEST = 1 << 15, 1 << 24  # bytes of a window
# Differences in one window from which on a larger one costs less than skipping what is equal between them.
_DENSE = 8
# Lines written in another form (all fields quoted, say) match nothing. After so many windows in which the table's own
# form of them matched nothing either, they are just different.
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Hunks:
    """Stretches of rows in which two contents differ, in order and not touching each other.

    Attributes:
        base: Byte ranges in the base, shape (hunks, 2).
        new: Byte ranges in the new content, shape (hunks, 2).
        base_rows: Rows of each base range.
        new_rows: Rows of each new range.
        removed: The hashes of all rows of the base ranges.
        added: The hashes of all rows of the new ranges.
    """

    base: Offsets
    new: Offsets
    base_rows: Offsets
    new_rows: Offsets
    removed: Hashes
    added: Hashes


def align(base: Side, new: Side, *, same_form: bool) -> Hunks:
    """Return where two contents differ.

    Args:
        base: The old rows.
        new: The new rows.
        same_form: Whether equal rows have equal bytes as a rule; if not, the lines' canonical form is compared.

    Raises:
        RowError: A line that had to be read does not fit the table.
    """
    return _Aligner(base, new, same_form).run()


@dataclass(frozen=True, slots=True)
class _Window:
    """Rows at hand: where they begin, where each row begins in them, their hashes."""

    start: int
    rows: Offsets
    hashes: Hashes

    @property
    def stop(self) -> int:
        return self.start + int(self.rows[-1])


class _Aligner:
    def __init__(self, base: Side, new: Side, same_form: bool) -> None:
        self._base, self._new = base, new
        self._same_form = same_form
        self._at, self._there = base.start, new.start
        self._stop, self._stop_there = base.end, new.end
        self._tries = _TRIES if same_form else 0
        self._found: list[Offsets] = []
        self._removed: list[Hashes] = []
        self._added: list[Hashes] = []

    def run(self) -> Hunks:
        if self._same_form:
            self._skip()
            ends = self._base, self._new, self._at, self._there, self._stop, self._stop_there
            common = skip_common_end(*ends)
            self._stop -= common
            self._stop_there -= common
        size = _SMALLEST
        while self._at < self._stop and self._there < self._stop_there:
            size = self._step(size)
        self._emit_rest()
        return self._hunks()

    def _skip(self) -> None:
        common = skip_common(self._base, self._new, self._at, self._there, self._stop, self._stop_there)
        self._at += common
        self._there += common

    def _step(self, size: int) -> int:
        """Match windows of about `size` bytes and return the size of the next ones."""
        ours = self._window(self._base, self._at, size, self._stop)
        theirs = self._window(self._new, self._there, size, self._stop_there)
        matches = common_lines(ours.hashes, theirs.hashes)
        if not len(matches[0]) and self._tries:
            theirs, matches = self._in_canonical_form(ours, theirs)
        at_end = ours.stop >= self._stop and theirs.stop >= self._stop_there
        if not len(matches[0]):
            if size < _LARGEST and not at_end:
                return size * 8
            self._emit(ours, theirs, matches, to_end=True)
            return size
        self._emit(ours, theirs, matches, to_end=at_end)
        if self._same_form:
            self._skip()
        # Nothing can be skipped where forms differ.
        dense = len(self._found[-1]) >= _DENSE or not self._same_form
        return min(size * 2, _LARGEST) if dense else max(size // 2, _SMALLEST)

    def _window(self, side: Side, start: int, size: int, stop: int) -> _Window:
        data = side.rows(start, size, stop)
        rows = row_starts(data)
        if self._same_form or side.is_canonical:
            return _Window(start, rows, line_hashes(data, rows))
        shown = side.canonical(data, start)
        return _Window(start, rows, line_hashes(shown, row_starts(shown)))

    def _in_canonical_form(self, ours: _Window, theirs: _Window) -> tuple[_Window, tuple[Offsets, Offsets]]:
        """Look at the new lines in the table's form, and stay with it if this makes them match."""
        shown = self._new.canonical(self._new.read(theirs.start, theirs.stop), theirs.start)
        other = _Window(theirs.start, theirs.rows, line_hashes(shown, row_starts(shown)))
        matches = common_lines(ours.hashes, other.hashes)
        if len(matches[0]):
            self._same_form, self._tries = False, 0
            return other, matches
        self._tries -= 1
        return theirs, matches

    def _emit(
        self, ours: _Window, theirs: _Window, matches: tuple[Offsets, Offsets], *, to_end: bool
    ) -> None:
        """Note the rows between matches, and those after the last one if `to_end`; go on behind them."""
        count, count_there = ours.hashes.shape[1], theirs.hashes.shape[1]
        starts = np.concatenate(([0], matches[0] + 1)), np.concatenate(([0], matches[1] + 1))
        stops = np.append(matches[0], count), np.append(matches[1], count_there)
        if not to_end:
            starts, stops = (starts[0][:-1], starts[1][:-1]), (stops[0][:-1], stops[1][:-1])
        differ = (starts[0] < stops[0]) | (starts[1] < stops[1])
        self._note(ours, theirs, *(part[differ] for part in (starts[0], stops[0], starts[1], stops[1])))
        reached = (count, count_there) if to_end else (int(matches[0][-1]) + 1, int(matches[1][-1]) + 1)
        self._at = ours.start + int(ours.rows[reached[0]])
        self._there = theirs.start + int(theirs.rows[reached[1]])

    def _note(
        self,
        ours: _Window,
        theirs: _Window,
        start: Offsets,
        stop: Offsets,
        new_start: Offsets,
        new_stop: Offsets,
    ) -> None:
        bytes_of = ours.start + ours.rows, theirs.start + theirs.rows
        columns = (
            bytes_of[0][start], bytes_of[0][stop], bytes_of[1][new_start], bytes_of[1][new_stop],
            stop - start, new_stop - new_start,
        )  # fmt: skip
        self._found.append(np.stack(columns, axis=1))
        self._removed.append(ours.hashes[:, _in_ranges(start, stop, ours.hashes.shape[1])])
        self._added.append(theirs.hashes[:, _in_ranges(new_start, new_stop, theirs.hashes.shape[1])])

    def _emit_rest(self) -> None:
        """Note the rows of the longer side when the other one is at its end."""
        none = np.empty(0, np.int64), np.empty(0, np.int64)
        while self._at < self._stop:
            ours = self._window(self._base, self._at, _LARGEST, self._stop)
            self._emit(ours, _nothing(self._there), none, to_end=True)
        while self._there < self._stop_there:
            theirs = self._window(self._new, self._there, _LARGEST, self._stop_there)
            self._emit(_nothing(self._at), theirs, none, to_end=True)

    def _hunks(self) -> Hunks:
        found = _joined(np.concatenate([np.empty((0, 6), np.int64), *self._found]))
        # One side after the other: while they are joined, they need memory twice.
        removed = np.concatenate([no_hashes(), *self._removed], axis=1)
        self._removed.clear()
        added = np.concatenate([no_hashes(), *self._added], axis=1)
        self._added.clear()
        return Hunks(found[:, 0:2], found[:, 2:4], found[:, 4], found[:, 5], removed, added)


def _nothing(start: int) -> _Window:
    return _Window(start, np.zeros(1, np.int64), no_hashes())


def _in_ranges(starts: Offsets, stops: Offsets, count: int) -> npt.NDArray[np.bool_]:
    edges = np.zeros(count + 1, np.int64)
    np.add.at(edges, starts, 1)
    np.add.at(edges, stops, -1)
    return np.cumsum(edges[:-1]) > 0


def _joined(found: Offsets) -> Offsets:
    """Return hunks of which those that touch are one."""
    if not len(found):
        return found
    apart = (found[1:, 0] != found[:-1, 1]) | (found[1:, 2] != found[:-1, 3])
    first = np.concatenate(([0], np.flatnonzero(apart) + 1))
    last = np.append(first[1:], len(found)) - 1
    rows = np.add.reduceat(found[:, 4:6], first, axis=0)
    joined = (found[first, 0], found[last, 1], found[first, 2], found[last, 3], rows[:, 0], rows[:, 1])
    return np.stack(joined, axis=1)
