"""One CSV dialect, to the byte."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.text.csv_write import csv_header, csv_rows


@pytest.mark.parametrize(
    ("data_type", "values", "lines"),
    [
        (
            pa.string(),
            ["", None, "a,b", 'q"q', "l\nl", "c\rc", " x ", "NULL"],
            b'""\n\n"a,b"\n"q""q"\n"l\nl"\n"c\rc"\n x \nNULL\n',
        ),
        (pa.float64(), [0.1, 1e21, float("nan"), float("-inf"), -0.0], b"0.1\n1e+21\nNaN\n-inf\n-0.0\n"),
        (pa.float32(), [0.1], b"0.1\n"),
        (pa.bool_(), [True, None], b"true\n\n"),
        (pa.int64(), [-(2**63)], b"-9223372036854775808\n"),
        (pa.date32(), [date(1, 1, 1)], b"0001-01-01\n"),
        (
            pa.timestamp("us", "UTC"),
            [0, 500_000, -1],
            b"1970-01-01T00:00:00Z\n1970-01-01T00:00:00.500Z\n1969-12-31T23:59:59.999999Z\n",
        ),
        (pa.timestamp("us"), [1], b"1970-01-01T00:00:00.000001\n"),
        (pa.decimal128(20, 10), [Decimal("0.0000000001")], b"0.0000000001\n"),
        (pa.binary(), [b"\x00\xff", b"", None], b'AP8=\n""\n\n'),
        (pa.list_(pa.string()), [["a", None], None], b'"[""a"",null]"\n\n'),
        (pa.struct([("x", pa.int8())]), [{"x": 1}], b'"{""x"":1}"\n'),
    ],
)
def test_a_value_has_one_form(data_type: pa.DataType, values: list[Any], lines: bytes) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(values, data_type)], names=["c"])

    assert csv_rows(batch) == lines


def test_header_names_are_quoted_where_a_reader_would_change_them() -> None:
    schema = pa.schema([(name, pa.int8()) for name in ("id", "a,b", " x", 'q"q')])

    assert csv_header(schema) == b'id,"a,b"," x","q""q"\n'


def test_columns_of_one_name_are_all_written() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert csv_header(batch.schema) + csv_rows(batch) == b"a,a\n1,x\n"
