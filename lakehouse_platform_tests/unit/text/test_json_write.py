"""JSON that we write: exact, deterministic, one row per line."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.text.json_write import json_lines, json_values, table_to_json


def test_an_array_has_one_row_per_line() -> None:
    table = pa.table({"id": [1, 2], "s": ["ü", None]})

    assert table_to_json(table) == '[\n{"id":1,"s":"ü"},\n{"id":2,"s":null}\n]\n'


def test_no_rows_are_an_empty_array_and_no_lines() -> None:
    table = pa.table({"id": pa.array([], pa.int64())})

    assert (
        table_to_json(table),
        json_lines(
            table.to_batches()[0] if table.to_batches() else pa.RecordBatch.from_pylist([], table.schema)
        ),
    ) == ("[]\n", b"")


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([2**53 + 1]), [9007199254740993]),
        (pa.array([0.1, None, float("nan"), float("-inf")]), [0.1, None, "NaN", "-Infinity"]),
        (pa.array([0.1], pa.float32()), [0.1]),
        (pa.array([Decimal("0.0000000001")], pa.decimal128(20, 10)), ["0.0000000001"]),
        (
            pa.array([0, 500_000, -1], pa.timestamp("us", "UTC")),
            ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.500Z", "1969-12-31T23:59:59.999999Z"],
        ),
        (pa.array([0], pa.timestamp("us", "Europe/Berlin")), ["1970-01-01T00:00:00Z"]),
        (pa.array([1_000], pa.timestamp("us")), ["1970-01-01T00:00:00.001"]),
        (pa.array([0], pa.date32()), ["1970-01-01"]),
        (pa.array([b"\x00\xff"]), ["AP8="]),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8())), [{"k": 1}, None]),
        (pa.array([[(1, "v")]], pa.map_(pa.int8(), pa.string())), [[[1, "v"]]]),
        (pa.array(["a"], pa.string_view()), ["a"]),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
    ],
)
def test_a_value_has_one_form(array: pa.Array, values: list[Any]) -> None:
    assert json_values(array) == values
