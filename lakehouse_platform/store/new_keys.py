"""Whether rows could be appended to a version that is known already, as far as its declared key is concerned."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse_platform.store.cast import conform
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.key_index import KeyFiles, key_reader
from lakehouse_platform.store.keys import key_text, repeated_key, require_keys, taken_key
from lakehouse_platform.store.pinned import Pinned


def find_duplicate_key(pinned: Pinned, rows: pa.Table) -> str | None:
    """Tell why rows could not be appended because of the declared key; None if their keys are new and distinct.

    An append checks again, against the version that it follows.

    Args:
        pinned: The version.
        rows: Rows with at least the key columns.

    Raises:
        InvalidRowsError: A key column is missing or holds NULL.
        SchemaMismatchError, LossyCastError: A key does not fit its column.
    """
    key, name = pinned.key, pinned.table.name
    if not key:
        return None
    wanted = pa.schema([pinned.schema.field(column).with_nullable(True) for column in key])
    given = [column for column in key if column in rows.column_names]
    keys = conform(rows.select(given), wanted, name=name)
    require_keys(keys, key, name)
    if (repeated := repeated_key(keys, key)) is not None:
        return f"key {key_text(repeated)} occurs twice in the rows"
    with translated(pinned.table.location):
        taken = _taken(pinned, keys)
    return None if taken is None else f"key {key_text(taken)} is already in the table"


def _taken(pinned: Pinned, keys: pa.Table) -> dict[str, Any] | None:
    index = pinned.table.key_index
    if index is None or not pinned.has_plain_files:
        return taken_key(open_table(pinned.table.location), keys, pinned.key)
    return index.duplicates(_key_files(pinned), keys) if keys.num_rows else None


def _key_files(pinned: Pinned) -> KeyFiles:
    key = set(pinned.key)
    partitions = {
        file.path: {name: value for name, value in file.partition.items() if name in key}
        for file in pinned.files
        if file.partition
    }
    reader = key_reader(pinned.table.location, pinned.schema, pinned.table_id, pinned.key)
    return KeyFiles(reader, pinned.table_id, {file.path: file.size for file in pinned.files}, partitions)
