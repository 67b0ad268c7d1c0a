import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_platform.api.encoding import PIECE_BYTES, pieces
from lakehouse_platform.api.formats import RowForm
from lakehouse_platform.errors import InvalidSqlError
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.json_write import json_lines, table_to_json

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(count: int, text: str = "x") -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(count), pa.int64()), pa.array([text] * count)], schema=SCHEMA)


def whole(batches: list[pa.RecordBatch], form: RowForm, schema: pa.Schema = SCHEMA) -> bytes:
    return b"".join(pieces(iter(batches), schema, form))


def test_json_is_what_the_platform_writes_elsewhere() -> None:
    table = pa.Table.from_batches([rows(3), rows(0), rows(2, 'ü"\n')])
    assert whole(table.to_batches(), RowForm.JSON).decode() == table_to_json(table)


@pytest.mark.parametrize("batches", [[], [rows(0)]])
def test_no_rows_are_written_as_each_form_writes_them(batches: list[pa.RecordBatch]) -> None:
    assert whole(batches, RowForm.JSON) == b"[]\n"
    assert whole(batches, RowForm.NDJSON) == b""
    assert whole(batches, RowForm.CSV) == b"id,name\n"
    assert pa.ipc.open_stream(whole(batches, RowForm.ARROW)).read_all() == SCHEMA.empty_table()


def test_ndjson_and_csv_are_what_the_platform_writes_elsewhere() -> None:
    batch = rows(5, "a,b")
    assert whole([batch], RowForm.NDJSON) == json_lines(batch)
    assert whole([batch], RowForm.CSV) == csv_header(SCHEMA) + csv_rows(batch)


def test_arrow_is_a_whole_stream_of_the_same_rows() -> None:
    table = pa.Table.from_batches([rows(10).slice(3, 4), rows(2)])
    stream = whole(table.to_batches(), RowForm.ARROW)
    assert pa.ipc.open_stream(io.BytesIO(stream)).read_all() == table
    assert stream.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")


@pytest.mark.parametrize("form", RowForm)
def test_pieces_are_about_as_large_as_they_should_be(form: RowForm) -> None:
    made = list(pieces(iter([rows(32_768, "y" * 100)] * 4), SCHEMA, form))
    assert len(made) > 5
    assert all(PIECE_BYTES <= len(piece) < 3 * PIECE_BYTES for piece in made[:-1])


@pytest.mark.parametrize("form", RowForm)
def test_rows_are_asked_for_only_when_their_bytes_are(form: RowForm) -> None:
    taken = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for _ in range(100):
            taken += 1
            yield rows(20_000, "z" * 100)

    made = pieces(counted(), SCHEMA, form)
    next(made)
    assert taken == 1
    made.close()
    assert taken == 1


@pytest.mark.parametrize("form", RowForm)
def test_a_failure_of_the_rows_is_the_failure_of_the_pieces(form: RowForm) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(20_000, "z" * 100)
        raise ValueError("no more")

    made = pieces(failing(), SCHEMA, form)
    assert next(made)
    with pytest.raises(ValueError, match="no more"):
        list(made)


@pytest.mark.parametrize("form", RowForm)
def test_rows_without_a_byte_are_written(form: RowForm) -> None:
    nothing = pa.record_batch([pa.nulls(3)], names=["n"])
    text = whole([nothing], form, nothing.schema)
    if form is RowForm.JSON:
        assert json.loads(text) == [{"n": None}] * 3
    assert text


@pytest.mark.parametrize("form", RowForm)
@pytest.mark.parametrize("count", [0, 1])
def test_columns_of_one_name_are_refused_at_once_where_one_would_be_lost(form: RowForm, count: int) -> None:
    schema = pa.schema([("id", pa.int64()), ("id", pa.int64())])
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], schema=schema).slice(0, count)
    made = pieces(iter([batch]), schema, form)
    if form in {RowForm.JSON, RowForm.NDJSON}:
        with pytest.raises(InvalidSqlError):
            next(made)
    elif form is RowForm.CSV:
        assert b"".join(made) == b"id,id\n" + b"1,2\n" * count
    else:
        assert pa.ipc.open_stream(b"".join(made)).read_all() == pa.Table.from_batches([batch])
