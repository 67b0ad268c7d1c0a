"""Values and names as SQL text that every door of the engine reads alike; the only place where values become SQL.

The doors are `DeltaTable.delete`, `update`, `merge`, `scan`, `write_deltalake(predicate=)` and `QueryBuilder`.
Measured on deltalake 1.6.6: delete, update and merge compare a timestamp column only with a plain text or an
`arrow_cast`; scan and QueryBuilder turn the plain text into nanoseconds and fail outside the years 1677 to 2262.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.model.schema import type_text

# Plain texts are read as nanoseconds since 1970 in 64 bits.
_NANOSECOND_YEARS = range(1678, 2262)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.IGNORECASE,
)
_MAX_DECIMAL_DIGITS = 38
_SQL_TYPES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}
_ARROW_NAMES = {
    pa.timestamp("us"): "Timestamp(Microsecond, None)",
    pa.timestamp("us", "UTC"): 'Timestamp(Microsecond, Some("UTC"))',
    pa.binary(): "Binary",
}


def quote_identifier(name: str) -> str:
    """Return a column or table name as SQL, whatever its letters."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text value as SQL."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: Any, data_type: pa.DataType) -> str:
    """Return a Python value as the SQL that stands for it beside a column of the type.

    Args:
        value: None, or a value of the type as pyarrow's `as_py` gives it.
        data_type: The column's type; not nested.

    Raises:
        InvalidPredicateError: The value is not of the type, or the type is nested.
    """
    if value is None:
        return "NULL"
    if pa.types.is_timestamp(data_type) and value.year in _NANOSECOND_YEARS:
        return quote_text(_timestamp_text(value, data_type))
    return typed_literal(value, data_type)


def typed_literal(value: Any, data_type: pa.DataType) -> str:
    """Return a value as SQL that has the type by itself, for places where no column stands beside it.

    Raises:
        InvalidPredicateError: The value is not of the type, or the type is nested.
    """
    try:
        return _typed_literal(value, data_type)
    except (TypeError, ValueError, AttributeError, InvalidOperation) as error:
        raise InvalidPredicateError(
            f"{value!r} is not a value of type {type_text(data_type)}; pass a Python value of that type.",
            type=type_text(data_type),
        ) from error


def sql_cast(text: str, data_type: pa.DataType) -> str:
    """Return the SQL that casts a piece of SQL to the type; the engine raises when a value does not fit."""
    if name := _ARROW_NAMES.get(data_type):
        return f"arrow_cast({text}, {quote_text(name)})"
    if pa.types.is_decimal128(data_type):
        return f"CAST({text} AS DECIMAL({data_type.precision},{data_type.scale}))"
    return f"CAST({text} AS {_SQL_TYPES[data_type]})"


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type without Arrow's storage variants: string for large_string and string_view, and so on."""
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us", "UTC" if data_type.tz else None)
    return data_type


def parse_text(text: str, data_type: pa.DataType) -> Any:
    """Return the date, timestamp or decimal that a text in a predicate stands for.

    Raises:
        ValueError: The text is not such a value; the message says what is expected.
    """
    if pa.types.is_date(data_type):
        return _parse_date(text)
    if pa.types.is_timestamp(data_type):
        return _parse_timestamp(text, with_zone=data_type.tz is not None)
    return _parse_decimal(text)


def to_float32(value: float) -> float:
    """Return the nearest value that a Float32 column can hold."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _typed_literal(value: Any, data_type: pa.DataType) -> str:
    if pa.types.is_boolean(data_type):
        return "TRUE" if value else "FALSE"
    if pa.types.is_integer(data_type):
        return _signed(str(int(value)))
    if pa.types.is_floating(data_type):
        return _float(float(value), data_type)
    if pa.types.is_decimal(data_type):
        return sql_cast(quote_text(f"{Decimal(value):f}"), data_type)
    if pa.types.is_date(data_type):
        return f"DATE {quote_text(value.isoformat())}"
    if pa.types.is_timestamp(data_type):
        return sql_cast(quote_text(_timestamp_text(value, data_type)), plain_type(data_type))
    if plain_type(data_type) == pa.binary() and not isinstance(value, int):
        return f"X{quote_text(bytes(value).hex())}"
    if plain_type(data_type) == pa.string() and isinstance(value, str):
        return quote_text(value)
    raise TypeError(data_type)


def _float(value: float, data_type: pa.DataType) -> str:
    text = repr(value)
    if data_type == pa.float64() and math.isfinite(value) and "e" not in text:
        return _signed(text)
    return sql_cast(quote_text(text), data_type)


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _timestamp_text(value: datetime, data_type: pa.DataType) -> str:
    if data_type.tz is None:
        return value.replace(tzinfo=None).isoformat(timespec="microseconds")
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _parse_date(text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError("a date is written like '2026-01-31'")
    return date.fromisoformat(text)


def _parse_timestamp(text: str, *, with_zone: bool) -> datetime:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError("a timestamp is written like '2026-01-31T12:00:00Z'")
    day, clock, fraction, zone = match.groups()
    if zone and not with_zone:
        raise ValueError("the column has no time zone: write the timestamp without one")
    if fraction and fraction[6:].strip("0"):
        raise ValueError("timestamps have microseconds: write at most six digits after the point")
    offset = (zone or "Z").upper().replace("Z", "+00:00")
    moment = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}{offset}")
    moment += timedelta(microseconds=int((fraction or "0")[:6].ljust(6, "0")))
    return moment.astimezone(UTC) if with_zone else moment.replace(tzinfo=None)


def _parse_decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or abs(value.adjusted()) > _MAX_DECIMAL_DIGITS:
        raise ValueError("a decimal number is written like '12.50'")
    return value
