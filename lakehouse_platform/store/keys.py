"""Primary keys: a declared key is enforced on every write, an inferred one only steers diffs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from lakehouse_platform.errors import DuplicateKeyError, InvalidRowsError, SchemaMismatchError
from lakehouse_platform.store.key_index import KeyFiles, KeyIndex
from lakehouse_platform.store.predicates import literal, quote_identifier
from lakehouse_platform.store.rough_statistics import source_of

# Up to here the keys are named in the query, so that file statistics and page indexes skip nearly everything;
# beyond, naming costs more than reading the key columns between the smallest and largest key.
_MAX_NAMED_KEYS = 200


def check_key_columns(schema: pa.Schema, columns: Sequence[str], table: str) -> tuple[str, ...]:
    """Return the columns if they can be a key of the table.

    Raises:
        SchemaMismatchError: None given, one repeated, one unknown, or one of a nested or floating type.
    """
    if not columns or len(set(columns)) != len(columns):
        raise SchemaMismatchError(f"Name at least one key column of {table}, each once.", table=table)
    for column in columns:
        if column not in schema.names:
            raise SchemaMismatchError(
                f"Table {table} has no column {column!r} to use as key; it has {', '.join(schema.names)}.",
                column=column,
            )
        kind = schema.field(column).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            raise SchemaMismatchError(
                f"Column {column!r} of {table} is {kind}, which cannot be a key: use whole numbers, text or times.",
                column=column,
            )
    return tuple(columns)


def check_distinct(rows: pa.Table, key: Sequence[str], table: str) -> None:
    """Refuse rows that hold a key twice, or NULL in a key.

    Raises:
        InvalidRowsError: A key column holds NULL.
        DuplicateKeyError: Two rows have the same key; the message names one such key.
    """
    require_keys(rows, key, table)
    repeated = repeated_key(rows, key)
    if repeated is not None:
        raise _duplicate(repeated, table, "occurs twice in the rows: give it once")


def require_keys(rows: pa.Table, key: Sequence[str], table: str) -> None:
    """Refuse rows without a key.

    Raises:
        InvalidRowsError: A key column holds NULL.
    """
    for column in key:
        if rows.column(column).null_count:
            raise InvalidRowsError(
                f"Key column {column!r} of {table} holds NULL: every row needs a key.", column=column
            )


def check_absent(
    table: DeltaTable,
    rows: pa.Table,
    key: Sequence[str],
    name: str,
    *,
    outside: str | None = None,
    index: KeyIndex | None = None,
) -> None:
    """Refuse rows whose key the table already holds.

    Args:
        table: The snapshot to look in.
        rows: Rows with the key columns.
        key: The key columns.
        name: The table's name, for messages.
        outside: Engine-safe SQL condition; only table rows for which it is not true count.
        index: Finds keys of the whole table faster than the engine.

    Raises:
        DuplicateKeyError: A key is taken; the message names it.
    """
    taken = taken_key(table, rows, key, outside=outside, index=index)
    if taken is not None:
        raise _duplicate(taken, name, "is already in the table: use a merge to change existing rows")


def repeated_key(rows: pa.Table, key: Sequence[str]) -> dict[str, Any] | None:
    """Return a key that stands in two of the rows; None if all differ."""
    counts = rows.select(list(key)).group_by(list(key)).aggregate([([], "count_all")])
    repeated = counts.filter(pc.call_function("greater", [counts.column("count_all"), pa.scalar(1)]))
    return repeated.select(list(key)).slice(0, 1).to_pylist()[0] if repeated.num_rows else None


def taken_key(
    table: DeltaTable,
    rows: pa.Table,
    key: Sequence[str],
    *,
    outside: str | None = None,
    index: KeyIndex | None = None,
) -> dict[str, Any] | None:
    """Return the key of a row that the table already holds; None if it holds none. See `check_absent`."""
    if rows.num_rows == 0:
        return None
    if index is not None and outside is None and index.serves(table):
        return index.duplicates(KeyFiles.of(index.location, table, key), rows.select(list(key)))
    keys = pl.DataFrame(pl.from_arrow(rows.select(list(key))))
    for batch in _candidates(table, rows, key, outside):
        taken = pl.DataFrame(pl.from_arrow(batch)).join(keys, on=list(key), how="semi")
        if taken.height:
            return taken.row(0, named=True)
    return None


def key_text(key: Mapping[str, Any]) -> str:
    """Return a key as people read it."""
    return ", ".join(f"{name} = {value!r}" for name, value in key.items())


def inferred_key(schema: pa.Schema) -> str | None:
    """Return the column that names rows when no key is declared: `id`, else the first Int32 or Int64 column.

    The caller checks that it is unique.
    """
    if "id" in schema.names and not pa.types.is_nested(schema.field("id").type):
        return "id"
    integers = (field.name for field in schema if field.type in (pa.int32(), pa.int64()))
    return next(integers, None)


def _candidates(
    table: DeltaTable, rows: pa.Table, key: Sequence[str], outside: str | None
) -> Iterator[pa.RecordBatch]:
    columns = ", ".join(map(quote_identifier, key))
    condition = _named(rows, key) if rows.num_rows <= _MAX_NAMED_KEYS else key_range(rows, key[0])
    if outside is not None:
        condition = f"{condition} AND ({outside}) IS NOT TRUE"
    query = f"SELECT {columns} FROM {source_of(table)} WHERE {condition}"  # noqa: S608 - rendered by store.predicates
    stream = QueryBuilder().register("t", table).execute(query)
    return iter(pa.RecordBatchReader.from_stream(cast("Any", stream)))


def _named(rows: pa.Table, key: Sequence[str]) -> str:
    if len(key) == 1:
        kind = rows.schema.field(key[0]).type
        values = ", ".join(literal(value, kind) for value in rows.column(key[0]).to_pylist())
        return f"{quote_identifier(key[0])} IN ({values})"
    return "(" + " OR ".join(_all_equal(row, rows.schema) for row in rows.select(list(key)).to_pylist()) + ")"


def _all_equal(row: dict[str, Any], schema: pa.Schema) -> str:
    parts = (
        f"{quote_identifier(name)} = {literal(value, schema.field(name).type)}" for name, value in row.items()
    )
    return "(" + " AND ".join(parts) + ")"


def key_range(rows: pa.Table, column: str) -> str:
    """Return an engine-safe SQL condition that every row with one of these keys fulfils."""
    kind = rows.schema.field(column).type
    if pa.types.is_binary(kind) or pa.types.is_boolean(kind):
        return "TRUE"
    bounds = cast("dict[str, Any]", pc.call_function("min_max", [rows.column(column)]).as_py())
    name = quote_identifier(column)
    return f"{name} >= {literal(bounds['min'], kind)} AND {name} <= {literal(bounds['max'], kind)}"


def _duplicate(key: dict[str, Any], table: str, how: str) -> DuplicateKeyError:
    return DuplicateKeyError(
        f"Key {key_text(key)} of {table} {how}. Nothing was written.",
        table=table,
    )
