"""Partition values, as typed columns and as the text that the Delta log holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from lakehouse_platform.errors import LossyCastError
from lakehouse_platform.store.snapshot import add_actions, arrow_schema

_PREFIX = "partition."
_READ_AS_NULL = pa.array(["", "__HIVE_DEFAULT_PARTITION__"])


def partition_values(table: DeltaTable) -> pa.Table:
    """Return each live file's partition values, one row per file in the order of its add actions."""
    schema = arrow_schema(table)
    columns = table.metadata().partition_columns
    actions = add_actions(table)
    return pa.table({name: actions.column(_PREFIX + name).cast(schema.field(name).type) for name in columns})


def check_partition_texts(rows: pa.Table, columns: Sequence[str], name: str) -> None:
    """Refuse texts that every reader takes for NULL in a partition column (Delta protocol, Hive's default partition).

    Raises:
        LossyCastError: A row has such a text; the message names the column.
    """
    for column in columns:
        if column not in rows.column_names or not pa.types.is_string(rows.column(column).type):
            continue
        found = pc.call_function("is_in", [rows.column(column)], pc.SetLookupOptions(_READ_AS_NULL))
        row = pc.index(found, pa.scalar(True)).as_py()
        if row >= 0:
            raise LossyCastError(
                f"Column {column!r} of {name} is a partition column, where {rows.column(column)[row].as_py()!r} "
                f"would be read as NULL (row {row + 1}): write NULL or another text. Nothing was written.",
                column=column,
                row=row + 1,
            )


def partition_text(value: Any) -> str | None:
    """Return a partition value as the Delta protocol writes it ("Partition Value Serialization")."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        # isoformat, not strftime: the latter writes the year 1 as "1".
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
