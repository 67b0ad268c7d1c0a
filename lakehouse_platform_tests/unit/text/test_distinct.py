"""Columns of one name are refused by what finds values by names, and kept by what holds columns by their place."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidSqlError
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.distinct import require_distinct, require_distinct_within
from lakehouse_platform.text.json_write import (
    json_lines,
    json_members,
    json_values,
    row_objects,
    table_to_json,
)

TWICE = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
STRUCT = pa.struct([("b", pa.int64()), ("b", pa.int64())])
INNER = pa.RecordBatch.from_arrays(
    [pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["b", "b"])], names=["s"]
)


@pytest.mark.parametrize("batch", [TWICE, TWICE.slice(0, 0), INNER, INNER.slice(0, 0)])
@pytest.mark.parametrize("write", [json_lines, json_members, row_objects])
def test_no_object_loses_a_value_to_another_of_its_name(
    batch: pa.RecordBatch, write: Callable[[pa.RecordBatch], object]
) -> None:
    with pytest.raises(InvalidSqlError, match="several"):
        write(batch)
    with pytest.raises(InvalidSqlError, match="several"):
        table_to_json(pa.Table.from_batches([batch]))


def test_the_names_are_told_and_what_to_do() -> None:
    schema = pa.schema([("a", pa.int64()), ("id", pa.int64()), ("id", pa.string()), ("a", pa.int64())])
    with pytest.raises(InvalidSqlError, match=r"'a', 'id'.* AS, .*CSV or Arrow") as raised:
        require_distinct(schema)
    assert raised.value.details == {"columns": ["a", "id"]}


@pytest.mark.parametrize(
    "kind",
    [
        STRUCT,
        pa.list_(STRUCT),
        pa.large_list(STRUCT),
        pa.map_(pa.string(), STRUCT),
        pa.struct([("x", STRUCT)]),
    ],
    ids=str,
)
def test_a_struct_is_found_wherever_it_is(kind: pa.DataType) -> None:
    with pytest.raises(InvalidSqlError, match="fields named 'b'"):
        require_distinct_within(pa.schema([("v", kind)]))
    with pytest.raises(InvalidSqlError, match="fields named 'b'"):
        csv_header(pa.schema([("v", kind)]))


def test_names_that_differ_in_case_or_place_are_different() -> None:
    inner = pa.struct([("a", pa.int64()), ("A", pa.int64())])
    require_distinct(pa.schema([("a", inner), ("A", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]))


def test_csv_holds_columns_by_their_place() -> None:
    assert csv_header(TWICE.schema) + csv_rows(TWICE) == b"a,a\n1,2\n"


def test_a_value_that_would_lose_a_field_is_refused() -> None:
    with pytest.raises(InvalidSqlError):
        json_values(INNER.column(0))
