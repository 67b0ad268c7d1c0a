"""Types of foreign Parquet files as types of a table: without loss, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

_AS: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
}
_KEPT = frozenset(
    {
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.bool_(),
        pa.date32(),
        pa.binary(),
    }
)
_MAX_PRECISION = 38  # of Delta's decimal


def table_type(data_type: pa.DataType) -> pa.DataType | None:
    """Return the type in which a table holds all values of a type, or None.

    Times finer than a microsecond are refused later, value by value; unsigned 64-bit integers do not fit any
    type.
    """
    if data_type in _KEPT:
        return data_type
    if simple := _AS.get(data_type):
        return simple
    for matches, convert in _FAMILIES:
        if matches(data_type):
            return convert(data_type)
    return None


def widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether values may be cast from one type to another; one that does not fit is an error then."""
    if found.equals(wanted):
        return True
    if pt.is_integer(found):
        return pt.is_integer(wanted) or pt.is_float64(wanted) or pt.is_decimal128(wanted)
    if pt.is_float32(found):
        return pt.is_float64(wanted)
    return pt.is_decimal128(found) and pt.is_decimal128(wanted)


def _timestamp(data_type: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC" if data_type.tz else None)


def _decimal(data_type: pa.DataType) -> pa.DataType | None:
    fits = data_type.precision <= _MAX_PRECISION and 0 <= data_type.scale <= data_type.precision
    return pa.decimal128(data_type.precision, data_type.scale) if fits else None


def _list(data_type: pa.DataType) -> pa.DataType | None:
    inner = _field(data_type.value_field)
    return inner and pa.list_(inner)


def _struct(data_type: pa.DataType) -> pa.DataType | None:
    fields = [_field(field) for field in data_type]
    return pa.struct(fields) if fields and all(fields) else None


def _map(data_type: pa.DataType) -> pa.DataType | None:
    key, item = _field(data_type.key_field), _field(data_type.item_field)
    return pa.map_(key, item) if key and item else None


def _field(field: pa.Field) -> pa.Field | None:
    data_type = table_type(field.type)
    return data_type and pa.field(field.name, data_type, field.nullable)


_FAMILIES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType | None]], ...] = (
    (pt.is_timestamp, _timestamp),
    (pt.is_decimal, _decimal),
    (pt.is_fixed_size_binary, lambda _: pa.binary()),
    (pt.is_dictionary, lambda data_type: table_type(data_type.value_type)),
    (pt.is_map, _map),
    (pt.is_list, _list),
    (pt.is_large_list, _list),
    (pt.is_fixed_size_list, _list),
    (pt.is_struct, _struct),
)
