"""Arbitrary Arrow tables of every type that a Delta table can hold."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

_NARROW = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
_TRICKY = st.sampled_from(
    ["", " ", ",", '"', '""', "\n", "\r\n", "\r", ";", "NULL", "NaN", "00123", "a,b", "é€😀", "#", "'"]
)
_TIMES = st.datetimes()


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda digits: Decimal(digits).scaleb(-scale))


_SIMPLE: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *((kind, st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)) for bits, kind in _NARROW.items()),
    (pa.float64(), st.floats(width=64)),
    (pa.float32(), st.floats(width=32)),
    (pa.bool_(), st.booleans()),
    (pa.string(), _TEXT | _TRICKY),
    (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (pa.timestamp("us", "UTC"), _TIMES.map(lambda instant: pa.scalar(instant, pa.timestamp("us")).value)),
    (pa.timestamp("us"), _TIMES),
    (pa.binary(), st.binary(max_size=12)),
    (pa.decimal128(10, 2), _decimals(10, 2)),
    (pa.decimal128(38, 10), _decimals(28, 10)),
]


def _nested(
    inner: tuple[pa.DataType, st.SearchStrategy[Any]],
) -> list[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    kind, values = inner
    optional = st.none() | values
    return [
        (pa.list_(kind), st.lists(optional, max_size=3)),
        (
            pa.struct([("x", kind), ("y z", pa.int64())]),
            st.fixed_dictionaries({"x": optional, "y z": st.none() | st.integers(-9, 9)}),
        ),
        (
            pa.map_(pa.string(), kind),
            st.dictionaries(_TEXT, optional, max_size=3).map(lambda pairs: list(pairs.items())),
        ),
        (
            pa.map_(pa.int64(), kind),
            st.dictionaries(st.integers(-9, 9), optional, max_size=3).map(lambda pairs: list(pairs.items())),
        ),
    ]


_TYPES = [*_SIMPLE, *(nested for simple in _SIMPLE for nested in _nested(simple))]
_NAMES = st.lists(
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
    unique_by=str.lower,
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of one to four columns of any type and up to six rows."""
    names = draw(_NAMES)
    kinds = [draw(st.sampled_from(_TYPES)) for _ in names]
    rows = draw(st.integers(0, 6))
    columns = [
        pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
        for kind, values in kinds
    ]
    return pa.Table.from_arrays(columns, names=names)


def same(left: pa.Table, right: pa.Table) -> bool:
    """Tell whether two tables have equal schemas and values; unlike in Arrow, NaN equals NaN."""
    return left.schema.equals(right.schema) and repr(left.to_pylist()) == repr(right.to_pylist())
