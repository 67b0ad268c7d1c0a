"""Rows on their way to the server."""

from __future__ import annotations

import datetime as dt
import json
import math
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakehouse_platform.client.uploads import ARROW_ROWS, JSON_LINES, JSON_ROWS, rows_body
from lakehouse_platform.errors import InvalidRowsError

TABLE = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})


def sent(data: Any, **more: bool) -> tuple[str, bytes]:
    body = rows_body(data, **more)
    return body.content_type, b"".join(body.pieces())


def arrow(data: Any, **more: bool) -> pa.Table:
    kind, content = sent(data, **more)
    assert kind == ARROW_ROWS
    return pa.ipc.open_stream(content).read_all()


def array(data: Any) -> list[Any]:
    kind, content = sent(data)
    assert kind == JSON_ROWS
    return json.loads(content)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        pd.DataFrame({"id": [1, 2, 3], "name": ["a", None, "c"]}),
    ],
    ids=["table", "batch", "reader", "pandas"],
)
def test_arrow_and_frames_are_sent_as_arrow(data: Any) -> None:
    assert arrow(data).to_pylist() == TABLE.to_pylist()


def test_a_polars_frame_is_sent_as_arrow() -> None:
    assert arrow(pl.DataFrame(TABLE)).to_pylist() == TABLE.to_pylist()


def test_a_table_can_be_sent_again_and_a_reader_cannot() -> None:
    table, reader = rows_body(TABLE), rows_body(TABLE.to_reader())
    assert not table.is_spent
    assert not reader.is_spent
    assert b"".join(table.pieces()) == b"".join(table.pieces())
    assert not table.is_spent
    next(reader.pieces())
    assert reader.is_spent


def test_a_reader_is_read_as_it_is_sent() -> None:
    batch = pa.record_batch({"text": ["x" * 1000] * 1000})
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield batch

    pieces = rows_body(pa.RecordBatchReader.from_batches(batch.schema, batches())).pieces()
    first = next(pieces)
    assert read <= 3
    assert len(first) <= 4 * 2**20
    assert sum(map(len, pieces)) + len(first) > 100 * 10**6 * 0.99


def test_a_large_table_is_sent_without_a_copy_of_it_in_memory() -> None:
    table = pa.table({"text": pa.array(["x" * 1000]).take(pa.array([0] * 50_000))})
    body = rows_body(table)
    tracemalloc.start()
    size = sum(len(piece) for piece in body.pieces())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 50 * 10**6 * 0.99
    assert peak < 10 * 2**20


def test_rows_of_python_values_are_json_from_which_the_same_values_are_made() -> None:
    row = {
        "n": None, "t": True, "i": 2**62, "s": 'é"\n', "f": 0.1, "d": Decimal("12345678901234567890.123456789"),
        "l": [1, (2,)], "m": {"a": {"b": None}}, "np": np.int32(7), "npf": np.float64(0.5),
    }  # fmt: skip
    kind, content = sent([row])
    assert kind == JSON_ROWS
    found = json.loads(content, parse_float=Decimal)
    assert found[0] == {
        "n": None, "t": True, "i": 2**62, "s": 'é"\n', "f": Decimal("0.1"),
        "d": Decimal("12345678901234567890.123456789"), "l": [1, [2]], "m": {"a": {"b": None}}, "np": 7,
        "npf": Decimal("0.5"),
    }  # fmt: skip


def test_floats_without_a_json_number_are_sent_as_their_words() -> None:
    assert array([{"f": [math.nan, math.inf, -math.inf]}]) == [{"f": ["NaN", "Infinity", "-Infinity"]}]


def test_a_map_with_keys_that_are_no_texts_is_sent_as_pairs() -> None:
    assert array([{"m": {1: "a", 2: "b"}}]) == [{"m": [[1, "a"], [2, "b"]]}]


def test_no_rows_are_sent_as_an_empty_list() -> None:
    assert array([]) == []


def test_many_rows_are_sent_in_pieces() -> None:
    body = rows_body([{"text": "x" * 1000}] * 5000)
    assert body.content_type == JSON_LINES
    pieces = list(body.pieces())
    assert len(pieces) > 3
    assert b"".join(pieces).count(b"\n") == 5000


@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        dt.date(2026, 2, 1),
        dt.datetime(2026, 2, 1, tzinfo=dt.UTC),
        [dt.date(2026, 2, 1)],
        {"a": b"x"},
    ],
)
def test_values_that_json_has_only_texts_for_keep_their_type(value: Any) -> None:
    table = arrow([{"id": 1}, {"id": 2, "value": value}])
    assert table.column("value").to_pylist() == [None, value]
    assert table.column_names == ["id", "value"]


def test_rows_with_new_columns_tell_their_types() -> None:
    assert arrow([{"id": 1, "new": "x"}], with_types=True).schema.field("new").type == pa.string()


def test_values_of_a_column_that_have_no_common_type_are_refused() -> None:
    with pytest.raises(InvalidRowsError, match="'at'"):
        rows_body([{"at": dt.date(2026, 2, 1)}, {"at": "tomorrow"}])


@pytest.mark.parametrize("data", ["text", b"bytes", {"id": 1}, 5, [1, 2], [{"id": 1}, 2], None])
def test_what_is_no_rows_is_refused(data: Any) -> None:
    with pytest.raises(InvalidRowsError, match="Rows cannot be taken from"):
        rows_body(data)


def test_a_value_without_a_form_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidRowsError, match="object"):
        rows_body([{"id": 1}, {"id": object()}])
