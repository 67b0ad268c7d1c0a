"""Rows that callers hand in, in whatever form they have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, cast

import pyarrow as pa

from lakehouse_platform.errors import InvalidRowsError
from lakehouse_platform.store.cast import conform
from lakehouse_platform.text.json_rows import rows_from_values


class ArrowStreamable(Protocol):
    """Anything that hands out an Arrow stream: Polars and pandas frames, our `Rows`, DuckDB results."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream's capsule."""
        ...


RowsIn: TypeAlias = (
    pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStreamable | Iterable[Mapping[str, Any]]
)
Held: TypeAlias = pa.Table | pa.RecordBatchReader | list[Mapping[str, Any]]


def hold(data: RowsIn) -> Held:
    """Return the rows as a table, a stream that can be read once, or a list of mappings.

    Raises:
        InvalidRowsError: `data` is none of the accepted forms.
    """
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(cast("Any", data))
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)):
        rows = list(cast("Iterable[Any]", data))
        if all(isinstance(row, Mapping) for row in rows):
            return cast("list[Mapping[str, Any]]", rows)
    raise InvalidRowsError(
        f"Rows cannot be taken from {type(data).__name__}: give an Arrow, Polars or pandas table, "
        "a record batch reader, or a list of dictionaries."
    )


def as_table(held: Held, schema: pa.Schema, *, name: str, evolve: bool = False) -> pa.Table:
    """Return held rows in exactly the schema's columns; a stream is read to its end.

    Raises:
        InvalidRowsError, SchemaMismatchError, LossyCastError, ConstraintViolationError: See `conform`.
    """
    if isinstance(held, list):
        rows = _from_mappings(held, schema, evolve=evolve)
    else:
        rows = held.read_all() if isinstance(held, pa.RecordBatchReader) else held
    return conform(rows, schema, name=name, evolve=evolve)


def _from_mappings(held: list[Mapping[str, Any]], schema: pa.Schema, *, evolve: bool) -> pa.Table:
    names = set(schema.names)
    new = dict.fromkeys(column for row in held for column in row if column not in names) if evolve else {}
    if not new:
        return rows_from_values(held, schema)
    rows = rows_from_values([{key: row[key] for key in row if key in names} for row in held], schema)
    for column in new:
        rows = rows.append_column(column, _inferred([row.get(column) for row in held], column))
    return rows


def _inferred(values: list[Any], column: str) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidRowsError(
            f"No one type holds the values of new column {column!r} ({error}): give an Arrow table, or add it first.",
            column=column,
        ) from error
