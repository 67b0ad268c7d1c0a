"""A data file's rows as the bytes of one segment, in pieces, the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import polars as pl
import pyarrow as pa

from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.json_write import json_lines, json_members

# Sizes are remembered on disk. Whatever may render other bytes, a change of ours or of a library's, makes them void.
RENDERER = f"1 polars {pl.__version__} pyarrow {pa.__version__}"

_RENDERERS: Mapping[Form, Callable[[pa.RecordBatch], bytes]] = {
    Form.CSV: csv_rows,
    Form.JSON: json_members,
    Form.JSONL: json_lines,
}


def rendered(batches: Iterable[pa.RecordBatch], form: Form) -> Iterator[tuple[int, bytes]]:
    """Yield the number of rows and the bytes of one piece after another; never an empty piece."""
    render = _RENDERERS[form]
    for batch in batches:
        if batch.num_rows:
            yield batch.num_rows, render(batch)


def frame(form: Form, schema: pa.Schema, size: int) -> tuple[bytes, bytes]:
    """Return the bytes that stand before and behind the segments, of `size` bytes in all, of an image.

    Each row of a JSON array is `,` LF and the object. The first comma is not shown: `[` takes its place.
    """
    if form is Form.CSV:
        return csv_header(schema), b""
    if form is Form.JSONL:
        return b"", b""
    return b"[", b"\n]\n" if size else b"]\n"


def rows_before(data: bytes, form: Form) -> int:
    """Return how many rows some bytes hold that begin and end where rows of CSV or JSON Lines do."""
    if form is not Form.CSV or b'"' not in data:
        return data.count(b"\n")
    # A quote inside quotes is doubled, so every second part is outside of them.
    return sum(part.count(b"\n") for part in data.split(b'"')[::2])
