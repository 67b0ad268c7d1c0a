"""Rows as JSON text or Python values into an Arrow table: every value exactly, or an error that names it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import NoneType
from typing import Any, NoReturn, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakehouse_platform.errors import InvalidRowsError
from lakehouse_platform.text.json_values import Converter, closest, converter, shown

Row = Mapping[str, Any]
_SPACE = " \t\r\n"
# Python types that Arrow takes for a type exactly as they are, or refuses; all others go value by value.
_PLAIN: Mapping[pa.DataType, frozenset[type]] = {
    pa.int8(): frozenset({int}),
    pa.int16(): frozenset({int}),
    pa.int32(): frozenset({int}),
    pa.int64(): frozenset({int}),
    pa.float64(): frozenset({int, float}),
    pa.string(): frozenset({str}),
    pa.bool_(): frozenset({bool}),
}


def rows_from_json(text: str | bytes, schema: pa.Schema, *, allow_missing: bool = True) -> pa.Table:
    """Return the rows of a JSON array of objects, of one object, or of JSON Lines as a table.

    Integers keep all digits and decimals are never rounded. Dates and times are ISO texts, with a zone
    exactly if the column has one; binary is base64; the floats that JSON has no number for are "NaN",
    "Infinity" and "-Infinity".

    Args:
        text: The JSON text, UTF-8 if bytes; an empty text has no rows.
        schema: The columns of the result.
        allow_missing: A nullable column that a row leaves out is NULL; if False it is an error.

    Raises:
        InvalidRowsError: The text is not such JSON, or a row does not fit; row and column are named.
    """
    return rows_from_objects(objects_from_json(text, schema), schema, allow_missing=allow_missing)


def objects_from_json(text: str | bytes, schema: pa.Schema) -> list[Row]:
    """Return the objects of a JSON text before their values are converted; see `rows_from_json`.

    Raises:
        InvalidRowsError: The text is not such JSON.
    """
    objects = _parse(_decoded(text), exact=any(_holds_decimal(field.type) for field in schema))
    _check_objects(objects)
    return objects


def rows_from_objects(objects: Sequence[Row], schema: pa.Schema, *, allow_missing: bool = True) -> pa.Table:
    """Return parsed JSON objects as a table; see `rows_from_json`."""
    return _table(objects, schema, allow_missing, from_text=True)


def rows_from_values(rows: Iterable[Row], schema: pa.Schema, *, allow_missing: bool = True) -> pa.Table:
    """Return rows of Python values as a table, by the same rules as `rows_from_json`.

    Dates, aware or naive datetimes, `Decimal` and bytes are taken as well as their texts.

    Raises:
        InvalidRowsError: A row does not fit the schema; row and column are named.
    """
    return _table(list(rows), schema, allow_missing, from_text=False)


def json_converter(data_type: pa.DataType) -> Converter:
    """Return what makes a value of a type of one JSON text, or raises `ValueError` with the reason."""
    decoder = _decoder(exact=_holds_decimal(data_type))
    convert = converter(data_type, from_text=True)

    def convert_json(text: str) -> Any:
        try:
            value = decoder.decode(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{shown(text)} is not JSON: {error}") from error
        return convert(value)

    return convert_json


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRowsError(
            f"The JSON is not UTF-8: byte {error.start + 1} is wrong. Save it as UTF-8.", byte=error.start + 1
        ) from error


def _parse(text: str, *, exact: bool) -> list[Any]:
    decoder = _decoder(exact=exact)
    rows: list[Any] = []
    try:
        position = _skip_space(text, 0)
        if text.startswith("[", position):
            return _array(decoder.decode(text))
        while position < len(text):
            row, end = decoder.raw_decode(text, position)
            rows.append(row)
            position = _skip_space(text, end)
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg} at line {error.lineno}, column {error.colno}", len(rows)) from error
    except (ValueError, RecursionError) as error:
        raise _not_json(str(error), len(rows)) from error
    return rows


def _decoder(*, exact: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=Decimal if exact else None
    )


def _array(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected an array of objects")
    return cast(list[Any], value)


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"field {next(n for n in names if names.count(n) > 1)!r} stands twice in one object")
    return row


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f'{word} is not JSON: write it in quotes, as "{word}"')


def _not_json(reason: str, rows_before: int) -> InvalidRowsError:
    where = f" after row {rows_before}" if rows_before else ""
    return InvalidRowsError(
        f"The text is not JSON{where}: {reason}. Give an array of objects, one object, or one per line.",
        reason=reason,
    )


def _table(rows: Sequence[Any], schema: pa.Schema, allow_missing: bool, *, from_text: bool) -> pa.Table:
    _check_objects(rows)
    _check_names(rows, schema.names)
    columns = [_column(rows, field, allow_missing, from_text=from_text) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _check_objects(rows: Sequence[Any]) -> None:
    if all(kind is dict for kind in set(map(type, rows))):
        return
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InvalidRowsError(
                f"Row {number} is not an object with one field per column, but {type(row).__name__}.",
                row=number,
            )


def _check_names(rows: Sequence[Row], names: Sequence[str]) -> None:
    known = set(names)
    if set[str]().union(*rows) <= known:
        return
    for number, row in enumerate(rows, 1):
        for name in row:
            if name not in known:
                raise InvalidRowsError(
                    f"Row {number} has field {name!r}, which is no column: {closest(str(name), names)}.",
                    row=number,
                    column=name,
                )


def _column(rows: Sequence[Row], field: pa.Field, allow_missing: bool, *, from_text: bool) -> pa.Array:
    name = field.name
    values = [row.get(name) for row in rows]
    kinds = set(map(type, values))
    if NoneType in kinds and not (field.nullable and allow_missing):
        _check_present(rows, field)
    plain = _PLAIN.get(field.type)
    if plain is not None and kinds - {NoneType} <= plain:
        array = _plain_array(values, field.type)
        if array is not None and not (from_text and _has_infinity(array)):
            return array
    return _converted(values, field, from_text)


def _check_present(rows: Sequence[Row], field: pa.Field) -> None:
    for number, row in enumerate(rows, 1):
        missing = field.name not in row
        if missing or (not field.nullable and row[field.name] is None):
            raise _bad(
                number,
                field,
                "is missing; give it a value" if missing else "is NOT NULL, but the value is null",
            )


def _plain_array(values: list[Any], data_type: pa.DataType) -> pa.Array | None:
    """Return the array, or None where a single value is at fault and must be looked for."""
    try:
        return pa.array(values, data_type)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return None


def _has_infinity(array: pa.Array) -> bool:
    return pt.is_floating(array.type) and bool(
        pc.call_function("any", [pc.call_function("is_inf", [array])]).as_py()
    )


def _converted(values: Sequence[Any], field: pa.Field, from_text: bool) -> pa.Array:
    converted: list[Any] = []
    try:
        convert = converter(field.type, from_text=from_text)
        # Extended one by one: after an error, the length tells the row.
        converted.extend(None if value is None else convert(value) for value in values)
    except ValueError as error:
        raise _bad(len(converted) + 1, field, f"({field.type}): {error}") from error
    return pa.array(converted, field.type)


def _bad(number: int, field: pa.Field, reason: str) -> InvalidRowsError:
    return InvalidRowsError(
        f"Row {number}, column {field.name!r} {reason}.", row=number, column=field.name, type=str(field.type)
    )


def _holds_decimal(data_type: pa.DataType) -> bool:
    if pt.is_decimal(data_type):
        return True
    return any(_holds_decimal(data_type.field(index).type) for index in range(data_type.num_fields))
