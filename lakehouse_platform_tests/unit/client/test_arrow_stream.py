"""Arrow streams in pieces: every batch, whatever the pieces; and no cut that goes unnoticed."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.client.arrow_stream import ArrowStream
from lakehouse_platform.errors import UnexpectedAnswerError

TABLE = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "name": ["a", None, "ü" * 100],
        "at": pa.array([dt.datetime(2026, 2, 1, tzinfo=dt.UTC)] * 3, pa.timestamp("us", "UTC")),
        "price": [Decimal("1.50"), None, Decimal("-7.25")],
        "tags": [["x"], [], None],
        "kind": pa.array(["red", "blue", "red"]).dictionary_encode(),
    }
)


def written(table: pa.Table, rows: int = 1) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


def read(pieces: list[bytes]) -> pa.Table:
    stream = ArrowStream()
    batches = [batch for piece in pieces for batch in stream.feed(piece)]
    return pa.Table.from_batches(batches, stream.finish())


WHOLE = written(TABLE)


@given(st.lists(st.integers(1, len(WHOLE)), max_size=20))
def test_rows_are_the_same_however_they_are_cut_into_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    pieces = [WHOLE[start:end] for start, end in pairwise(places)]
    assert read(pieces).equals(TABLE)


def test_rows_may_come_byte_by_byte() -> None:
    assert read([WHOLE[at : at + 1] for at in range(len(WHOLE))]).equals(TABLE)


def test_batches_come_as_soon_as_they_are_whole() -> None:
    stream = ArrowStream()
    counts = [len(stream.feed(WHOLE[at : at + 1])) for at in range(len(WHOLE))]
    assert sum(counts) == 3
    first = counts.index(1)
    assert sum(counts[: first + 1]) == 1
    assert stream.schema == TABLE.schema


def test_columns_are_known_before_the_first_row() -> None:
    stream = ArrowStream()
    length = next(at for at in range(1, len(WHOLE)) if ArrowStream().feed(WHOLE[:at]) or _knows(WHOLE[:at]))
    assert stream.feed(WHOLE[:length]) == []
    assert stream.schema == TABLE.schema


def _knows(part: bytes) -> bool:
    stream = ArrowStream()
    stream.feed(part)
    return stream.schema is not None


def test_a_stream_that_is_cut_anywhere_is_never_taken_for_a_shorter_one() -> None:
    assert [length for length in range(len(WHOLE)) if _is_taken_for_whole(WHOLE[:length])] == []
    assert _is_taken_for_whole(WHOLE)


def _is_taken_for_whole(part: bytes) -> bool:
    stream = ArrowStream()
    stream.feed(part)
    try:
        stream.finish()
    except UnexpectedAnswerError as error:
        return "cut off" not in error.message
    return True


def test_no_rows_are_a_stream_too() -> None:
    empty = TABLE.slice(0, 0)
    assert read([written(empty)]).equals(empty)


def test_a_new_dictionary_between_batches_counts() -> None:
    batches = [
        pa.record_batch({"kind": pa.array([word]).dictionary_encode()}) for word in ("red", "blue", "green")
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    assert read([sink.getvalue().to_pybytes()]).column("kind").to_pylist() == ["red", "blue", "green"]


def test_a_large_batch_comes_whole() -> None:
    large = pa.table({"id": range(300_000), "text": ["x" * 30] * 300_000})
    data = written(large, 100_000)
    assert read([data[at : at + 65_536] for at in range(0, len(data), 65_536)]).equals(large)


@pytest.mark.parametrize(
    "data",
    [
        b"<html><body>Bad gateway</body></html>",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x00" * 16,
        b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\xff" * 16,
        b'[{"id":1}]',
        WHOLE + b"more",
        WHOLE[8 + int.from_bytes(WHOLE[4:8], "little") :],
    ],
    ids=["html", "huge", "zeros", "ones", "json", "more", "no schema"],
)
def test_what_is_no_stream_is_told_as_such(data: bytes) -> None:
    with pytest.raises(UnexpectedAnswerError):
        read([data])


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_damaged_description_raises_nothing_but_our_error(place: int, change: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[place] ^= change
    with suppress(UnexpectedAnswerError):
        read([bytes(damaged)])
