"""Data files read one by one in commit order: for ordered views and for comparing versions.

Engine scans return rows in another order each time, so whatever needs an order reads here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.partitions import partition_values
from lakehouse_platform.store.snapshot import add_actions, arrow_schema

_PHYSICAL_NAME = b"delta.columnMapping.physicalName"
# Rows and bytes of a batch: Polars formats CSV a third faster in batches of 64 Ki rows than of 16 Ki (10 million rows
# of four columns), and one batch in each of two threads stays far below the memory that a reader may take.
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 1 << 24
# Of each column; a remote read costs a round trip, whatever its size.
_LOCAL_BUFFER, _REMOTE_BUFFER = 1 << 18, 1 << 22


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


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads single data files of all versions that have the same columns.

    Attributes:
        location: The table.
        schema: Its columns, with the metadata that names them in the files.
        fingerprint: Two readers with the same one make the same rows of the same file.
    """

    location: Location
    schema: pa.Schema
    fingerprint: bytes

    @classmethod
    def of(cls, location: Location, schema: pa.Schema, table_id: str) -> FileReader:
        """Return the reader of a table's version."""
        columns = [(field.name, str(field.type), physical_name(field)) for field in schema]
        identity = repr((location.uri, table_id, columns)).encode()
        return cls(location, schema, hashlib.blake2b(identity, digest_size=16).digest())

    def read(
        self, path: str, partition: Mapping[str, pa.Scalar], kept: pa.BooleanArray | None
    ) -> Iterator[pa.RecordBatch]:
        """Return a file's rows in its own order, in the table's columns.

        Args:
            path: The file, as the log writes it.
            partition: Its partition values.
            kept: Which of its rows are not deleted; rows beyond its end are kept.

        Raises:
            DataFilesMissingError: The file is gone.
        """
        with translated(self.location), opened_data_file(self.location, path) as source:
            done = 0
            for batch in _batches(_streamed(source, self.location), self._wanted(partition)):
                live = batch if kept is None else batch.filter(_mask(kept, done, batch.num_rows))
                done += batch.num_rows
                yield self._complete(live, partition)

    def _wanted(self, partition: Mapping[str, pa.Scalar]) -> set[str]:
        return {physical_name(field) for field in self.schema if field.name not in partition}

    def _complete(self, batch: pa.RecordBatch, partition: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
        columns: list[pa.Array] = []
        for field in self.schema:
            name = physical_name(field)
            if field.name in partition:
                columns.append(pa.repeat(partition[field.name], batch.num_rows))
            elif name in batch.schema.names:
                columns.append(_fitted(batch.column(name), field.type))
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def physical_name(field: pa.Field) -> str:
    """Return what a column is called in data files (Delta protocol, "Column Mapping")."""
    name = (field.metadata or {}).get(_PHYSICAL_NAME)
    return name.decode() if name else field.name


def opened_data_file(location: Location, path: str) -> pa.NativeFile:
    """Open a data file by the path in the log: relative to the table, or a whole URI, as shallow clones have it."""
    parent, _, name = path.rpartition("/")
    if "://" in path:
        location, path = Location.parse(unquote(parent), location.options), name
    return location.filesystem().open_input_file(unquote(path))


def _streamed(source: pa.NativeFile, location: Location) -> pq.ParquetFile:
    """Open a file so that little of it is in memory: pre-buffering keeps all of it until the end (pyarrow 26)."""
    buffer = _LOCAL_BUFFER if location.is_local else _REMOTE_BUFFER
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=buffer)


def _batches(file: pq.ParquetFile, wanted: set[str]) -> Iterator[pa.RecordBatch]:
    meta = file.metadata
    there = file.schema_arrow.names
    columns = None if wanted.issuperset(there) else [name for name in there if name in wanted]
    size = sum(meta.row_group(number).total_byte_size for number in range(meta.num_row_groups))
    rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * max(1, meta.num_rows) // max(1, size)))
    if columns == []:
        return _without_columns(meta.num_rows)
    return file.iter_batches(batch_size=rows, columns=columns)


def _without_columns(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _BATCH_ROWS):
        nothing = pa.nulls(min(_BATCH_ROWS, rows - start))
        yield pa.RecordBatch.from_arrays([nothing], names=[""])


def _mask(kept: pa.BooleanArray, start: int, rows: int) -> pa.Array:
    mask = kept.slice(start, rows)
    rest = rows - len(mask)
    return mask if not rest else pa.concat_arrays([mask, pa.repeat(pa.scalar(True), rest)])


def _fitted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array in the table's type: fields of structs by their names in files, at any depth."""
    if array.type == kind:
        return array
    if pa.types.is_dictionary(array.type):
        return _fitted(array.dictionary_decode(), kind)
    if pa.types.is_struct(kind):
        return _fitted_struct(array, kind)
    if pa.types.is_map(kind):
        keys, items = _fitted(array.keys, kind.key_type), _fitted(array.items, kind.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=kind)
    if pa.types.is_list(kind) and not pa.types.is_fixed_size_list(array.type):
        plain = array.cast(pa.list_(array.type.value_field))
        return pa.ListArray.from_arrays(_offsets(plain), _fitted(plain.values, kind.value_type), type=kind)
    return array.cast(kind)


def _fitted_struct(array: pa.Array, kind: pa.DataType) -> pa.Array:
    there = [field.name for field in array.type]
    children = [
        _fitted(_child(array, there.index(physical_name(field))), field.type)
        if physical_name(field) in there
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())


def _child(array: pa.Array, number: int) -> pa.Array:
    return array.field(number)


def _offsets(array: pa.Array) -> pa.Array:
    """Return the offsets of a list or map array, NULL where the list is NULL."""
    if not array.null_count:
        return array.offsets
    absent = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.call_function("if_else", [absent, pa.scalar(None, pa.int32()), array.offsets])


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
