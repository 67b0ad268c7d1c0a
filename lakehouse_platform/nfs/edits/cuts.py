"""Removed and inserted rows of data files as the cuts that the store commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.edits.finding import Head
from lakehouse_platform.nfs.edits.side import Side
from lakehouse_platform.nfs.edits.stretches import chosen_lines, expanded
from lakehouse_platform.nfs.tree.image import SegmentInfo
from lakehouse_platform.store.splice import Cut, FileSplices
from lakehouse_platform.text.csv_lines import Offsets

# Cuts of one file from which on it is cheaper to hand over all its rows as one: a cut of one row takes 2 kB and 20 µs.
_MANY = 10_000


@dataclass(frozen=True, slots=True)
class FileEdits:
    """Rows to take out and to insert.

    Attributes:
        removed_segment: The segment of each removed row.
        removed_row: Its row in the segment.
        added_segment: The segment of each added row; negative if it goes to no segment.
        added_row: The row before which it is inserted.
        added: The added rows.
    """

    removed_segment: Offsets
    removed_row: Offsets
    added_segment: Offsets
    added_row: Offsets
    added: pa.Table


def file_splices(head: Head, edits: FileEdits) -> tuple[FileSplices, ...]:
    """Return the cuts of each touched file, in the order of the files."""
    segments = head.segments
    touched = np.union1d(edits.removed_segment, edits.added_segment[edits.added_segment >= 0])
    return tuple(
        FileSplices(segments[number].path, tuple(_cuts(head, segments[number], edits, number)))
        for number in touched.tolist()
    )


def _cuts(head: Head, segment: SegmentInfo, edits: FileEdits, number: int) -> Iterator[Cut]:
    removed = np.sort(edits.removed_row[edits.removed_segment == number])
    added = np.flatnonzero(edits.added_segment == number)
    added = added[np.argsort(edits.added_row[added], kind="stable")]
    starts, stops = _runs(removed)
    before = _joined_to_runs(edits.added_row[added], starts, stops)
    # A cut for each run of removed rows, and one for each other place where rows are inserted.
    places = np.union1d(starts, before)
    ends = places.copy()
    ends[np.searchsorted(places, starts)] = stops
    low, high = np.searchsorted(before, places, side="left"), np.searchsorted(before, places, side="right")
    rows = edits.added.take(pa.array(added)).combine_chunks()
    if len(places) > _MANY and (kept := _parsed(head, segment)) is not None:
        yield Cut(0, kept.num_rows, _woven(kept, places, ends, rows, np.repeat(places, high - low)))
        return
    for start, stop, first, last in zip(*(part.tolist() for part in (places, ends, low, high)), strict=True):
        yield Cut(start, stop, rows.slice(first, last - first))


def _woven(kept: pa.Table, places: Offsets, ends: Offsets, rows: pa.Table, before: Offsets) -> pa.Table:
    """Return a whole file's rows after its cuts, each row inserted before one of the old rows."""
    left = np.ones(kept.num_rows, np.bool_)
    left[expanded(places, ends - places)] = False
    stay = np.flatnonzero(left)
    order = np.argsort(np.concatenate((2 * stay + 1, 2 * before)), kind="stable")
    taken = np.concatenate((stay, kept.num_rows + np.arange(rows.num_rows)))[order]
    return pa.concat_tables([kept, rows]).take(pa.array(taken))


def _parsed(head: Head, segment: SegmentInfo) -> pa.Table | None:
    """Return a file's rows, read back from its lines; None if a text holds a NUL, which lines may not."""
    stop = segment.start + segment.size
    side = Side(head, tuple(head.schema.names), head.schema, segment.start, stop, is_canonical=True)
    ranges, counts = np.array([[segment.start, stop]]), np.array([segment.rows])
    try:
        tables = [
            lines.table() for lines in chosen_lines(side, ranges, counts, np.ones(segment.rows, np.bool_))
        ]
    except RowError:
        return None
    return pa.concat_tables(tables)


def _runs(removed: Offsets) -> tuple[Offsets, Offsets]:
    """Return where runs of neighbouring rows begin and end."""
    if not len(removed):
        return removed, removed
    edges = np.flatnonzero(np.diff(removed) > 1)
    return removed[np.concatenate(([0], edges + 1))], removed[np.append(edges, len(removed) - 1)] + 1


def _joined_to_runs(rows: Offsets, starts: Offsets, stops: Offsets) -> Offsets:
    """Return the places of insertions; one inside of a run, or at its ends, is the run's."""
    if not len(starts):
        return rows
    run = np.searchsorted(starts, rows, side="right") - 1
    inside = (run >= 0) & (rows <= stops[run])
    return np.where(inside, starts[run], rows)
