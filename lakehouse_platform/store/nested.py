"""Nested Arrow values taken apart, and the types in which a table can hold them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

# Delta has no unsigned integers; 64 unsigned bits fit only where the values do, which the cast checks.
_SIGNED = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.int64()}


def parts(array: pa.Array, field: pa.Field) -> Iterator[tuple[pa.Field, pa.Array]]:
    """Yield a column and everything nested in it, each without what lies below a NULL."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    yield field, array
    if pa.types.is_map(kind):
        entry = pa.struct([kind.key_field, kind.item_field])
        entries = array.cast(pa.list_(pa.field("entries", entry, nullable=False))).flatten()
        yield from parts(entries.field(0), kind.key_field)
        yield from parts(entries.field(1), kind.item_field)
    elif is_any_list(kind):
        yield from parts(array.flatten(), kind.value_field)
    elif pa.types.is_struct(kind):
        present = array.drop_null()
        for number, child in enumerate(kind):
            yield from parts(present.field(number), child)


def is_any_list(kind: pa.DataType) -> bool:
    """Tell whether a type is a list of whatever layout."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def has_required(kind: pa.DataType) -> bool:
    """Tell whether something nested in a type must not be NULL."""
    if pa.types.is_map(kind):
        return has_required(kind.key_type) or not kind.item_field.nullable or has_required(kind.item_type)
    if is_any_list(kind):
        return not kind.value_field.nullable or has_required(kind.value_type)
    if pa.types.is_struct(kind):
        return any(not field.nullable or has_required(field.type) for field in kind)
    return False


def storable_type(kind: pa.DataType) -> pa.DataType:
    """Return the nearest type that a table can hold, if there is one; whether each value fits, a cast tells."""
    if pa.types.is_dictionary(kind):
        return storable_type(kind.value_type)
    if pa.types.is_unsigned_integer(kind):
        return _SIGNED[kind.bit_width]
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(kind.precision, 38), kind.scale)
    if pa.types.is_map(kind):
        return pa.map_(storable_type(kind.key_type), storable_type(kind.item_type))
    if is_any_list(kind):
        return pa.list_(storable_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, storable_type(field.type)) for field in kind])
    return _PLAIN.get(kind, pa.binary() if pa.types.is_fixed_size_binary(kind) else kind)


_PLAIN = {
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
