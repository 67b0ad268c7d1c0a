"""What the image of a table has to be."""

from __future__ import annotations

import pyarrow as pa

from lakehouse_platform.nfs.tree.image import Form, Image
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.json_write import json_lines, table_to_json


def whole(image: Image) -> bytes:
    """Return all bytes of an image."""
    data = b"".join(image.read(0, image.size + 10))
    assert len(data) == image.size
    return data


def expected(table: Table, form: Form, version: int | None = None) -> bytes:
    """Return what the writers make of the version's rows, read afresh in file order."""
    pinned = Pinned.open(table, version)
    batches = [batch for file in pinned.files for batch in pinned.read_rows(file.path)]
    if form is Form.CSV:
        return csv_header(pinned.schema) + b"".join(csv_rows(batch) for batch in batches)
    if form is Form.JSONL:
        return b"".join(json_lines(batch) for batch in batches)
    return table_to_json(pa.Table.from_batches(batches, pinned.schema)).encode()
