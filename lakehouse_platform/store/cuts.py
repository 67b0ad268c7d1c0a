"""Which rows of which data files a splice replaces, and the same rows with its cuts applied, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa

from lakehouse_platform.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows [start, stop) of one file, replaced by `rows`.

    Attributes:
        start: Position of the first row taken out; rows are inserted before it.
        stop: Position after the last row taken out; equal to `start` if rows are only inserted.
        rows: The rows that take their place; may be empty.
    """

    start: int
    stop: int
    rows: pa.Table

    @property
    def changes_nothing(self) -> bool:
        """Whether it takes nothing out and puts nothing in."""
        return self.start == self.stop and self.rows.num_rows == 0


@dataclass(frozen=True, slots=True)
class FileSplices:
    """The cuts of one data file.

    Attributes:
        path: The file as the log writes it.
        cuts: Sorted, not overlapping.
    """

    path: str
    cuts: tuple[Cut, ...]


def effective(files: Sequence[FileSplices]) -> dict[str, tuple[Cut, ...]]:
    """Return the cuts that change something, by file.

    Raises:
        InvalidArgumentError: A file is named twice, or its cuts are not sorted or overlap.
    """
    found: dict[str, tuple[Cut, ...]] = {}
    for file in files:
        if file.path in found or not _are_sorted(file.cuts):
            raise InvalidArgumentError(
                f"The cuts of data file {file.path} are not one sorted list without overlaps.", path=file.path
            )
        found[file.path] = tuple(cut for cut in file.cuts if not cut.changes_nothing)
    return {path: cuts for path, cuts in found.items() if cuts}


def spliced(
    batches: Iterable[pa.RecordBatch], cuts: Sequence[Cut], gone: Callable[[pa.RecordBatch], object]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with its cuts applied, in order.

    Args:
        batches: The file's rows.
        cuts: Sorted, not overlapping; their rows have the columns of the batches.
        gone: Is given the rows that are taken out.

    Raises:
        InvalidArgumentError: The file ends before a cut does.
    """
    waiting = list(reversed(cuts))
    end = 0
    for batch in batches:
        start, end = end, end + batch.num_rows
        at = start
        while waiting and waiting[-1].start < end:
            cut = waiting.pop()
            yield batch.slice(at - start, cut.start - at)
            yield from cut.rows.to_batches()
            at = min(cut.stop, end)
            gone(batch.slice(cut.start - start, at - cut.start))
            if cut.stop > end:
                # The rest of it lies in the next batch, where nothing is left to insert.
                waiting.append(replace(cut, start=end, rows=cut.rows.slice(0, 0)))
        yield batch.slice(at - start)
    while waiting:
        cut = waiting.pop()
        if cut.stop > end:
            raise InvalidArgumentError(
                f"A cut ends at row {cut.stop} of a data file that has {end} rows.", stop=cut.stop, rows=end
            )
        yield from cut.rows.to_batches()


def _are_sorted(cuts: Sequence[Cut]) -> bool:
    return all(0 <= cut.start <= cut.stop for cut in cuts) and all(
        before.stop <= after.start for before, after in pairwise(cuts)
    )
