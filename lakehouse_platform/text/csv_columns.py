"""CSV columns as the fast reader parses them, and the rest of the way to the types of a table.

The reader takes numbers, booleans, dates, times and texts itself. Binary (base64) and nested values (JSON) it
reads as text. What it is too generous about (`0x1F` as a number, `1e999` as infinity, too many digits for a
Decimal) is refused here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.types as pt

from lakehouse_platform.text.csv_infer import fits_guess
from lakehouse_platform.text.csv_records import Value
from lakehouse_platform.text.json_rows import json_converter
from lakehouse_platform.text.json_values import Converter, converter, shown

# From here on a float does not hold every whole number.
_EXACT_BELOW: Mapping[pa.DataType, int] = {pa.float32(): 2**24, pa.float64(): 2**53}
_HEXADECIMAL = r"^[ \t]*-?0[xX]"
_DOUBTFUL = r"^[ \t]*(?:-?0[0-9xX]|\+)"
_INTEGER = re.compile(r"[ \t]*-?[0-9]+[ \t]*")
_FLOAT = re.compile(r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*")
_FLOAT_WORD = re.compile(r"[ \t]*[+-]?(?:nan|inf|infinity)[ \t]*", re.IGNORECASE)


def _any_case(word: str) -> list[str]:
    return ["".join(letters) for letters in product(*((letter.lower(), letter.upper()) for letter in word))]


_TRUE = [*_any_case("true"), "1"]
_FALSE = [*_any_case("false"), "0"]


def parse_options(delimiter: str, columns: int) -> pa_csv.ParseOptions:
    """Return how the reader cuts records; an empty line is a row (of NULL) only if there is one column."""
    return pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=columns > 1)


def convert_options(types: Mapping[str, pa.DataType]) -> pa_csv.ConvertOptions:
    """Return how the reader converts columns; only an empty field without quotes is NULL."""
    return pa_csv.ConvertOptions(
        column_types={name: _read_as(data_type) for name, data_type in types.items()},
        include_columns=list(types),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=_TRUE,
        false_values=_FALSE,
    )


def finish(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return a column as read in its final type.

    Raises:
        ValueError: A value does not fit the type, or NULL stands in a NOT NULL column.
    """
    if column.null_count and not field.nullable:
        raise ValueError(f"column {field.name!r} is NOT NULL")
    if pt.is_decimal(field.type):
        column.validate(full=True)
        return column
    if column.type == field.type:
        return column
    if not (is_binary(field.type) or pt.is_nested(field.type)):
        return column.cast(field.type)
    convert = _from_text(field.type)
    return pa.array([value if value is None else convert(value) for value in column.to_pylist()], field.type)


def is_number(data_type: pa.DataType) -> bool:
    """Tell whether a column holds integers or floats."""
    return pt.is_integer(data_type) or pt.is_floating(data_type)


def maybe_changed(column: pa.Array) -> bool:
    """Tell whether floats are so large (or infinite) that their texts may have said something else."""
    limit = _EXACT_BELOW.get(column.type)
    return limit is not None and _any(_at_least(column, limit))


def first_bad(texts: pa.Array, field: pa.Field, *, guessed: bool) -> int | None:
    """Return the position of the first text of a number that its type does not hold, or None."""
    options = pc.MatchSubstringOptions(_DOUBTFUL if guessed else _HEXADECIMAL)
    suspect = pc.call_function("match_substring_regex", [texts], options)
    if limit := _EXACT_BELOW.get(field.type):
        trimmed = pc.call_function("utf8_trim", [texts], pc.TrimOptions(" \t"))
        suspect = pc.call_function("or_kleene", [suspect, _at_least(trimmed.cast(pa.float64()), limit)])
    positions = pc.call_function("indices_nonzero", [suspect]).to_pylist()
    return next((at for at in positions if _is_bad(texts[at].as_py(), field, guessed)), None)


def problem(value: Value, field: pa.Field, *, guessed: bool) -> str | None:
    """Return what is wrong with one field of a record, or None."""
    if value.is_null:
        return None if field.nullable else "the field is empty, but the column is NOT NULL"
    if pt.is_string(field.type) or pt.is_large_string(field.type) or pt.is_string_view(field.type):
        return None
    reason = _reason(value.text, field)
    if reason is None and guessed and not fits_guess(value.text, field.type):
        return f"{shown(value.text)} would not be the same text any more as a number"
    return reason


def is_binary(data_type: pa.DataType) -> bool:
    """Tell whether a column holds bytes, which CSV holds as base64."""
    return pt.is_binary(data_type) or pt.is_large_binary(data_type) or pt.is_binary_view(data_type)


def _at_least(numbers: pa.Array, limit: int) -> pa.Array:
    magnitude = pc.call_function("abs", [numbers])
    return pc.call_function("greater_equal", [magnitude, pa.scalar(float(limit), numbers.type)])


def _any(flags: pa.Array) -> bool:
    return bool(pc.call_function("any", [flags]).as_py())


def _is_bad(text: str, field: pa.Field, guessed: bool) -> bool:
    return problem(Value(text, quoted=False), field, guessed=guessed) is not None


def _read_as(data_type: pa.DataType) -> pa.DataType:
    plain = pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_date32, pt.is_timestamp, pt.is_decimal128
    return data_type if any(is_kind(data_type) for is_kind in plain) else pa.string()


def _reason(text: str, field: pa.Field) -> str | None:
    try:
        _from_text(field.type)(text)
    except ValueError as error:
        return str(error)
    return None


def _from_text(data_type: pa.DataType) -> Converter:
    """Return what makes a value of a field's text, or raises `ValueError`."""
    if pt.is_nested(data_type):
        return json_converter(data_type)
    convert = converter(data_type, from_text=True)
    if pt.is_integer(data_type):
        return _check_integer(convert)
    if pt.is_floating(data_type):
        return _check_float(convert)
    if pt.is_boolean(data_type):
        return _check_boolean
    # Arrow's reader trims blanks.
    return lambda text: convert(text.strip(" \t"))


def _check_integer(convert: Converter) -> Callable[[str], None]:
    def check(text: str) -> None:
        if not _INTEGER.fullmatch(text):
            raise ValueError(f"{shown(text)} is not an integer")
        convert(int(text))

    return check


def _check_float(convert: Converter) -> Callable[[str], None]:
    def check(text: str) -> None:
        if _FLOAT_WORD.fullmatch(text):
            return
        if not _FLOAT.fullmatch(text):
            raise ValueError(f"{shown(text)} is not a number")
        if math.isinf(float(text)):
            raise ValueError(f"{shown(text)} is too large")
        convert(int(text) if _INTEGER.fullmatch(text) else float(text))

    return check


def _check_boolean(text: str) -> None:
    if text not in _TRUE and text not in _FALSE:
        raise ValueError(f"{shown(text)} is not true, false, 1 or 0")
