"""JSON rows: every value exactly as written, or an error that names row and column."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidRowsError
from lakehouse_platform.text.json_rows import rows_from_json, rows_from_values

ID = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


NAIVE = datetime.fromisoformat("2024-01-01T00:00:00")


def one(data_type: pa.DataType) -> pa.Schema:
    return pa.schema([("c", data_type)])


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": 1, "name": "a"}, {"id": 2}]',
        '{"id": 1, "name": "a"}\n{"id": 2, "name": null}\n',
        '\ufeff{"id": 1, "name": "a"} {"name": null, "id": 2}',
        b'{"id": 1, "name": "a"}\r\n\r\n{"id": 2}',
    ],
)
def test_an_array_and_json_lines_are_taken(text: str | bytes) -> None:
    assert rows_from_json(text, ID).to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_one_object_is_one_row() -> None:
    assert rows_from_json('{"id": 7}', ID).to_pylist() == [{"id": 7, "name": None}]


@pytest.mark.parametrize("text", ["", " \n", "[]"])
def test_no_rows_are_an_empty_table(text: str) -> None:
    assert rows_from_json(text, ID).num_rows == 0


def test_more_rows_than_one_engine_batch_all_arrive() -> None:
    text = "\n".join(f'{{"id": {number}}}' for number in range(5_000))

    assert rows_from_json(text, ID)["id"].to_pylist() == list(range(5_000))


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        (pa.int64(), "9007199254740993", 9007199254740993),
        (pa.int64(), "-9223372036854775808", -(2**63)),
        (pa.float64(), "1", 1.0),
        (pa.float64(), '"-Infinity"', float("-inf")),
        (pa.float32(), "0.1", 0.10000000149011612),
        (
            pa.decimal128(38, 20),
            "123456789012345678.12345678901234567890",
            Decimal("123456789012345678.12345678901234567890"),
        ),
        (pa.decimal128(5, 2), '"1.5"', Decimal("1.50")),
        (pa.decimal128(5, 2), "1.500", Decimal("1.50")),
        (pa.decimal128(5, 2), "1e2", Decimal("100.00")),
        (pa.date32(), '"2024-02-29"', date(2024, 2, 29)),
        (
            pa.timestamp("us", "UTC"),
            '"2024-01-01T01:00:00.5+01:00"',
            datetime(2024, 1, 1, 0, 0, 0, 500_000, UTC),
        ),
        (
            pa.timestamp("us", "UTC"),
            '"2024-01-01 00:00:00.123456000z"',
            datetime(2024, 1, 1, 0, 0, 0, 123_456, UTC),
        ),
        (pa.timestamp("us"), '"2024-01-01T00:00"', NAIVE),
        (pa.binary(), '"AP8="', b"\x00\xff"),
        (pa.list_(pa.int8()), "[1, null]", [1, None]),
        (
            pa.struct([("a", pa.int8()), ("b", pa.date32())]),
            '{"b": "2024-01-01"}',
            {"a": None, "b": date(2024, 1, 1)},
        ),
        (pa.map_(pa.string(), pa.int8()), '{"k": 1}', [("k", 1)]),
        (pa.map_(pa.int8(), pa.string()), '[[1, "v"]]', [(1, "v")]),
        (pa.list_(pa.decimal128(3, 1)), "[0.1]", [Decimal("0.1")]),
    ],
)
def test_a_value_is_taken_exactly(data_type: pa.DataType, text: str, value: Any) -> None:
    assert rows_from_json(f'{{"c": {text}}}', one(data_type))["c"][0].as_py() == value


@pytest.mark.parametrize(
    ("data_type", "text", "reason"),
    [
        (pa.int64(), "1.7", "not an integer"),
        (pa.int64(), "1.0", "not an integer"),
        (pa.int64(), '"77"', "not an integer"),
        (pa.int64(), "true", "not an integer"),
        (pa.int64(), "9223372036854775808", "outside of Int64"),
        (pa.int8(), "128", r"outside of Int8 \(-128 to 127\)"),
        (pa.float64(), "1e400", "outside"),
        (pa.float64(), "9007199254740993", "not exactly representable"),
        (pa.float64(), '"nan"', "NaN"),
        (pa.float32(), "16777217", "not exactly representable"),
        (pa.float32(), "1e300", "outside of Float32"),
        (pa.decimal128(5, 2), "1.234", "more than 2 decimals"),
        (pa.decimal128(5, 2), "1000", "fits"),
        (pa.decimal128(5, 2), '"NaN"', "not finite"),
        (pa.string(), "5", "not text"),
        (pa.string(), '"\\ud800"', "surrogate"),
        (pa.bool_(), "1", "not true or false"),
        (pa.date32(), '"2024-02-30"', "day"),
        (pa.date32(), '"20240229"', "not a date"),
        (pa.timestamp("us", "UTC"), '"2024-01-01T00:00:00"', "no zone"),
        (pa.timestamp("us"), '"2024-01-01T00:00:00Z"', "has a zone"),
        (pa.timestamp("us"), '"2024-01-01T00:00:00.1234567"', "finer"),
        (pa.timestamp("us"), "0", "not a time"),
        (pa.binary(), '"A"', "base64"),
        (pa.list_(pa.int8()), "[1, 1.5]", "item 2"),
        (pa.list_(pa.int8()), "1", "not a list"),
        (pa.struct([("abc", pa.int8())]), '{"abd": 1}', "did you mean 'abc'"),
        (pa.map_(pa.int8(), pa.int8()), "[[1, 1], [1, 2]]", "repeated"),
        (pa.map_(pa.int8(), pa.int8()), "[1]", "pairs"),
    ],
)
def test_a_value_that_would_change_is_refused_with_row_and_column(
    data_type: pa.DataType, text: str, reason: str
) -> None:
    with pytest.raises(InvalidRowsError, match=reason) as caught:
        rows_from_json(f'[{{}}, {{"c": {text}}}]', one(data_type))

    assert (caught.value.details["row"], caught.value.details["column"]) == (2, "c")


def test_a_type_without_a_json_form_is_refused() -> None:
    with pytest.raises(InvalidRowsError, match="no JSON form"):
        rows_from_json('{"c": 1}', one(pa.uint64()))


def test_an_unknown_field_is_named_with_the_nearest_column() -> None:
    with pytest.raises(InvalidRowsError, match=r"Row 2 .*'nmae'.*did you mean 'name'"):
        rows_from_json('[{"id": 1}, {"id": 2, "nmae": "x"}]', ID)


@pytest.mark.parametrize("row", ['{"name": "x"}', '{"id": null}'])
def test_a_not_null_column_needs_a_value(row: str) -> None:
    with pytest.raises(InvalidRowsError, match="Row 2, column 'id'"):
        rows_from_json(f'[{{"id": 1}}, {row}]', ID)


def test_every_column_must_be_given_if_asked_for() -> None:
    with pytest.raises(InvalidRowsError, match="Row 1, column 'name' is missing"):
        rows_from_json('{"id": 1}', ID, allow_missing=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"id": 1}', "line 1"),
        ('{"id": 1}\n{"id": 2', "after row 1"),
        ('{"id": 1, "id": 2}', "twice"),
        ('{"id": NaN}', "not JSON"),
        ("[1]", "Row 1 is not an object"),
        ("[" * 100_000, "not JSON"),
        ('{"id": ' + "9" * 5_000 + "}", "not JSON"),
        (b'{"id": 1, "name": "\xff"}', "not UTF-8"),
        ("null", "not an object"),
    ],
)
def test_text_that_is_not_rows_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(InvalidRowsError, match=reason):
        rows_from_json(text, ID)


@pytest.mark.parametrize(
    ("data_type", "value", "stored"),
    [
        (pa.int64(), np.int64(5), 5),
        (pa.float64(), float("inf"), float("inf")),
        (pa.float64(), np.float32(0.5), 0.5),
        (pa.decimal128(5, 2), Decimal("1.5"), Decimal("1.50")),
        (pa.binary(), b"\x00", b"\x00"),
        (pa.date32(), date(2024, 1, 1), date(2024, 1, 1)),
        (
            pa.timestamp("us", "UTC"),
            datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            datetime(2023, 12, 31, 23, tzinfo=UTC),
        ),
        (pa.timestamp("us"), NAIVE, NAIVE),
        (pa.map_(pa.string(), pa.int8()), {"k": 1}, [("k", 1)]),
    ],
)
def test_python_values_are_taken_exactly(data_type: pa.DataType, value: Any, stored: Any) -> None:
    assert rows_from_values([{"c": value}], one(data_type))["c"][0].as_py() == stored


@pytest.mark.parametrize(
    ("data_type", "value", "reason"),
    [
        (pa.timestamp("us", "UTC"), NAIVE, "no zone"),
        (pa.timestamp("us"), datetime(2024, 1, 1, tzinfo=UTC), "has a zone"),
        (pa.timestamp("us"), pd.Timestamp(1), "finer"),
        (pa.date32(), NAIVE, "not a date"),
        (pa.decimal128(5, 2), 1.5, "give it as text"),
        (pa.decimal128(5, 2), True, "exact decimal"),
    ],
)
def test_python_values_that_would_change_are_refused(data_type: pa.DataType, value: Any, reason: str) -> None:
    with pytest.raises(InvalidRowsError, match=reason):
        rows_from_values([{"c": value}], one(data_type))


def test_long_values_are_cut_short_in_messages() -> None:
    with pytest.raises(InvalidRowsError) as caught:
        rows_from_values([{"c": "x" * 10_000}], one(pa.int64()))

    assert len(caught.value.message) < 200
