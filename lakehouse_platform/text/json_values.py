"""One JSON or Python value into what Arrow takes for a column's type, without losing anything.

A converter returns the value or raises `ValueError` with the reason; the caller knows the row and the column.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import difflib
import math
import re
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as pt

_SHOWN = 60  # characters of a refused value that a message repeats
Converter = Callable[[Any], Any]

_INT_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_MAX_EXACT = {pa.float32(): 2**24, pa.float64(): 2**53}
_FLOAT_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def converter(data_type: pa.DataType, *, from_text: bool) -> Converter:
    """Return the converter of non-NULL values of a type.

    Args:
        data_type: The column's Arrow type.
        from_text: The values come from JSON text, where a float can be infinite only by overflow.

    Raises:
        ValueError: No JSON form exists for the type.
    """
    if bits := _INT_BITS.get(data_type):
        return _integer(bits)
    if data_type in _MAX_EXACT:
        return _floating(data_type, from_text)
    if pt.is_decimal128(data_type):
        return _decimal(data_type.precision, data_type.scale)
    if pt.is_timestamp(data_type) and data_type.unit == "us":
        return _aware_timestamp if data_type.tz else _naive_timestamp
    if nested := _nested(data_type, from_text):
        return nested
    for matches, convert in _SIMPLE:
        if matches(data_type):
            return convert
    raise ValueError(f"type {data_type} has no JSON form: cast the column first")


def shown(value: object) -> str:
    """Return a value as a message may repeat it: cut short."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def closest(name: str, names: Collection[str]) -> str:
    """Return a sentence that suggests the nearest of `names`, or lists them."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(map(repr, names))}"


def _integer(bits: int) -> Converter:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ValueError(f"{shown(value)} is not an integer")
        if not low <= (number := int(value)) <= high:
            raise ValueError(f"{shown(number)} is outside of Int{bits} ({low} to {high})")
        return number

    return convert


def _floating(data_type: pa.DataType, from_text: bool) -> Converter:
    narrow = data_type == pa.float32()

    def convert(value: Any) -> float:
        if isinstance(value, str) and value in _FLOAT_WORDS:
            return _FLOAT_WORDS[value]
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
            raise ValueError(f'{shown(value)} is not a number; the words are "NaN", "Infinity", "-Infinity"')
        number = _to_float(value)
        if from_text and math.isinf(number):
            raise ValueError(f"{shown(value)} is outside of the type's range")
        stored = _round_to_float32(number) if narrow else number
        if isinstance(value, Integral) and stored != int(value):
            raise ValueError(f"{shown(value)} is not exactly representable in the type")
        return stored

    return convert


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{shown(value)} is outside of the type's range") from error


def _round_to_float32(number: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError as error:
        raise ValueError(f"{number!r} is outside of Float32") from error


def _decimal(precision: int, scale: int) -> Converter:
    # Inexact: digits would be cut off; InvalidOperation: more digits than the precision, or not a number.
    context = decimal.Context(prec=precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    step = Decimal(1).scaleb(-scale)

    def convert(value: Any) -> Decimal:
        try:
            return _exact(value).quantize(step, context=context)
        except decimal.Inexact as error:
            raise ValueError(f"{shown(value)} has more than {scale} decimals") from error
        except decimal.InvalidOperation as error:
            raise ValueError(f"{shown(value)} is no number that fits Decimal({precision},{scale})") from error

    return convert


def _exact(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        exact = value
    elif isinstance(value, Integral) and value is not True and value is not False:
        exact = Decimal(int(value))
    elif isinstance(value, str):
        exact = Decimal(value)
    else:
        raise ValueError(f"{shown(value)} is not an exact decimal: give it as text")
    if not exact.is_finite():
        raise ValueError(f"{shown(value)} is not finite")
    return exact


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{shown(value)} holds half of a surrogate pair, which UTF-8 cannot hold") from error
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)} is not true or false")
    return value


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not (isinstance(value, str) and _DATE.fullmatch(value)):
        raise ValueError(f"{shown(value)} is not a date like 2026-02-01")
    return date.fromisoformat(value)


def _aware_timestamp(value: Any) -> int:
    instant = value if isinstance(value, datetime) else _parse_time(value, "2026-02-01T12:00:00Z")
    if instant.utcoffset() is None:
        raise ValueError(f"{shown(value)} has no zone: write it like 2026-02-01T12:00:00Z")
    return _micros(value, instant)


def _naive_timestamp(value: Any) -> int:
    instant = value if isinstance(value, datetime) else _parse_time(value, "2026-02-01T12:00:00")
    if instant.utcoffset() is not None:
        raise ValueError(f"{shown(value)} has a zone, but the column holds times without one")
    return _micros(value, instant.replace(tzinfo=UTC))


def _micros(value: Any, instant: datetime) -> int:
    if getattr(value, "nanosecond", 0):  # pandas.Timestamp is a datetime with nanoseconds
        raise ValueError(f"{shown(value)} is finer than a microsecond")
    return (instant - _EPOCH) // _MICROSECOND


def _parse_time(value: Any, example: str) -> datetime:
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{shown(value)} is not a time like {example}")
    day, clock, fraction, zone = match.groups()
    if fraction and fraction[6:].strip("0"):
        raise ValueError(f"{shown(value)} is finer than a microsecond")
    digits = f".{fraction[:6].ljust(6, '0')}" if fraction else ""
    seconds = clock if len(clock) > len("00:00") else f"{clock}:00"
    return datetime.fromisoformat(f"{day}T{seconds}{digits}{(zone or '').upper()}")


def _binary(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(cast(bytes, value))
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{shown(value)} is not base64 text") from error


def _null(value: Any) -> None:
    raise ValueError(f"{shown(value)} is not null, and the column holds nothing else")


def _nested(data_type: pa.DataType, from_text: bool) -> Converter | None:
    if pt.is_list(data_type) or pt.is_large_list(data_type):
        return _list(_nullable(data_type.value_field, from_text))
    if pt.is_struct(data_type):
        return _struct({field.name: _nullable(field, from_text) for field in data_type})
    if pt.is_map(data_type):
        key = _nullable(data_type.key_field, from_text)
        return _map(key, _nullable(data_type.item_field, from_text), data_type.key_type)
    return None


def _nullable(field: pa.Field, from_text: bool) -> Converter:
    convert = converter(field.type, from_text=from_text)

    def convert_or_null(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if not field.nullable:
            raise ValueError("null is not allowed here")
        return None

    return convert_or_null


def _list(item: Converter) -> Converter:
    def convert(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{shown(value)} is not a list")
        items = cast(Sequence[Any], value)
        return [_within(f"item {position}", item, one) for position, one in enumerate(items, 1)]

    return convert


def _struct(fields: Mapping[str, Converter]) -> Converter:
    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(f"{shown(value)} is not an object")
        row = cast(Mapping[str, Any], value)
        for name in row:
            if name not in fields:
                raise ValueError(f"field {name!r} is unknown; {closest(str(name), fields)}")
        return {name: _within(f"field {name!r}", field, row.get(name)) for name, field in fields.items()}

    return convert


def _map(key: Converter, item: Converter, key_type: pa.DataType) -> Converter:
    by_name = pt.is_string(key_type) or pt.is_large_string(key_type)

    def convert(value: Any) -> list[tuple[Any, Any]]:
        pairs = [
            (_within("key", key, k), _within(f"value of {shown(k)}", item, v))
            for k, v in _pairs(value, by_name)
        ]
        seen = [k for k, _ in pairs]
        if repeated := next((k for position, k in enumerate(seen) if k in seen[:position]), None):
            raise ValueError(f"key {shown(repeated)} is repeated")
        return pairs

    return convert


def _pairs(value: Any, by_name: bool) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(cast(Mapping[Any, Any], value).items())
    pairs = cast(Sequence[Any], value)
    if isinstance(value, (list, tuple)) and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
        return [(pair[0], pair[1]) for pair in pairs]
    wanted = "an object or a list of [key, value] pairs" if by_name else "a list of [key, value] pairs"
    raise ValueError(f"{shown(value)} is not {wanted}")


def _within(where: str, convert: Converter, value: Any) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], Converter], ...] = (
    (pt.is_string, _string),
    (pt.is_large_string, _string),
    (pt.is_string_view, _string),
    (pt.is_boolean, _boolean),
    (pt.is_date32, _date),
    (pt.is_binary, _binary),
    (pt.is_large_binary, _binary),
    (pt.is_binary_view, _binary),
    (pt.is_null, _null),
)
