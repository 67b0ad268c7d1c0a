"""Rows looked up by their lines or keys in some data files of the newest version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, cast

import numpy as np
import polars as pl
import pyarrow as pa

from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.edits.line_hash import line_hashes, match_lines, no_hashes
from lakehouse_platform.nfs.edits.side import Side
from lakehouse_platform.nfs.tree.image import SegmentInfo
from lakehouse_platform.text.csv_edit import parse_columns
from lakehouse_platform.text.csv_lines import Offsets, row_starts
from lakehouse_platform.text.json_values import shown

_PIECE = 1 << 22  # bytes read at a time


class Head(Content, Protocol):
    """What is used of the newest image."""

    @property
    def schema(self) -> pa.Schema: ...  # noqa: D102
    @property
    def segments(self) -> Sequence[SegmentInfo]: ...  # noqa: D102


class SegmentRows:
    """The rows of some segments of an image."""

    def __init__(self, head: Head, numbers: Sequence[int]) -> None:
        self._head = head
        self._numbers = list(numbers)
        self._names = tuple(head.schema.names)

    def find(
        self, lines: bytes, *, without: tuple[Offsets, Offsets] | None = None
    ) -> tuple[Offsets, Offsets]:
        """Return segment and row of each line, segment -2 where it is not there; each row is found once.

        Args:
            lines: Whole lines, as the view shows them.
            without: Segments and rows of rows that do not count.
        """
        wanted = line_hashes(lines, row_starts(lines))
        hashes, segments, rows = [no_hashes()], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number, first, data in self._pieces():
            here = line_hashes(data, row_starts(data))
            at = np.flatnonzero(np.isin(here[0], wanted[0]))
            if without is not None:
                at = at[~np.isin(first + at, without[1][without[0] == number])]
            hashes.append(here[:, at])
            segments.append(np.full(len(at), number, np.int64))
            rows.append(first + at)
        found = match_lines(np.concatenate(hashes, axis=1), wanted)
        hits = found >= 0
        segment, row = np.full(len(found), -2, np.int64), np.zeros(len(found), np.int64)
        segment[hits] = np.concatenate(segments)[found[hits]]
        row[hits] = np.concatenate(rows)[found[hits]]
        return segment, row

    def first_with_key(
        self, keys: pa.Table, key: tuple[str, ...], *, without: tuple[Offsets, Offsets] | None = None
    ) -> str | None:
        """Return, as text, the first of some keys that a row has, or None.

        Args:
            keys: The keys.
            key: The key columns.
            without: Segments and rows of rows that do not count.
        """
        wanted = cast(pl.DataFrame, pl.from_arrow(keys))
        for number, first, data in self._pieces():
            rows = parse_columns(data, self._names, self._head.schema, key)
            here = cast(pl.DataFrame, pl.from_arrow(rows)).with_row_index("__row", offset=first)
            taken = here.join(wanted, on=list(key), how="semi", maintain_order="left")
            if without is not None:
                left_out = without[1][without[0] == number]
                taken = taken.filter(~pl.col("__row").cast(pl.Int64).is_in(left_out.tolist()))
            if taken.height:
                row = taken.select(list(key)).row(0, named=True)
                return ", ".join(f"{name} = {shown(value)}" for name, value in row.items())
        return None

    def _pieces(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield segment, number of the first row in it, and bytes of whole rows."""
        for number in self._numbers:
            segment = self._head.segments[number]
            stop = segment.start + segment.size
            side = Side(self._head, self._names, self._head.schema, segment.start, stop, is_canonical=True)
            at, row = segment.start, 0
            while at < stop:
                data = side.rows(at, _PIECE, stop)
                yield number, row, data
                at += len(data)
                row += len(row_starts(data)) - 1
