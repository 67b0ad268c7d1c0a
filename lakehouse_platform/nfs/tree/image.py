"""An image: the exact bytes of one view of one version of a table, as a header and one segment per data file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from lakehouse_platform.nfs.content import Buffer


class Form(StrEnum):
    """The forms in which rows are shown."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """One data file's rows inside an image.

    Attributes:
        path: The data file as the table's log writes it.
        start: Where its bytes begin in the image.
        size: How many bytes it has.
        rows: How many rows it shows.
    """

    path: str
    start: int
    size: int
    rows: int


class Image(Protocol):
    """The bytes of one view of one version; also a `Content`. Never changes."""

    @property
    def version(self) -> int:
        """The table's version."""
        ...

    @property
    def size(self) -> int:
        """Exact size in bytes."""
        ...

    @property
    def changed_ns(self) -> int:
        """Change and modification time of the view while it shows this image; grows strictly from image to image."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, in the header's order."""
        ...

    @property
    def key(self) -> tuple[str, ...]:
        """The declared primary key."""
        ...

    @property
    def constraints(self) -> dict[str, str]:
        """CHECK constraints by name."""
        ...

    @property
    def header_size(self) -> int:
        """Bytes before the first segment."""
        ...

    @property
    def segments(self) -> Sequence[SegmentInfo]:
        """The data files in the order in which they are shown."""
        ...

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return a range without copying. Renders what was evicted, so it may block: see `is_ready`."""
        ...

    def is_ready(self, offset: int, count: int) -> bool:
        """Tell whether reading a range needs no rendering."""
        ...

    def row_position(self, offset: int) -> tuple[int, int]:
        """Return (segment number, row number in it) of the row that begins at an offset.

        The offset is the start of a row of a segment (CSV and JSONL only). Cost: at most one chunk of rows.
        """
        ...
