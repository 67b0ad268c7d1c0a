"""Rows of a request: counted as they stream, and digested by what they hold, not by how they arrive."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidRowsError
from lakehouse_platform.services.request_rows import RequestRows
from lakehouse_platform.store.rows import RowsIn

SIZE = 150_000
TABLE = pa.table(
    {
        "n": pa.array(range(SIZE)),
        "text": pa.array([None if number % 7 == 0 else f"t{number}" for number in range(SIZE)]),
        "flag": pa.array([number % 3 == 0 for number in range(SIZE)]),
    }
)


def digest(rows: RequestRows, place: Path) -> str:
    keyed = hmac.new(b"key", digestmod=hashlib.sha256)
    rows.digest_into(keyed, place / "requests")
    return keyed.hexdigest()


def stream(table: pa.Table, size: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))


def streamed(rows: RequestRows) -> pa.RecordBatchReader:
    data: Any = rows.data
    assert isinstance(data, pa.RecordBatchReader)
    return data


@pytest.mark.parametrize("size", [1_000, 65_536, 99_999])
def test_the_digest_is_the_same_however_the_rows_arrive(tmp_path: Path, size: int) -> None:
    whole = digest(RequestRows(TABLE), tmp_path)
    with RequestRows(stream(TABLE, size)) as rows:
        assert digest(rows, tmp_path) == whole
        assert pa.table(streamed(rows)).equals(TABLE)
        assert rows.count == SIZE
    encoded = TABLE.set_column(1, "text", TABLE["text"].dictionary_encode())
    assert digest(RequestRows(encoded), tmp_path) == whole


@pytest.mark.parametrize(
    "other",
    [
        TABLE.slice(1),
        TABLE.rename_columns(["n", "text", "other"]),
        TABLE.set_column(0, "n", TABLE["n"].cast(pa.int32())),
        pa.concat_tables([TABLE, TABLE.slice(0, 1)]),
        TABLE.set_column(1, "text", pa.chunked_array([[""] * SIZE])),
    ],
    ids=["fewer rows", "another name", "another type", "more rows", "empty texts"],
)
def test_other_rows_have_another_digest(tmp_path: Path, other: pa.Table) -> None:
    assert digest(RequestRows(other), tmp_path) != digest(RequestRows(TABLE), tmp_path)


def test_what_dictionaries_stand_for_is_digested(tmp_path: Path) -> None:
    def nested(word: str) -> pa.Table:
        words = pa.array([word, word]).dictionary_encode()
        return pa.table({"s": pa.StructArray.from_arrays([words], ["word"]), "d": words})

    assert digest(RequestRows(nested("a")), tmp_path) == digest(RequestRows(nested("a")), tmp_path)
    assert digest(RequestRows(nested("a")), tmp_path) != digest(RequestRows(nested("b")), tmp_path)


def test_a_long_stream_is_kept_in_a_file_that_has_no_name(tmp_path: Path) -> None:
    wide = pa.table({"text": pa.array(["x" * 1_000] * 100_000)})
    with RequestRows(stream(wide, 10_000)) as rows:
        digest(rows, tmp_path)
        assert list((tmp_path / "requests").iterdir()) == []
        assert (tmp_path / "requests").stat().st_mode & 0o777 == 0o700
        assert streamed(rows).read_all().num_rows == rows.count == 100_000


def test_mappings_are_digested_by_their_values(tmp_path: Path) -> None:
    rows: list[list[dict[str, Any]]] = [[{"n": 1}], [{"n": "1"}], [{"n": None}], [{"n": 1}, {"n": 1}], []]
    assert len({digest(RequestRows(one), tmp_path) for one in rows}) == len(rows)
    assert RequestRows(rows[3]).count == 2


def test_the_rows_of_a_stream_are_counted_as_they_are_read() -> None:
    rows = RequestRows(stream(TABLE, 50_000))
    assert rows.count == 0
    streamed(rows).read_next_batch()
    assert rows.count == 50_000


@pytest.mark.parametrize("wrong", ["text", 7, {"n": 1}])
def test_what_holds_no_rows_is_refused(wrong: RowsIn) -> None:
    with pytest.raises(InvalidRowsError):
        RequestRows(wrong)
