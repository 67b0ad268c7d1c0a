"""What changed between two versions of a table, row by row, reading only the files that differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from lakehouse_platform.errors import SchemaMismatchError
from lakehouse_platform.model.results import ChangeKind
from lakehouse_platform.store.cast import cast_column
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.files import file_paths, read_files
from lakehouse_platform.store.keys import inferred_key
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.scan import scan
from lakehouse_platform.store.snapshot import (
    arrow_schema,
    has_deletion_vectors,
    primary_key,
    uses_column_mapping,
)
from lakehouse_platform.text.json_write import json_values

CHANGE_COLUMN = "_change_type"
# Data columns are numbered while rows are compared, so that none can have these names.
_COPY = "copy"
_ROW = "row"


def diff(location: Location, before: int, after: int) -> pa.Table:
    """Return the rows that differ between two versions, with a first column `_change_type`.

    With a key (declared, or inferred and unique) a changed row is an `update_preimage` and an `update_postimage`;
    without one, rows are a multiset and a changed row is a `delete` and an `insert`. Memory: the rows of the files
    that are in one version only.

    Args:
        location: The table.
        before: Version to compare from.
        after: Version to compare to; may be the older one.

    Raises:
        VersionNotFoundError: One of them cannot be read.
        DataFilesMissingError: Files of the older version were vacuumed.
        SchemaMismatchError: A column has another type in the two versions.
    """
    old, new = open_table(location, before), open_table(location, after)
    schema = arrow_schema(new)
    gone, come = _differing(location, old, new)
    gone = _aligned(gone, schema, location.name)
    key = _key(new, gone, come)
    return changes(gone, come, key)


def changes(gone: pa.Table, come: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the differences of two sets of rows with the same columns; see `diff`."""
    old, new = _comparable(gone), _comparable(come)
    everything = [name for name in old.columns if name != _ROW]
    lost = _surplus(old, new, everything)
    found = _surplus(new, old, everything)
    if not key:
        parts = [(gone, lost, ChangeKind.DELETE), (come, found, ChangeKind.INSERT)]
        return _report(parts, come.schema)
    numbers = [str(come.column_names.index(name)) for name in key]
    return _report(_keyed(gone, come, lost, found, numbers), come.schema)


def _keyed(
    gone: pa.Table, come: pa.Table, lost: pl.DataFrame, found: pl.DataFrame, key: list[str]
) -> list[tuple[pa.Table, pl.DataFrame, ChangeKind]]:
    before = lost.join(found, on=key, how="semi", nulls_equal=True).sort(key)
    after = found.join(lost, on=key, how="semi", nulls_equal=True).sort(key)
    return [
        (gone, lost.join(found, on=key, how="anti", nulls_equal=True).sort(key), ChangeKind.DELETE),
        (gone, before, ChangeKind.UPDATE_PREIMAGE),
        (come, after, ChangeKind.UPDATE_POSTIMAGE),
        (come, found.join(lost, on=key, how="anti", nulls_equal=True).sort(key), ChangeKind.INSERT),
    ]


def _surplus(some: pl.DataFrame, others: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Return the rows of `some` that `others` does not have as often."""
    numbered = [
        frame.with_columns(pl.int_range(pl.len()).over(columns).alias(_COPY)) for frame in (some, others)
    ]
    return numbered[0].join(numbered[1], on=[*columns, _COPY], how="anti", nulls_equal=True)


def _report(parts: Sequence[tuple[pa.Table, pl.DataFrame, ChangeKind]], schema: pa.Schema) -> pa.Table:
    tables: list[pa.Table] = []
    for source, rows, kind in parts:
        picked = source.take(rows.get_column(_ROW).to_arrow())
        tables.append(picked.add_column(0, CHANGE_COLUMN, pa.repeat(pa.scalar(kind.value), picked.num_rows)))
    nullable = [pa.field(f.name, f.type) for f in schema]
    wanted = pa.schema([pa.field(CHANGE_COLUMN, pa.string()), *nullable])
    return pa.concat_tables([table.cast(wanted) for table in tables])


def _comparable(rows: pa.Table) -> pl.DataFrame:
    """Return numbered columns that compare exactly: floats by their bits, nested values as canonical JSON."""
    columns = {str(number): _exact(column) for number, column in enumerate(rows.columns)}
    frame = cast("pl.DataFrame", pl.from_arrow(pa.table(columns)))
    return frame.with_row_index(_ROW)


def _exact(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_nested(kind):
        texts = [_canonical(value) for chunk in column.chunks for value in json_values(chunk)]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_floating(kind):
        bits = pa.int64() if kind == pa.float64() else pa.int32()
        return pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)
    return column


def _canonical(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)


def _differing(location: Location, old: DeltaTable, new: DeltaTable) -> tuple[pa.Table, pa.Table]:
    if any(uses_column_mapping(table) or has_deletion_vectors(table) for table in (old, new)):
        return scan(location, old).to_arrow(), scan(location, new).to_arrow()
    old_paths, new_paths = file_paths(old), file_paths(new)
    gone = [path for path in old_paths if path not in set(new_paths)]
    come = [path for path in new_paths if path not in set(old_paths)]
    return _read(location, old, gone), _read(location, new, come)


def _read(location: Location, table: DeltaTable, paths: list[str]) -> pa.Table:
    return pa.Table.from_batches(read_files(location, table, paths), arrow_schema(table))


def _aligned(rows: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    columns: list[pa.ChunkedArray] = []
    for field in schema:
        if field.name not in rows.column_names:
            columns.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)]))
            continue
        columns.append(cast_column(rows.column(field.name), field.type, name=field.name, table=name))
    lost = [column for column in rows.column_names if column not in schema.names]
    if lost:
        raise SchemaMismatchError(
            f"Column {lost[0]!r} of {name} is in one version only, so their rows cannot be compared.",
            column=lost[0],
        )
    return pa.Table.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))


def _key(table: DeltaTable, gone: pa.Table, come: pa.Table) -> tuple[str, ...]:
    if declared := primary_key(table):
        return declared
    inferred = inferred_key(arrow_schema(table))
    if inferred is None or any(_repeats(rows.column(inferred)) for rows in (gone, come)):
        return ()
    return (inferred,)


def _repeats(column: pa.ChunkedArray) -> bool:
    return column.null_count > 0 or pc.call_function("count_distinct", [column]).as_py() != len(column)
