"""Arrow rows as JSON: exact, deterministic, and read back by `json_rows` as the same values.

Numbers are JSON numbers: integers with all digits, floats in their shortest form. Decimals, dates and times
are texts; times are RFC 3339 in UTC with no more digits than needed. Binary is base64; NaN and infinities are
texts. A map with text keys is an object, any other map a list of `[key, value]` pairs. What only queries compute is
text as in `computed`, and not read back. An object holds one value for each name, so columns and fields of one name
are refused (`distinct`).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakehouse_platform.text.computed import computed_texts, is_computed, needs_plain_layout, plain_values
from lakehouse_platform.text.distinct import require_distinct, require_distinct_fields, require_distinct_names

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

# What JSON escapes (RFC 8259 §7), as `_ENCODER` writes it.
_SPECIAL = r'[\x00-\x1f"\\]'
_ESCAPES = {letter: _ENCODER.encode(letter)[1:-1] for letter in [*map(chr, range(0x20)), '"', "\\"]}
# Within these limits the shortest text of a float is the same in Polars and Python: no exponent, all digits exact.
_PLAIN_FLOATS = {pa.float64(): (1e-4, 1e16), pa.float32(): (1e-4, 1e7)}
_FIRST_YEAR, _LAST_YEAR = 1, 9999  # others have signs or fewer digits


def table_to_json(data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> str:
    """Return rows as one JSON array, one row per line.

    Raises:
        InvalidSqlError: Columns have one name.
    """
    if isinstance(data, pa.Table):
        require_distinct(cast("pa.Table", data).schema)
    members = b"".join([json_members(batch) for batch in _batches(data)]).decode()
    return f"[{members[1:]}\n]\n" if members else "[]\n"


def json_lines(batch: pa.RecordBatch) -> bytes:
    """Return rows as JSON Lines, each line ended by LF."""
    return _objects(batch, "", "\n")


def json_members(batch: pa.RecordBatch) -> bytes:
    """Return rows as members of a JSON array, a comma and LF before each."""
    return _objects(batch, ",\n", "")


def row_objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as objects of JSON-safe values."""
    names = batch.schema.names
    require_distinct_names(names)
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
    """Return times as texts like `2026-02-01T12:00:00Z`, with 0, 3, 6 or 9 decimals, `Z` for a zone."""
    in_utc = microseconds(array)
    if in_utc is None:
        in_utc = array.cast(pa.timestamp(array.type.unit, "UTC" if array.type.tz else None))
    text = _replace("replace_substring_regex", in_utc.cast(pa.string()), r"^(-?\d+-\d\d-\d\d) ", r"\1T")
    text = _replace("replace_substring_regex", text, r"(\.(?:\d{3})+?)(?:000)+(Z?)$", r"\1\2")
    return _replace("replace_substring_regex", text, r"\.000(Z?)$", r"\1")


def microseconds(times: pa.Array) -> pa.Array | None:
    """Return times in microseconds, as tables hold them; None if that cannot be, as for some that queries compute."""
    try:
        return times.cast(pa.timestamp("us", "UTC" if times.type.tz else None))
    except pa.ArrowInvalid:
        return None


def _objects(batch: pa.RecordBatch, before: str, after: str) -> bytes:
    """Return one object per row, each between two texts; column by column, 20 times as fast as row by row."""
    names = batch.schema.names
    require_distinct_names(names)
    if not names:
        return "".join([before + _ENCODER.encode(row) + after for row in row_objects(batch)]).encode()
    keys = [_ENCODER.encode(name) + ":" for name in names]
    parts: list[pl.Expr] = []
    for number, key in enumerate(keys):
        parts += [pl.lit(("," if number else before + "{") + key), pl.col(str(number))]
    columns = {str(number): _member_texts(column) for number, column in enumerate(batch.columns)}
    whole = pl.DataFrame(columns).select(pl.concat_str([*parts, pl.lit("}" + after)]).alias("row"))
    return _contiguous(whole.get_column("row").to_arrow(compat_level=pl.CompatLevel.oldest()))


def _contiguous(texts: pa.Array) -> bytes:
    """Return all texts joined: in Arrow's layout they already stand behind each other."""
    first, last = (texts.offset, texts.offset + len(texts)) if len(texts) else (0, 0)
    _, offsets, data = texts.buffers()
    if data is None or first == last:
        return b""
    ends = memoryview(offsets).cast("q")
    return bytes(memoryview(data)[ends[first] : ends[last]])


def _member_texts(column: pa.Array) -> pl.Series:
    """Return a column's values as JSON texts."""
    for matches, convert in _FAST:
        if matches(column.type) and (texts := convert(column)) is not None:
            return texts.fill_null("null")
    return pl.Series([_ENCODER.encode(value) for value in json_values(column)], dtype=pl.String)


def _series(column: pa.Array) -> pl.Series:
    return cast(pl.Series, pl.from_arrow(column))


def _plain(column: pa.Array) -> pl.Series:
    return _series(column).cast(pl.String)


def _quoted(texts: pl.Series) -> pl.Series:
    return texts.to_frame("v").select('"' + pl.col("v") + '"').to_series()


def _quoted_plain(column: pa.Array) -> pl.Series:
    return _quoted(_plain(column))


def _escaped(column: pa.Array) -> pl.Series:
    texts = _series(column)
    if texts.str.contains(_SPECIAL).any():
        texts = texts.to_frame("v").select(pl.col("v").str.replace_many(_ESCAPES)).to_series()
    return _quoted(texts)


def _time_members(column: pa.Array) -> pl.Series | None:
    in_utc = microseconds(column)
    if in_utc is None:
        return None
    times = _series(in_utc)
    years = times.dt.year()
    if not years.is_between(_FIRST_YEAR, _LAST_YEAR).all():
        return None
    return _quoted(times.dt.to_string("%Y-%m-%dT%H:%M:%S%.f" + ("Z" if column.type.tz else "")))


def _float_members(column: pa.Array) -> pl.Series:
    numbers = _series(column)
    low, high = _PLAIN_FLOATS[column.type]
    magnitude = numbers.abs()
    plain = (magnitude.is_between(low, high, closed="left") & numbers.is_not_nan()) | (magnitude == 0)
    others = (~plain).fill_null(False).arg_true()
    texts = numbers.cast(pl.String)
    if others.len():
        values = json_values(column.take(others.to_arrow()))
        texts = texts.scatter(others, [_ENCODER.encode(value) for value in values])
    return texts


def _base64_members(column: pa.Array) -> pl.Series:
    return _quoted(_series(column).bin.encode("base64"))


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
    require_distinct_fields(array.type)
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
    (pt.is_fixed_size_binary, _base64),
    (is_computed, computed_texts),
    (needs_plain_layout, lambda array: json_values(plain_values(array))),
    (pt.is_map, _maps),
    (pt.is_list, _lists),
    (pt.is_large_list, _lists),
    (pt.is_struct, _structs),
)

_FAST: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pl.Series | None]], ...] = (
    (pt.is_integer, _plain),
    (pt.is_boolean, _plain),
    (lambda kind: kind in _PLAIN_FLOATS, _float_members),
    (pt.is_decimal128, _quoted_plain),
    (pt.is_date32, _quoted_plain),
    (pt.is_string, _escaped),
    (pt.is_large_string, _escaped),
    (pt.is_string_view, _escaped),
    (pt.is_timestamp, _time_members),
    (pt.is_binary, _base64_members),
)
