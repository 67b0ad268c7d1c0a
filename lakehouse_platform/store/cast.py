"""Rows into a table's exact columns: by name, lossless, or refused.

The engine would cast silently (1.7 becomes 1, '77' becomes 77, nanoseconds are cut), so nothing reaches it uncast.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_platform.errors import (
    ConstraintViolationError,
    InvalidSchemaTextError,
    LossyCastError,
    SchemaMismatchError,
)
from lakehouse_platform.model.schema import type_text
from lakehouse_platform.store.nested import has_required, is_any_list, parts, storable_type

_Test = Callable[[pa.DataType], bool]


def _any_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_any_bytes(kind: pa.DataType) -> bool:
    """Tell whether a type is binary of whatever layout."""
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


# From which kind to which kind a cast may go at all; whether each value survives is checked by the cast itself.
_ALLOWED: tuple[tuple[_Test, _Test], ...] = (
    (pa.types.is_integer, pa.types.is_integer),
    (pa.types.is_integer, pa.types.is_floating),
    (pa.types.is_integer, pa.types.is_decimal),
    (pa.types.is_floating, pa.types.is_floating),
    (pa.types.is_floating, pa.types.is_integer),
    (pa.types.is_decimal, pa.types.is_decimal),
    (pa.types.is_boolean, pa.types.is_boolean),
    (pa.types.is_date, pa.types.is_date),
    (_any_text, _any_text),
    (is_any_bytes, is_any_bytes),
)


def conform(
    table: pa.Table, schema: pa.Schema, *, name: str, evolve: bool = False, rows_before: int = 0
) -> pa.Table:
    """Return the rows with exactly the schema's columns, in its order.

    Args:
        table: The rows; columns are matched by name.
        schema: The table's schema.
        name: The table's name, for messages.
        evolve: Keep columns that the schema lacks, behind its own, nullable and in a type that a table can hold.
        rows_before: Rows that came before these, for messages.

    Raises:
        SchemaMismatchError: A column is missing or unknown, or its type is of another kind.
        LossyCastError: A value would change.
        ConstraintViolationError: NULL in a NOT NULL column or in a NOT NULL field inside one.
    """
    if table.schema.equals(schema, check_metadata=False) and not _has_required(schema):
        return table
    _check_columns(table.schema, schema, name=name, evolve=evolve)
    fields = [*schema, *(_new_field(f, name) for f in table.schema if f.name not in schema.names)]
    columns = [_column(table, field, name, rows_before) for field in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def conform_stream(
    reader: pa.RecordBatchReader, schema: pa.Schema, *, name: str, evolve: bool = False
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the lazily conformed batches of a stream; see `conform`."""
    probe = conform(reader.schema.empty_table(), schema, name=name, evolve=evolve)

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in reader:
            part = pa.Table.from_batches([batch])
            yield from conform(part, schema, name=name, evolve=evolve, rows_before=rows).to_batches()
            rows += batch.num_rows

    return probe.schema, batches()


def cast_column(column: pa.ChunkedArray, target: pa.DataType, *, name: str, table: str) -> pa.ChunkedArray:
    """Return the column in another type without changing any value.

    Raises:
        SchemaMismatchError: The types are of different kinds, such as text and number.
        LossyCastError: A value would change.
    """
    if column.type == target:
        return column
    if pa.types.is_dictionary(column.type):
        return cast_column(column.cast(column.type.value_type), target, name=name, table=table)
    if not _castable(column.type, target):
        raise SchemaMismatchError(
            f"Column {name!r} of {table} is {target}, but the rows hold {column.type}: convert them first.",
            column=name,
            expected=str(target),
            actual=str(column.type),
        )
    try:
        result = pa.chunked_array([chunk.cast(target, safe=True) for chunk in column.chunks], target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _lossy(name, table, target, str(error)) from error
    if (pa.types.is_floating(target) or pa.types.is_nested(target)) and not pa.types.is_null(column.type):
        _check_floats(column, result, name=name, table=table)
    return result


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with plain strings and binaries in place of views and large ones, at any depth."""
    if _any_text(kind):
        return pa.string()
    if is_any_bytes(kind):
        return pa.binary()
    if is_any_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types, see `plain_type`, and without metadata."""
    return pa.schema([pa.field(f.name, plain_type(f.type), f.nullable) for f in schema])


def _has_required(schema: pa.Schema) -> bool:
    return any(not field.nullable or has_required(field.type) for field in schema)


def _new_field(field: pa.Field, table: str) -> pa.Field:
    """Return a column to add; nullable, because the rows that the table already holds have no value for it."""
    kind = storable_type(field.type)
    if pa.types.is_null(kind):
        raise SchemaMismatchError(
            f"New column {field.name!r} of {table} holds only NULL, so its type is unknown: leave it out, "
            "or add it with a type first.",
            column=field.name,
        )
    try:
        type_text(kind)
    except InvalidSchemaTextError as error:
        raise SchemaMismatchError(
            f"Column {field.name!r} of {table}: {error.message}", column=field.name
        ) from error
    return pa.field(field.name, kind, True, field.metadata)


def _check_columns(actual: pa.Schema, expected: pa.Schema, *, name: str, evolve: bool) -> None:
    names, known = actual.names, set(expected.names)
    repeated = [column for column, times in Counter(names).items() if times > 1]
    if repeated:
        raise SchemaMismatchError(
            f"The rows have column {repeated[0]!r} twice: rename one.", column=repeated[0]
        )
    lowered = {column.lower() for column in known}
    for column in names:
        if column not in known and (not evolve or column.lower() in lowered):
            raise _unknown_column(column, expected, name)
    given = set(names)
    for field in expected:
        if field.name not in given and not field.nullable:
            raise SchemaMismatchError(
                f"The rows lack column {field.name!r}, which is NOT NULL in {name}: add it.",
                column=field.name,
            )


def _unknown_column(column: str, expected: pa.Schema, name: str) -> SchemaMismatchError:
    by_lower = {known.lower(): known for known in expected.names}
    near = by_lower.get(column.lower()) or next(
        iter(difflib.get_close_matches(column, expected.names, n=1)), None
    )
    hint = f"did you mean {near!r}?" if near else "to add new columns, ask for schema evolution."
    return SchemaMismatchError(
        f"Table {name} has no column {column!r}; it has {', '.join(map(repr, expected.names))}: {hint}",
        column=column,
    )


def _column(table: pa.Table, field: pa.Field, name: str, rows_before: int) -> pa.ChunkedArray:
    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = cast_column(table.column(field.name), field.type, name=field.name, table=name)
    if not field.nullable and column.null_count:
        row = rows_before + pc.index(column.is_null(), pa.scalar(True)).as_py() + 1
        raise ConstraintViolationError(
            f"Column {field.name!r} of {name} is NOT NULL, but row {row} holds NULL. Nothing was written.",
            column=field.name,
            row=row,
        )
    if has_required(field.type):
        _check_inside(column, field, name)
    return column


def _check_inside(column: pa.ChunkedArray, field: pa.Field, name: str) -> None:
    inner = [part for chunk in column.chunks for part in parts(chunk, field) if part[0] is not field]
    for part, values in inner:
        if not part.nullable and values.null_count:
            raise ConstraintViolationError(
                f"Field {part.name!r} inside column {field.name!r} of {name} is NOT NULL, but a row holds NULL there. "
                "Nothing was written.",
                column=field.name,
            )


def _castable(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        return _castable(source.value_type, target)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    if is_any_list(source) and is_any_list(target):
        return _castable(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return _castable(source.key_type, target.key_type) and _castable(source.item_type, target.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        names = [field.name for field in source]
        return names == [field.name for field in target] and all(
            _castable(a.type, b.type) for a, b in zip(source, target, strict=True)
        )
    return source == target or any(a(source) and b(target) for a, b in _ALLOWED)


def _check_floats(before: pa.ChunkedArray, after: pa.ChunkedArray, *, name: str, table: str) -> None:
    """Refuse a narrowing float cast that changed a value, at any depth: Arrow's safe cast lets it pass."""
    field = pa.field(name, before.type)
    for old, new in zip(before.chunks, after.chunks, strict=True):
        for (_, was), (_, now) in zip(parts(old, field), parts(new, field), strict=True):
            both = pa.types.is_floating(was.type) and pa.types.is_floating(now.type)
            if both and now.type.bit_width < was.type.bit_width:
                _check_same(was, now, after.type, name=name, table=table)


def _check_same(before: pa.Array, after: pa.Array, target: pa.DataType, *, name: str, table: str) -> None:
    equal = pc.call_function("equal", [after.cast(before.type), before])
    same = pc.fill_null(pc.call_function("or", [equal, pc.call_function("is_nan", [before])]), True)
    if pc.call_function("all", [same]).as_py() is False:
        first = pc.index(same, pa.scalar(False)).as_py()
        raise _lossy(name, table, target, f"{before[first].as_py()!r} has more digits")


def _lossy(name: str, table: str, target: Any, reason: str) -> LossyCastError:
    return LossyCastError(
        f"Column {name!r} of {table} is {target}; a value would change in it: {reason}. Nothing was written.",
        column=name,
    )
