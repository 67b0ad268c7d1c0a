"""Values of the types that queries compute and no table holds, as texts: lengths of time, and times of the day.

Lengths of time are ISO 8601 durations, each part with its own sign: `P1M-2DT3H4.5S`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_SECOND = 10**9  # nanoseconds
_NANOSECONDS = {"s": _SECOND, "ms": 10**6, "us": 10**3, "ns": 1}


def is_computed(data_type: pa.DataType) -> bool:
    """Tell whether a type is one that `computed_texts` takes."""
    return pt.is_time(data_type) or pt.is_duration(data_type) or pt.is_interval(data_type)


def computed_texts(array: pa.Array) -> list[str | None]:
    """Return a column's values as texts; NULL stays NULL."""
    if pt.is_duration(array.type):
        unit = _NANOSECONDS[array.type.unit]
        lengths = array.cast(pa.int64()).to_pylist()
        return [None if length is None else _iso(0, 0, length * unit, split_days=True) for length in lengths]
    if pt.is_interval(array.type):
        return [None if value is None else _iso(*value) for value in array.to_pylist()]
    return array.cast(pa.string()).to_pylist()


def plain_values(array: pa.Array) -> pa.Array:
    """Return a column in the plain layout of its type: lists as lists, and what is encoded or dressed up bare."""
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pt.is_dictionary(array.type):
        return array.dictionary_decode()
    if pt.is_run_end_encoded(array.type):
        return pc.call_function("run_end_decode", [array])
    return array.cast(pa.list_(array.type.value_field))


def needs_plain_layout(data_type: pa.DataType) -> bool:
    """Tell whether a type is one that `plain_values` takes."""
    return (
        isinstance(data_type, pa.BaseExtensionType)
        or pt.is_dictionary(data_type)
        or pt.is_run_end_encoded(data_type)
        or pt.is_fixed_size_list(data_type)
        or pt.is_list_view(data_type)
        or pt.is_large_list_view(data_type)
    )


def _iso(months: int, days: int, nanoseconds: int, *, split_days: bool = False) -> str:
    sign = "-" if nanoseconds < 0 else ""
    seconds, fraction = divmod(abs(nanoseconds), _SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    date = "".join(f"{number}{letter}" for number, letter in ((months, "M"), (days, "D")) if number)
    if split_days and hours >= 24:
        date = f"{sign}{hours // 24}D"
        hours %= 24
    time = "".join(_part(sign, number, letter) for number, letter in ((hours, "H"), (minutes, "M")))
    if seconds or fraction:
        digits = f".{fraction:09}".rstrip("0") if fraction else ""
        time += f"{sign}{seconds}{digits}S"
    if not date and not time:
        return "PT0S"
    return f"P{date}T{time}" if time else f"P{date}"


def _part(sign: str, number: int, letter: str) -> str:
    return f"{sign}{number}{letter}" if number else ""
