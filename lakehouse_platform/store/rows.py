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


RowsIn: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStreamable | Iterable[Mapping[str, Any]]
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
    if isinstance(held, list) and not evolve:
        return conform(rows_from_values(held, schema), schema, name=name)
    return conform(_arrow(held), schema, name=name, evolve=evolve)


def _arrow(held: Held) -> pa.Table:
    if isinstance(held, list):
        return pa.Table.from_pylist([dict(row) for row in held])
    return held.read_all() if isinstance(held, pa.RecordBatchReader) else held
