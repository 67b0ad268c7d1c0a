"""Partition values, as typed columns and as the text that the Delta log holds."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.store.snapshot import add_actions, arrow_schema

_PREFIX = "partition."


def partition_values(table: DeltaTable) -> pa.Table:
    """Return each live file's partition values, one row per file in the order of its add actions."""
    schema = arrow_schema(table)
    columns = table.metadata().partition_columns
    actions = add_actions(table)
    return pa.table({name: actions.column(_PREFIX + name).cast(schema.field(name).type) for name in columns})


def partition_text(value: Any) -> str | None:
    """Return a partition value as the Delta protocol writes it ("Partition Value Serialization")."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, date):
        return value.isoformat()
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
