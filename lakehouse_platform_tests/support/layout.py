"""A table's rows where they stand: file by file, in the order in which an ordered view shows them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.files import file_paths, read_files
from lakehouse_platform.store.splice import Cut, FileSplices
from lakehouse_platform.store.table import Table

Rows = list[dict[str, Any]]


def paths(table: Table) -> list[str]:
    """Return the live files as the log writes them, in order."""
    return file_paths(open_table(table.location))


def layout(table: Table) -> dict[str, Rows]:
    """Return the rows of each live file, in order."""
    engine = open_table(table.location)
    return {
        path: [row for batch in read_files(table.location, engine, [path]) for row in batch.to_pylist()]
        for path in file_paths(engine)
    }


def in_order(table: Table) -> Rows:
    """Return all rows in the order of an ordered view."""
    return [row for rows in layout(table).values() for row in rows]


def typed(table: Table, rows: Rows) -> pa.Table:
    """Return rows in the table's columns."""
    return pa.Table.from_pylist(rows, schema=table.arrow_schema())


def cut(table: Table, start: int, stop: int, *rows: dict[str, Any]) -> Cut:
    """Return a cut that puts rows in the place of [start, stop)."""
    return Cut(start, stop, typed(table, list(rows)))


def in_file(table: Table, number: int, *cuts: Cut) -> FileSplices:
    """Return the cuts of the file that comes `number`th."""
    return FileSplices(paths(table)[number], cuts)
