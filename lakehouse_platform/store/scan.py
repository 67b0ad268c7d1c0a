"""Reading: a stream of record batches with plain types, in bounded memory, and its other forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from lakehouse_platform.errors import MissingDependencyError, SchemaMismatchError
from lakehouse_platform.store.cast import plain_schema
from lakehouse_platform.store.engine import open_table, translate, translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.predicates import parse_predicate
from lakehouse_platform.store.snapshot import arrow_schema

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that can be read again and again; each reading starts afresh on the same data.

    Attributes:
        schema: Their columns, in plain Arrow types.
    """

    schema: pa.Schema
    _open: Callable[[], pa.RecordBatchReader]

    def reader(self) -> pa.RecordBatchReader:
        """Return a stream of record batches, read as it is consumed."""
        return self._open()

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return self.reader().read_all()

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a Polars frame."""
        import polars as pl

        return cast("pl.DataFrame", pl.from_arrow(self.to_arrow()))

    def to_pandas(self) -> Any:
        """Return all rows as a pandas frame.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as error:
            raise MissingDependencyError("to_pandas needs pandas: run `pip install pandas`.") from error

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return all rows as dictionaries of Python values."""
        return self.to_arrow().to_pylist()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows to any library that reads Arrow streams."""
        return self.reader().__arrow_c_stream__(requested_schema)


def scan(
    location: Location,
    *,
    columns: Sequence[str] | None = None,
    predicate: str | None = None,
    limit: int | None = None,
    version: int | None = None,
) -> Rows:
    """Return a table's rows at one version; the order of rows is not defined.

    Args:
        location: The table.
        columns: Columns to return, in that order; None for all.
        predicate: Condition over any column; NULL counts as not fulfilled.
        limit: The most rows to return.
        version: Version to read; None for the newest at the time of this call.

    Raises:
        SchemaMismatchError: A column is unknown.
        InvalidPredicateError: The predicate is not one whole condition over the table's columns.
        TableNotFoundError, NotADeltaTableError, VersionNotFoundError: See `open_table`.
    """
    table = open_table(location, version)
    schema = _projected(arrow_schema(table), columns, location.name)
    condition = parse_predicate(predicate, arrow_schema(table)) if predicate is not None else None

    def open_reader() -> pa.RecordBatchReader:
        if limit == 0 or (condition is not None and condition.is_never):
            return pa.RecordBatchReader.from_batches(plain_schema(schema), [])
        sql = condition.sql() if condition is not None and not condition.is_always else None
        with translated(location):
            stream = table.scan(columns=list(columns) if columns is not None else None, predicate=sql)
            raw = pa.RecordBatchReader.from_stream(cast("Any", stream))
        return plain_reader(raw, schema, location, limit)

    return Rows(plain_schema(schema), open_reader)


def plain_reader(
    raw: pa.RecordBatchReader, schema: pa.Schema, location: Location, limit: int | None = None
) -> pa.RecordBatchReader:
    """Return an engine stream in plain types and our column order, with our errors, ended after `limit` rows."""
    plain = plain_schema(schema)

    def batches() -> Iterator[pa.RecordBatch]:
        left = limit
        try:
            for batch in raw:
                part = batch if left is None else batch.slice(0, left)
                yield plain_batch(part, plain)
                left = None if left is None else left - part.num_rows
                if left == 0:
                    return
        except Exception as error:
            raise translate(error, location) from error

    return pa.RecordBatchReader.from_batches(plain, batches())


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the schema's columns, in its order and types."""
    if batch.schema.equals(schema):
        return batch
    arrays = [_as(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


def _projected(schema: pa.Schema, columns: Sequence[str] | None, table: str) -> pa.Schema:
    if columns is None:
        return schema
    unknown = [column for column in columns if column not in schema.names]
    if unknown or not columns or len(set(columns)) != len(columns):
        raise SchemaMismatchError(
            f"Columns {', '.join(map(repr, columns)) or '(none)'} cannot be read from {table}: "
            f"name each once, from {', '.join(map(repr, schema.names))}.",
            columns=list(columns),
        )
    return pa.schema([schema.field(column) for column in columns])
