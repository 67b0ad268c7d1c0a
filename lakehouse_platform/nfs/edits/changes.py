"""What an edited text means: which rows of its base are gone, which are new, and where the new ones stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from lakehouse_platform.nfs.content import Buffer, Content
from lakehouse_platform.nfs.edits.align import Hunks, align
from lakehouse_platform.nfs.edits.header import MAX_HEADER, Header, header_end, read_header
from lakehouse_platform.nfs.edits.line_hash import Hashes, line_hashes, match_lines, no_hashes
from lakehouse_platform.nfs.edits.pairing import paired_by_key, paired_by_place, pairing_key
from lakehouse_platform.nfs.edits.side import Side, read_bytes
from lakehouse_platform.nfs.edits.stretches import Mask, chosen_lines
from lakehouse_platform.nfs.tree.image import SegmentInfo
from lakehouse_platform.text.csv_edit import render_table
from lakehouse_platform.text.csv_lines import Offsets, row_starts


class Base(Protocol):
    """What an edit began from: an `Image` of CSV, or a `GhostImage`."""

    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def schema(self) -> pa.Schema: ...  # noqa: D102
    @property
    def key(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def segments(self) -> Sequence[SegmentInfo]: ...  # noqa: D102
    def read(self, offset: int, count: int) -> Sequence[Buffer]: ...  # noqa: D102
    def row_position(self, offset: int) -> tuple[int, int]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class GhostImage:
    """What a client wrote before, as the base of its next edit: where its rows are in the table is not known.

    Attributes:
        content: The bytes, header included.
        schema: The table's columns.
        key: The declared key.
    """

    content: Content
    schema: pa.Schema
    key: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.content.size

    @property
    def segments(self) -> Sequence[SegmentInfo]:
        """No data file: the rows are found by their lines."""
        return ()

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return a range of bytes."""
        return self.content.read(offset, count)

    def row_position(self, offset: int) -> tuple[int, int]:
        """Refuse: no row has a known position."""
        raise AssertionError(f"the row at {offset} of a ghost has no known position")


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between a base and an edited text, as rows.

    Attributes:
        base: What was edited.
        side: The rows of the base.
        removed: Byte ranges in the base of the rows that are gone, growing, shape (rows, 2).
        added: The rows that are new, in the order of their anchors.
        anchors: For each of them, where in the base it stands: before the row that begins at this offset.
        pairs: For each of them, the number of the removed row whose place it takes, or -1.
        moved: How many rows only stand elsewhere, or are written differently; that changes nothing.
        everything: Whether every row of an image is gone and none is new; then `removed` is left empty.
    """

    base: Base
    side: Side
    removed: Offsets
    added: pa.Table
    anchors: Offsets
    pairs: Offsets
    moved: int
    everything: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the text means the same rows as the base."""
        return not (self.deleted or len(self.pairs))

    @property
    def updated(self) -> int:
        """How many rows changed."""
        return int(np.count_nonzero(self.pairs >= 0))

    @property
    def inserted(self) -> int:
        """How many rows are new."""
        return len(self.pairs) - self.updated

    @property
    def deleted(self) -> int:
        """How many rows are gone."""
        if self.everything:
            return sum(segment.rows for segment in self.base.segments)
        return len(self.removed) - self.updated

    def removed_lines(self, chosen: Mask) -> bytes:
        """Return some removed rows as the table's view shows them; they are read only now."""
        ones = np.ones(len(self.removed), np.int64)
        chosen_ones = chosen_lines(self.side, self.removed, ones, chosen)
        if self.side.is_canonical:
            return b"".join(lines.joined() for lines in chosen_ones)
        return b"".join(render_table(lines.table()) for lines in chosen_ones)

    def removed_columns(self, chosen: Mask, names: tuple[str, ...]) -> pa.Table:
        """Return some columns of some removed rows."""
        return _columns(self.side, self.removed, chosen, names)


def plan_changes(base: Base, new: Content, *, allow_missing: bool = False) -> Changes:
    """Return what an edited text changes.

    Equal rows cost only a comparison of memory. Rows are the same if their canonical lines are, so that a line that is
    only written differently (`1.50` for `1.5`), or moved, is no change.

    Args:
        base: What the client edited.
        new: The whole edited text, header first.
        allow_missing: Whether nullable columns may be left out of the header.

    Raises:
        RowError: The header or a line of the text does not fit the table.
    """
    header = content_header(new, base.schema, allow_missing=allow_missing)
    ours = content_header(base, base.schema, allow_missing=True)
    old_side = Side.of(base, ours.names, base.schema, ours.size, is_canonical=len(base.segments) > 0)
    new_side = Side.of(new, header.names, base.schema, header.size, is_canonical=False)
    if new_side.start >= new_side.end and old_side.is_canonical:
        return everything_removed(base, old_side)
    same_form = read_bytes(base, 0, ours.size) == read_bytes(new, 0, header.size)
    hunks = align(old_side, new_side, same_form=same_form)
    return _Planner(base, old_side, new_side, hunks, same_form).changes()


def everything_removed(base: Base, side: Side) -> Changes:
    """Return that an image loses all rows, which needs no look at them."""
    none = np.empty(0, np.int64)
    return Changes(base, side, none.reshape(0, 2), base.schema.empty_table(), none, none, 0, everything=True)


def rows_of_segments(changes: Changes, numbers: Sequence[int]) -> Changes:
    """Return that the rows of some segments of an image are gone."""
    segments = [changes.base.segments[number] for number in numbers]
    ranges = np.array(
        [(segment.start, segment.start + segment.size) for segment in segments], np.int64
    ).reshape(-1, 2)
    counts = np.array([segment.rows for segment in segments], np.int64)
    chosen = np.ones(int(counts.sum()), np.bool_)
    removed = _row_ranges(changes.side, ranges, counts, chosen)
    return replace(changes, removed=removed, everything=False)


def content_header(content: Content, schema: pa.Schema, *, allow_missing: bool = False) -> Header:
    """Return the header at a content's beginning.

    Raises:
        RowError: There is none that fits the table.
    """
    size = 1 << 12
    while True:
        data = read_bytes(content, 0, min(size, content.size))
        if end := header_end(data):
            return read_header(data[:end], schema, allow_missing=allow_missing)
        if size >= min(content.size, MAX_HEADER):
            return read_header(data, schema, allow_missing=allow_missing)
        size *= 16


class _Planner:
    def __init__(self, base: Base, old: Side, new: Side, hunks: Hunks, same_form: bool) -> None:
        self._base, self._old, self._new = base, old, new
        self._hunks = hunks
        self._same_form = same_form
        self._pairs = match_lines(hunks.removed, hunks.added)
        self._gone = np.ones(hunks.removed.shape[1], np.bool_)
        self._gone[self._pairs[self._pairs >= 0]] = False

    def changes(self) -> Changes:
        if self._same_form and self._gone.any() and (self._pairs < 0).any():
            self._match_canonical()
        moved = int(np.count_nonzero(self._pairs >= 0))
        fresh = self._pairs < 0
        hunks, new = self._hunks, self._new
        tables = [lines.table() for lines in chosen_lines(new, hunks.new, hunks.new_rows, fresh)]
        added = pa.concat_tables([self._base.schema.empty_table(), *tables])
        removed = self._removed_ranges(self._gone)
        anchors = self._anchors(fresh) if added.num_rows else np.empty(0, np.int64)
        pairs = self._replaced(removed, added, fresh)
        anchors = _kept_in_place(removed, anchors, pairs)
        order = np.argsort(anchors, kind="stable")
        if (order[1:] < order[:-1]).any():
            added, anchors, pairs = added.take(pa.array(order)), anchors[order], pairs[order]
        return Changes(self._base, self._old, removed, added, anchors, pairs, moved)

    def _match_canonical(self) -> None:
        """Pair rows that are equal but written differently."""
        hunks = self._hunks
        gone, fresh = np.flatnonzero(self._gone), np.flatnonzero(self._pairs < 0)
        old = (
            hunks.removed[:, gone]
            if self._old.is_canonical
            else _canonical_hashes(self._old, hunks.base, hunks.base_rows, self._gone)
        )
        new = _canonical_hashes(self._new, hunks.new, hunks.new_rows, self._pairs < 0)
        found = match_lines(old, new)
        hits = found >= 0
        self._pairs[fresh[hits]] = gone[found[hits]]
        self._gone[gone[found[hits]]] = False

    def _removed_ranges(self, chosen: Mask) -> Offsets:
        """Return the byte ranges of some rows of the base's hunks."""
        return _row_ranges(self._old, self._hunks.base, self._hunks.base_rows, chosen)

    def _anchors(self, fresh: Mask) -> Offsets:
        """Return where new rows stand: in their hunk, behind the last row of the base that the text has before them."""
        hunks = self._hunks
        first_removed = np.cumsum(hunks.base_rows) - hunks.base_rows
        hunk = np.repeat(np.arange(len(hunks.new_rows)), hunks.new_rows)
        in_hunk = (self._pairs >= first_removed[hunk]) & (
            self._pairs < (first_removed + hunks.base_rows)[hunk]
        )
        cursor = np.maximum.accumulate(np.where(in_hunk, self._pairs + 1, first_removed[hunk]))[fresh]
        hunk = hunk[fresh]
        at_start = cursor == first_removed[hunk]
        at_stop = cursor == (first_removed + hunks.base_rows)[hunk]
        anchors = np.where(at_start, hunks.base[hunk, 0], hunks.base[hunk, 1])
        between = ~(at_start | at_stop)
        if between.any():
            chosen = np.zeros(len(self._gone), np.bool_)
            chosen[cursor[between]] = True
            rank = np.searchsorted(np.flatnonzero(chosen), cursor[between])
            anchors[between] = self._removed_ranges(chosen)[rank, 0]
        return anchors

    def _replaced(self, removed: Offsets, added: pa.Table, fresh: Mask) -> Offsets:
        """Return which removed row each new one takes the place of, or -1."""
        if not len(removed) or not added.num_rows:
            return np.full(added.num_rows, -1, np.int64)
        if key := self._base.key or pairing_key(self._base.schema):
            old = _columns(self._old, removed, np.ones(len(removed), np.bool_), key)
            pairs = paired_by_key(old, added.select(list(key)), declared=bool(self._base.key))
            if pairs is not None:
                return pairs
        hunks = self._hunks
        numbers = np.arange(len(hunks.base_rows))
        hunk_removed = np.repeat(numbers, hunks.base_rows)[self._gone]
        return paired_by_place(hunk_removed, np.repeat(numbers, hunks.new_rows)[fresh])


def _row_ranges(side: Side, ranges: Offsets, counts: Offsets, chosen: Mask) -> Offsets:
    pieces = [
        np.stack((lines.starts(), lines.stops()), axis=1)
        for lines in chosen_lines(side, ranges, counts, chosen)
    ]
    return np.concatenate([np.empty((0, 2), np.int64), *pieces])


def _columns(side: Side, ranges: Offsets, chosen: Mask, names: tuple[str, ...]) -> pa.Table:
    counts = np.ones(len(ranges), np.int64)
    empty = pa.schema([side.schema.field(name) for name in names]).empty_table()
    return pa.concat_tables(
        [empty, *(lines.columns(names) for lines in chosen_lines(side, ranges, counts, chosen))]
    )


def _canonical_hashes(side: Side, ranges: Offsets, counts: Offsets, chosen: Mask) -> Hashes:
    found = [no_hashes()]
    for lines in chosen_lines(side, ranges, counts, chosen):
        shown = render_table(lines.table())
        found.append(line_hashes(shown, row_starts(shown)))
    return np.concatenate(found, axis=1)


def _kept_in_place(removed: Offsets, anchors: Offsets, pairs: Offsets) -> Offsets:
    """Return anchors that keep a changed row where it was, unless it stands among the same removed rows anyway."""
    changed = np.flatnonzero(pairs >= 0)
    if not len(changed):
        return anchors
    first = np.concatenate(([True], removed[1:, 0] != removed[:-1, 1]))
    run = np.cumsum(first) - 1
    starts = removed[first, 0]
    stops = removed[np.append(np.flatnonzero(first)[1:] - 1, len(removed) - 1), 1]
    mine = run[pairs[changed]]
    elsewhere = (anchors[changed] < starts[mine]) | (anchors[changed] > stops[mine])
    anchors = anchors.copy()
    anchors[changed[elsewhere]] = removed[pairs[changed[elsewhere]], 0]
    return anchors
