"""Arrow rows as JSON: exact, deterministic, and read back by `json_rows` as the same values.

Numbers are JSON numbers: integers with all digits, floats in their shortest form. Decimals, dates and times
are texts; times are RFC 3339 in UTC with no more digits than needed. Binary is base64; NaN and infinities are
texts. A map with text keys is an object, any other map a list of `[key, value]` pairs.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def table_to_json(data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> str:
    """Return rows as one JSON array, one row per line."""
    lines = [_ENCODER.encode(row) for batch in _batches(data) for row in row_objects(batch)]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def json_lines(batch: pa.RecordBatch) -> bytes:
    """Return rows as JSON Lines, each line ended by LF."""
    return "".join([_ENCODER.encode(row) + "\n" for row in row_objects(batch)]).encode()


def row_objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as objects of JSON-safe values."""
    names = batch.schema.names
    columns = [json_values(column) for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def json_values(array: pa.Array) -> list[Any]:
    """Return a column's values as JSON-safe values."""
    data_type = array.type
    for matches, convert in _CONVERTERS:
        if matches(data_type):
            return convert(array)
    return array.to_pylist()


def time_texts(array: pa.Array) -> pa.Array:
    """Return times as texts like `2026-02-01T12:00:00Z`, with 0, 3 or 6 decimals, `Z` for a zone."""
    in_utc = array.cast(pa.timestamp("us", "UTC" if array.type.tz else None))
    text = _replace("replace_substring", in_utc.cast(pa.string()), " ", "T")
    text = _replace("replace_substring_regex", text, r"(\.\d{3})000(Z?)$", r"\1\2")
    return _replace("replace_substring_regex", text, r"\.000(Z?)$", r"\1")


def _replace(function: str, text: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return pc.call_function(function, [text], pc.ReplaceSubstringOptions(pattern, replacement))


def _batches(data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    if isinstance(data, pa.Table):
        return cast(pa.Table, data).to_batches()
    if isinstance(data, pa.RecordBatch):
        return [data]
    return cast(Iterable[pa.RecordBatch], data)


def _floats(array: pa.Array) -> list[Any]:
    # The text of a 32-bit float is its shortest; as a Python float it would show digits it does not have.
    exact = array if pt.is_float64(array.type) else array.cast(pa.string()).cast(pa.float64())
    values = exact.to_pylist()
    if pc.call_function("all", [pc.call_function("is_finite", [exact])]).as_py() is not False:
        return values
    return [value if value is None or math.isfinite(value) else _word(value) for value in values]


def _word(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _decimals(array: pa.Array) -> list[Any]:
    return [value if value is None else format(value, "f") for value in array.to_pylist()]


def _texts(array: pa.Array) -> list[Any]:
    return array.cast(pa.string()).to_pylist()


def _times(array: pa.Array) -> list[Any]:
    return time_texts(array).to_pylist()


def _base64(array: pa.Array) -> list[Any]:
    return [value if value is None else base64.b64encode(value).decode() for value in array.to_pylist()]


def _lists(array: pa.Array) -> list[Any]:
    items = iter(json_values(array.flatten()))
    lengths = array.value_lengths().to_pylist()
    return [None if length is None else list(islice(items, length)) for length in lengths]


def _structs(array: pa.Array) -> list[Any]:
    names = [field.name for field in array.type]
    columns = [json_values(child) for child in array.flatten()]
    rows = zip(*columns, strict=True)
    present = array.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if here else None for here, row in zip(present, rows, strict=True)
    ]


def _maps(array: pa.Array) -> list[Any]:
    entry = pa.struct([array.type.key_field.with_name("key"), array.type.item_field.with_name("value")])
    entries = _lists(array.cast(pa.list_(pa.field("entries", entry, nullable=False))))
    pairs = [row if row is None else [[pair["key"], pair["value"]] for pair in row] for row in entries]
    if not pt.is_string(array.type.key_type):
        return pairs
    return [row if row is None else dict(row) for row in pairs]


_CONVERTERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Any]]], ...] = (
    (pt.is_floating, _floats),
    (pt.is_decimal, _decimals),
    (pt.is_date, _texts),
    (pt.is_timestamp, _times),
    (pt.is_binary, _base64),
    (pt.is_large_binary, _base64),
    (pt.is_binary_view, _base64),
    (pt.is_map, _maps),
    (pt.is_list, _lists),
    (pt.is_large_list, _lists),
    (pt.is_struct, _structs),
)
