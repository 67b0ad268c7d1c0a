"""What only queries compute has a text too: in JSON and in CSV the same one."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.text.csv_write import csv_rows
from lakehouse_platform.text.json_write import json_lines

_SECOND = 10**9


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([1, None], pa.time32("s")), ["00:00:01", None]),
        (pa.array([86_399_999_999_999], pa.time64("ns")), ["23:59:59.999999999"]),
        (pa.array([0, 1, 86_400, -90_061, None], pa.duration("s")),
         ["PT0S", "PT1S", "P1D", "P-1DT-1H-1M-1S", None]),
        (pa.array([1, -1_500_000_000], pa.duration("ns")), ["PT0.000000001S", "PT-1.5S"]),
        (pa.array([(1, -2, 3), (14, 1, -3661 * _SECOND), (0, 0, 0), None], pa.month_day_nano_interval()),
         ["P1M-2DT0.000000003S", "P14M1DT-1H-1M-1S", "PT0S", None]),
        (pa.array([1, 1_000, _SECOND, None], pa.timestamp("ns", "Europe/Paris")),
         ["1970-01-01T00:00:00.000000001Z", "1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:01Z", None]),
        (pa.array([1_500_000_000], pa.timestamp("ns")), ["1970-01-01T00:00:01.500"]),
        (pa.array([2**63 - 1], pa.timestamp("s")), ["<value out of range: 9223372036854775807>"]),
        (pa.array([86_400_000, None], pa.date64()), ["1970-01-02", None]),
        (pa.array([Decimal("1.50"), None], pa.decimal256(76, 2)), ["1.50", None]),
        (pa.array([b"xx", None], pa.binary(2)), ["eHg=", None]),
        (pa.array([b"a", None]).dictionary_encode(), ["YQ==", None]),
        (pa.array([b"x" * 16], pa.uuid()), ["eHh4eHh4eHh4eHh4eHh4eA=="]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_a_value_has_one_text(array: pa.Array, texts: list[str | None]) -> None:
    batch = pa.record_batch({"v": array})
    assert [json.loads(line)["v"] for line in json_lines(batch).splitlines()] == texts
    assert csv_rows(batch).decode().split("\n")[:-1] == [text or "" for text in texts]


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([[1], None], pa.list_view(pa.timestamp("ns"))), [["1970-01-01T00:00:00.000000001"], None]),
        (pa.array([[1, 2], None], pa.list_(pa.duration("s"), 2)), [["PT1S", "PT2S"], None]),
        (pa.array([{"a": 1}], pa.struct([("a", pa.duration("s"))])), [{"a": "PT1S"}]),
        (pa.RunEndEncodedArray.from_arrays([2], [5]), [5, 5]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_it_has_the_same_text_inside_of_other_values(array: pa.Array, values: list[Any]) -> None:
    batch = pa.record_batch({"v": array})
    assert [json.loads(line)["v"] for line in json_lines(batch).splitlines()] == values
    assert csv_rows(batch)
