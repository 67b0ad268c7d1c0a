"""Where an edit's changes go in the newest version of a table, whatever others committed meanwhile.

Files of the base that are still live have their rows at the same positions. Rows of files that are gone (rewritten or
compacted) are looked up by their lines among the rows of files that the base did not have. Rows that the user did not
touch keep what the newest version holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_platform.errors import CommitConflictError
from lakehouse_platform.nfs.edits.changes import Changes, rows_of_segments
from lakehouse_platform.nfs.edits.cuts import FileEdits, file_splices
from lakehouse_platform.nfs.edits.finding import Head, SegmentRows
from lakehouse_platform.nfs.edits.positions import row_positions
from lakehouse_platform.nfs.edits.stretches import Mask
from lakehouse_platform.nfs.tree.image import SegmentInfo
from lakehouse_platform.store.keys import inferred_key
from lakehouse_platform.store.splice import Cut, FileSplices, SpliceCounts
from lakehouse_platform.text.csv_lines import Offsets

# Bytes of rendered rows up to which a file is rewritten only to put new rows in their place; else they go to the end.
_SMALL_FILE = 8 << 20
_END = -1
_NOWHERE = -2


@dataclass(frozen=True, slots=True)
class Splices:
    """What to commit.

    Attributes:
        files: The cuts of each touched file.
        appended: Rows for a new file at the end, or None.
        counts: Rows inserted, updated and deleted, for the caller's answer and the log.
    """

    files: tuple[FileSplices, ...]
    appended: pa.Table | None
    counts: SpliceCounts

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.files and self.appended is None


def locate(changes: Changes, head: Head) -> Splices:
    """Return the changes as cuts of the head's files.

    Args:
        changes: What the user changed.
        head: The newest image of the same table, CSV.

    Raises:
        CommitConflictError: Another writer changed or deleted a row that the user changed, or added one with the same
            key. Nothing of the edit can be committed.
    """
    return _without_any(changes, head) if changes.everything else _Locator(changes, head).splices()


def _without_any(changes: Changes, head: Head) -> Splices:
    """Return that all rows of the base go: whole files where they are live, else row by row."""
    segments = changes.base.segments
    live = _live_segments(segments, head.segments) >= 0
    rest = _Locator(rows_of_segments(changes, np.flatnonzero(~live).tolist()), head).splices()
    none = changes.base.schema.empty_table()
    whole = [
        segment for segment, lives in zip(segments, live.tolist(), strict=True) if lives and segment.rows
    ]
    return Splices(
        files=(*(FileSplices(segment.path, (Cut(0, segment.rows, none),)) for segment in whole), *rest.files),
        appended=None,
        counts=SpliceCounts(0, 0, rest.counts.deleted + sum(segment.rows for segment in whole)),
    )


@dataclass(slots=True)
class _Places:
    """Head segment (or `_NOWHERE`, `_END`) and row of some rows."""

    segment: Offsets
    row: Offsets

    @classmethod
    def nowhere(cls, count: int) -> _Places:
        return cls(np.full(count, _NOWHERE, np.int64), np.zeros(count, np.int64))


class _Locator:
    def __init__(self, changes: Changes, head: Head) -> None:
        self._changes, self._head = changes, head
        self._base_segments = changes.base.segments
        self._segments = head.segments
        self._live = _live_segments(self._base_segments, self._segments)
        known = set(self._live.tolist())
        novel = [number for number in range(len(self._segments)) if number not in known]
        self._novel = SegmentRows(head, novel)

    def splices(self) -> Splices:
        changes = self._changes
        removed = self._removed_places()
        self._check_conflicts(removed)
        there = removed.segment >= 0
        added = self._added_places(removed)
        edits = FileEdits(removed.segment[there], removed.row[there], added.segment, added.row, changes.added)
        at_end = np.flatnonzero(added.segment == _END)
        deleted = changes.deleted - int(np.count_nonzero(~there))
        return Splices(
            files=file_splices(self._head, edits),
            appended=changes.added.take(pa.array(at_end)) if len(at_end) else None,
            counts=SpliceCounts(inserted=changes.inserted, updated=changes.updated, deleted=deleted),
        )

    def _removed_places(self) -> _Places:
        changes = self._changes
        places = _Places.nowhere(len(changes.removed))
        if len(self._base_segments) and len(changes.removed):
            segment, row = row_positions(changes.base, changes.removed[:, 0])
            places = _Places(self._live[segment], row)
        lost = places.segment == _NOWHERE
        if lost.any():
            places.segment[lost], places.row[lost] = self._novel.find(changes.removed_lines(lost))
            self._take_twins(places)
        return places

    def _take_twins(self, places: _Places) -> None:
        """Take equal rows of files of the base in place of rows that others deleted: nobody can tell them apart."""
        lost = places.segment == _NOWHERE
        if self._changes.base.key or not lost.any():
            return
        live = SegmentRows(self._head, [number for number in self._live.tolist() if number >= 0])
        lines = self._changes.removed_lines(lost)
        places.segment[lost], places.row[lost] = live.find(lines, without=(places.segment, places.row))

    def _check_conflicts(self, removed: _Places) -> None:
        changes = self._changes
        lost = removed.segment == _NOWHERE
        updated = np.zeros(len(lost), np.bool_)
        updated[changes.pairs[changes.pairs >= 0]] = True
        if lost.any():
            self._check_keys_of_lost(lost, removed)
        if (lost & updated).any():
            raise self._gone(lost & updated)
        if changes.base.key and changes.added.num_rows:
            self._check_keys_of_added(removed)

    def _check_keys_of_lost(self, lost: Mask, removed: _Places) -> None:
        """Refuse if a row that the user changed or deleted is still there with another content.

        Where an inferred key is not unique, a row that goes too is not that row.
        """
        key = self._changes.base.key or (("id",) if inferred_key(self._changes.base.schema) == "id" else ())
        if not key:
            return
        taken = self._novel.first_with_key(
            self._changes.removed_columns(lost, key), key, without=(removed.segment, removed.row)
        )
        if taken is not None:
            raise _conflict(f"the row with {taken} was changed by another writer too")

    def _check_keys_of_added(self, removed: _Places) -> None:
        key = self._changes.base.key
        taken = self._novel.first_with_key(
            self._changes.added.select(list(key)), key, without=(removed.segment, removed.row)
        )
        if taken is not None:
            raise _conflict(f"another writer added a row with {taken}")

    def _gone(self, lost: Mask) -> CommitConflictError:
        first = np.zeros(len(lost), np.bool_)
        first[np.flatnonzero(lost)[0]] = True
        line = self._changes.removed_lines(first).decode(errors="replace").rstrip("\n")
        return _conflict(f"the row {line!r} was changed or deleted by another writer")

    def _added_places(self, removed: _Places) -> _Places:
        """Return where each added row is inserted; rows of vanished files take the place of the row they change."""
        changes = self._changes
        places = self._anchored(removed)
        homeless = np.flatnonzero((places.segment < 0) & (changes.pairs >= 0))
        places.segment[homeless] = removed.segment[changes.pairs[homeless]]
        places.row[homeless] = removed.row[changes.pairs[homeless]]
        return places

    def _anchored(self, removed: _Places) -> _Places:
        anchors = self._changes.anchors
        places = _Places(np.full(len(anchors), _END, np.int64), np.zeros(len(anchors), np.int64))
        shown = [number for number, segment in enumerate(self._base_segments) if segment.size]
        inner = np.flatnonzero(anchors < self._changes.base.size) if shown else np.empty(0, np.int64)
        if not len(inner):
            return places
        segment, row = row_positions(self._changes.base, anchors[inner])
        touched = set(removed.segment[removed.segment >= 0].tolist())
        takes = np.array([self._takes(number, touched) for number in range(len(self._base_segments))])
        places.segment[inner] = np.where(takes[segment], self._live[segment], _END)
        places.row[inner] = row
        for number in np.unique(segment[row == 0]).tolist():
            before = shown[shown.index(number) - 1] if number != shown[0] else None
            here = inner[(segment == number) & (row == 0)]
            places.segment[here], places.row[here] = self._between(before, number, touched)
        return places

    def _between(self, before: int | None, after: int, touched: set[int]) -> tuple[int, int]:
        """Return where rows go that stand between two files: where a file is rewritten anyway, else in a small one."""
        options = [(after, 0)] if before is None else [(before, self._base_segments[before].rows), (after, 0)]
        rewritten = [option for option in options if self._live[option[0]] in touched]
        small = [option for option in options if self._takes(option[0], touched)]
        number, row = next(iter(rewritten + small), (None, 0))
        return (_END if number is None else int(self._live[number])), row

    def _takes(self, number: int, touched: set[int]) -> bool:
        """Tell whether rows may be inserted into a file of the base."""
        alive = int(self._live[number])
        return alive >= 0 and (alive in touched or self._base_segments[number].size <= _SMALL_FILE)


def _live_segments(base: Sequence[SegmentInfo], head: Sequence[SegmentInfo]) -> Offsets:
    """Return for each segment of the base its number in the head, or `_NOWHERE`.

    A file with a new deletion vector keeps its path, but shows other rows.
    """
    numbers = {(segment.path, segment.size, segment.rows): number for number, segment in enumerate(head)}
    return np.array([numbers.get((s.path, s.size, s.rows), _NOWHERE) for s in base], np.int64)


def _conflict(what: str) -> CommitConflictError:
    return CommitConflictError(
        f"The edit conflicts with a newer version of the table: {what}. Nothing was changed; read the file again."
    )
