"""JSON made column by column is what Python's encoder makes of each row."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.text.json_write import json_lines, json_members, row_objects, table_to_json
from lakehouse_platform_tests.support.arbitrary import tables


def encoded(batch: pa.RecordBatch) -> list[str]:
    return [
        json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        for row in row_objects(batch)
    ]


@given(tables())
def test_lines_and_members_are_the_encoded_rows(table: pa.Table) -> None:
    for batch in table.to_batches():
        lines = encoded(batch)
        assert json_lines(batch).decode() == "".join(f"{line}\n" for line in lines)
        assert json_members(batch).decode() == "".join(f",\n{line}" for line in lines)


@given(tables())
def test_an_array_is_its_members_in_brackets(table: pa.Table) -> None:
    lines = [line for batch in table.to_batches() for line in encoded(batch)]
    assert table_to_json(table) == ("[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n")


@given(st.lists(st.none() | st.floats(width=32), max_size=30), st.sampled_from([pa.float32(), pa.float64()]))
def test_floats_have_pythons_shortest_text(values: list[float | None], kind: pa.DataType) -> None:
    batch = pa.record_batch({"v": pa.array(values, kind)})
    assert json_lines(batch).decode().splitlines() == encoded(batch)


@given(st.lists(st.none() | st.floats() | st.integers(0, 20).map(lambda n: 10.0**n), max_size=30))
def test_doubles_have_pythons_shortest_text(values: list[float | None]) -> None:
    batch = pa.record_batch({"v": pa.array(values, pa.float64())})
    assert json_lines(batch).decode().splitlines() == encoded(batch)


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_escaped_as_python_does(text: str) -> None:
    batch = pa.record_batch({"v": [text], text: [1]}) if text != "v" else pa.record_batch({"v": [text]})
    assert json_lines(batch).decode()[:-1] == encoded(batch)[0]


@pytest.mark.parametrize("micros", [-(2**62), -62_135_596_800_000_001, -1, 0, 1000, 253_402_300_800_000_000])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_of_any_year(micros: int, zone: str | None) -> None:
    batch = pa.record_batch({"v": pa.array([micros, None], pa.int64()).cast(pa.timestamp("us", zone))})
    assert json_lines(batch).decode().splitlines() == encoded(batch)


@pytest.mark.parametrize("days", [-800_000, 0, 2_932_896])
def test_dates(days: int) -> None:
    batch = pa.record_batch({"v": pa.array([days], pa.int32()).cast(pa.date32())})
    assert json_lines(batch).decode().splitlines() == encoded(batch)


@pytest.mark.parametrize("text", ["0.0000000001", "-9999999999999999999999999999.9999999999", "0E-10", "1"])
def test_decimals_have_no_exponent(text: str) -> None:
    batch = pa.record_batch({"v": pa.array([Decimal(text)], pa.decimal128(38, 10))})
    assert json_lines(batch).decode().splitlines() == encoded(batch)


def test_no_column_at_all() -> None:
    assert json_lines(pa.record_batch([], pa.schema([]))) == b""


def test_a_sliced_batch_gives_only_its_rows() -> None:
    batch = pa.record_batch({"v": ["a", "b", None, "d"]}).slice(1, 2)
    assert json_lines(batch) == b'{"v":"b"}\n{"v":null}\n'
