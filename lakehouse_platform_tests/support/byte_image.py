"""A real CSV image over bytes in memory, and the splices of an edit applied to one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa

from lakehouse_platform.nfs.edits.locate import Splices
from lakehouse_platform.nfs.tree.image import SegmentInfo
from lakehouse_platform.text.csv_edit import render_table
from lakehouse_platform.text.csv_lines import row_starts
from lakehouse_platform.text.csv_write import csv_header


@dataclass(frozen=True)
class ByteContent:
    """A content that is bytes."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, count: int) -> Sequence[memoryview]:
        """Return the range in two pieces, as a real image may."""
        whole = memoryview(self.data)[offset : offset + count]
        half = len(whole) // 2
        return (whole[:half], whole[half:]) if half else (whole,)


@dataclass(frozen=True)
class ByteImage:
    """An image of rows by data file."""

    files: Mapping[str, pa.Table]
    schema: pa.Schema
    key: tuple[str, ...] = ()
    constraints: dict[str, str] = field(default_factory=dict)
    version: int = 0
    changed_ns: int = 0
    pieces: tuple[bytes, ...] = field(init=False)
    data: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pieces = tuple(render_table(rows) for rows in self.files.values())
        object.__setattr__(self, "pieces", pieces)
        object.__setattr__(self, "data", csv_header(self.schema) + b"".join(pieces))

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def header_size(self) -> int:
        return len(csv_header(self.schema))

    @property
    def segments(self) -> Sequence[SegmentInfo]:
        starts = accumulate((len(piece) for piece in self.pieces), initial=self.header_size)
        return [
            SegmentInfo(path, start, len(piece), rows.num_rows)
            for (path, rows), piece, start in zip(self.files.items(), self.pieces, starts, strict=False)
        ]

    def read(self, offset: int, count: int) -> Sequence[memoryview]:
        return ByteContent(self.data).read(offset, count)

    def is_ready(self, offset: int, count: int) -> bool:
        return True

    def row_position(self, offset: int) -> tuple[int, int]:
        segments = [(segment.start, number) for number, segment in enumerate(self.segments) if segment.size]
        start, number = segments[bisect_right(segments, (offset, len(segments) * 2)) - 1]
        rows = row_starts(self.pieces[number]).tolist()
        return number, rows.index(offset - start)


def spliced(head: ByteImage, splices: Splices) -> ByteImage:
    """Return the image after a commit of splices; files that lose all rows are gone."""
    files = dict(head.files)
    for file in splices.files:
        rows, position, parts = head.files[file.path], 0, list[pa.Table]()
        for cut in file.cuts:
            assert position <= cut.start <= cut.stop <= rows.num_rows
            parts += [rows.slice(position, cut.start - position), cut.rows]
            position = cut.stop
        parts.append(rows.slice(position))
        files[file.path] = pa.concat_tables(parts).combine_chunks()
    files = {
        f"{path}'" if any(path == file.path for file in splices.files) else path: rows
        for path, rows in files.items()
        if rows.num_rows
    }
    if splices.appended is not None:
        files[f"appended to {head.version}"] = splices.appended
    return ByteImage(files, head.schema, head.key, head.constraints, head.version + 1)
