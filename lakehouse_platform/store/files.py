"""Data files read one by one in commit order: for ordered views and for comparing versions.

Engine scans return rows in another order each time, so whatever needs an order reads here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.partitions import partition_values
from lakehouse_platform.store.snapshot import add_actions, arrow_schema


def file_paths(table: DeltaTable) -> list[str]:
    """Return the live files' paths as the log writes them, oldest first."""
    actions = add_actions(table).sort_by([("modification_time", "ascending"), ("path", "ascending")])
    return actions.column("path").to_pylist()


def read_files(
    location: Location, table: DeltaTable, paths: Sequence[str], resolve: Callable[[str], str] = str
) -> Iterator[pa.RecordBatch]:
    """Return the rows of some live files, in the order of `paths` and within each file, in the table's columns.

    Not for tables with column mapping or deletion vectors, whose rows a file alone does not tell.

    Args:
        location: Where the files are.
        table: The snapshot they belong to.
        paths: As its log writes them.
        resolve: Makes a path of the log one relative to `location`.
    """
    schema = arrow_schema(table)
    partitions = _partition_scalars(table)
    filesystem = location.filesystem()
    for path in paths:
        with translated(location), filesystem.open_input_file(unquote(resolve(path))) as source:
            for batch in pq.ParquetFile(source).iter_batches():
                yield _complete(batch, schema, partitions.get(path, {}))


def _partition_scalars(table: DeltaTable) -> dict[str, dict[str, pa.Scalar]]:
    if not table.metadata().partition_columns:
        return {}
    values = partition_values(table)
    paths = add_actions(table).column("path").to_pylist()
    return {
        path: {name: values.column(name)[row] for name in values.column_names}
        for row, path in enumerate(paths)
    }


def _complete(batch: pa.RecordBatch, schema: pa.Schema, partition: dict[str, Any]) -> pa.RecordBatch:
    arrays = [_column(batch, field, partition) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, partition: dict[str, Any]) -> pa.Array:
    if field.name in partition:
        return pa.repeat(partition[field.name], batch.num_rows)
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    array = batch.column(field.name)
    return array if array.type == field.type else array.cast(field.type)
