"""The rows that every benchmark uses: five columns, deterministic, as common tables have them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("city", pa.string()),
        pa.field("moment", pa.timestamp("us", "UTC")),
        pa.field("amount", pa.float64()),
    ]
)
# A CSV has no timestamps of its own: a second whole number stands in their place.
CSV_SCHEMA = pa.schema(
    [pa.field("count", pa.int64()) if field.name == "moment" else field for field in SCHEMA]
)
_CITIES = 20
_START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


def rows(count: int, first: int = 0) -> pa.Table:
    """Return rows with ids from `first` on."""
    ids = pl.int_range(first, first + count, eager=True).alias("id")
    frame = pl.DataFrame({"id": ids}).with_columns(
        name=pl.format("user-{}", pl.col("id").cast(pl.String).str.zfill(8)),
        city=pl.format("city-{}", pl.col("id") * 7919 % _CITIES),
        moment=(pl.col("id") * 1_000_000 + _START_US).cast(pl.Datetime("us", "UTC")),
        # Spread like prices, with two decimals.
        amount=((pl.col("id") * 48271 % 2147483647 % 1_000_000) / 100).round(2),
    )
    return frame.to_arrow().cast(SCHEMA).combine_chunks()


def row(number: int) -> dict[str, Any]:
    """Return one row as a dictionary."""
    return rows(1, number).to_pylist()[0]


def sample(table: pa.Table, count: int) -> pa.Table:
    """Return rows taken from all over a table, each with a changed amount."""
    numbers = sorted(random.Random(count).sample(range(table.num_rows), count))
    chosen = table.take(numbers)
    amounts = pa.array([float(number) for number in range(count)])
    return chosen.set_column(chosen.column_names.index("amount"), SCHEMA.field("amount"), amounts)


def csv_rows(count: int, first: int = 0) -> pa.Table:
    """Return rows as the CSV file has them."""
    table = rows(count, first)
    position = SCHEMA.get_field_index("moment")
    return table.set_column(position, CSV_SCHEMA.field(position), table.column("id"))


def write_csv(path: Path, count: int, chunk: int = 1_000_000) -> None:
    """Write a CSV file of so many rows."""
    with pa_csv.CSVWriter(path, CSV_SCHEMA) as writer:
        for first in range(0, count, chunk):
            writer.write_table(csv_rows(min(chunk, count - first), first))
