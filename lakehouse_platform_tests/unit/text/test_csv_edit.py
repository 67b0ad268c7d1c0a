"""Edited lines: read exactly, or refused with line, column and reason."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidRowsError, RowError
from lakehouse_platform.text.csv_edit import parse_columns, parse_lines, render_table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("f", pa.float64()),
        pa.field("t", pa.string()),
        ("d", pa.date32()),
        ("b", pa.bool_()),
        ("ts", pa.timestamp("us", "UTC")),
        ("m", pa.decimal128(5, 2)),
        ("l", pa.list_(pa.int8())),
        ("bin", pa.binary()),
    ]
)
PLAIN = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("t", pa.string(), nullable=False)])
ONE = pa.schema([("a", pa.string())])


def _parse(data: bytes, schema: pa.Schema = SCHEMA) -> list[dict[str, object]]:
    return parse_lines(data, schema.names, schema).to_pylist()


@pytest.mark.parametrize(
    ("field", "column", "words"),
    [
        (b"1_000,,,,,,,,", "id", "'1_000' is not an integer"),
        (b"0x10,,,,,,,,", "id", "'0x10' is not an integer"),
        (b"1.5,,,,,,,,", "id", "is not an integer"),
        (b"+1,,,,,,,,", "id", "is not an integer"),
        (b"3000000000,,,,,,,,", "id", "outside of Int32"),
        (b",,,,,,,,", "id", "NOT NULL"),
        (b'"",,,,,,,,', "id", "is not an integer"),
        (b"1,x,,,,,,,", "f", "is not a number"),
        (b"1,1e999,,,,,,,", "f", "too large"),
        (b"1,9007199254740993,,,,,,,", "f", "not exactly representable"),
        (b"1,,,2026-2-3,,,,,", "d", "is not a date"),
        (b"1,,,2026-02-30,,,,,", "d", "day is out of range"),
        (b"1,,,,yes,,,,", "b", "is not true, false, 1 or 0"),
        (b"1,,,,,2026-01-01T00:00:00,,,", "ts", "no zone"),
        (b"1,,,,,,1.234,,", "m", "more than 2 decimals"),
        (b"1,,,,,,99999.1,,", "m", "no number that fits Decimal(5,2)"),
        (b"1,,,,,,,[1,", "l", "is not JSON"),
        (b'1,,,,,,,"[1,300]",', "l", "item 2: 300 is outside of Int8"),
        (b"1,,,,,,,,%%", "bin", "is not base64"),
        (b"1,2", None, "has 2 fields, but the table has 9"),
        (b"1,,,,,,,,,", None, "has 10 fields"),
        (b'1,,a"b,,,,,,', None, "inside an unquoted field"),
        (b'1,,"a"b,,,,,,', None, "follows a closing quote"),
        (b"1,,\xff,,,,,,", None, "not UTF-8 (byte 0xFF)"),
        (b"1,,a\0,,,,,,", None, "NUL"),
        (b"1,,a\rb,,,,,,", None, "carriage return"),
        (b"", None, "the line is empty"),
    ],
)
def test_a_wrong_row_is_named(field: bytes, column: str | None, words: str) -> None:
    before = b'1,,"two\nlines",,,,,,\n'

    with pytest.raises(RowError) as caught:
        _parse(before + field + b"\n1,,,,,,,,\n")

    error = caught.value
    assert (error.line, error.column, error.offset) == (3, column, len(before))
    assert words in error.reason
    assert isinstance(error, InvalidRowsError)


def test_an_open_quote_is_refused_where_it_opens() -> None:
    with pytest.raises(RowError, match="never closed") as caught:
        _parse(b'1,,,,,,,,\n1,,"a,,,,,,\n1,,,,,,,,\n')

    assert caught.value.line == 2


def test_lines_are_numbered_from_where_they_begin() -> None:
    with pytest.raises(RowError) as caught:
        parse_lines(b"1,a\nx,b\n", PLAIN.names, PLAIN, first_line=10, first_offset=100)

    assert (caught.value.line, caught.value.offset) == (11, 104)


def test_the_first_bad_row_among_many_is_found() -> None:
    lines = [b"%d,text\n" % number for number in range(100_000)]
    lines[77_777] = b"77777,\n"
    lines[90_000] = b"x,text\n"

    with pytest.raises(RowError) as caught:
        parse_lines(b"".join(lines), PLAIN.names, PLAIN)

    assert (caught.value.line, caught.value.column) == (77_778, "t")


def test_blanks_around_numbers_and_any_case_of_booleans_are_read_as_an_import_reads_them() -> None:
    assert _parse(b" 1,,,,TRUE,,,,\n007,,,,0,,,,\n") == [
        {**dict.fromkeys(SCHEMA.names), "id": 1, "b": True},
        {**dict.fromkeys(SCHEMA.names), "id": 7, "b": False},
    ]


def test_null_and_empty_text_differ() -> None:
    assert _parse(b'1,,"",,,,,,\n2,,,,,,,,\n')[0]["t"] == ""
    assert _parse(b'1,,"",,,,,,\n2,,,,,,,,\n')[1]["t"] is None


def test_line_ends_of_windows_and_a_missing_last_one_are_read() -> None:
    assert _parse(b"1,a\r\n2,b", PLAIN) == [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}]


def test_empty_lines_at_the_end_are_dropped_unless_they_are_rows() -> None:
    assert _parse(b"1,a\n\n\r\n", PLAIN) == [{"id": 1, "t": "a"}]
    assert _parse(b"\n\n", PLAIN) == []
    assert _parse(b"x\n\n\n", ONE) == [{"a": "x"}, {"a": None}, {"a": None}]


def test_empty_lines_at_the_end_can_be_refused() -> None:
    with pytest.raises(RowError, match="the line is empty"):
        parse_lines(b"1,a\n\n", PLAIN.names, PLAIN, blank_end=False)


def test_columns_are_taken_by_name_and_a_missing_one_is_null() -> None:
    schema = pa.schema([("a", pa.int8()), ("b", pa.string()), ("c", pa.int8())])

    table = parse_lines(b"x,1\n", ["b", "a"], schema)

    assert table.schema == schema
    assert table.to_pylist() == [{"a": 1, "b": "x", "c": None}]


@pytest.mark.parametrize("schema", [ONE, pa.schema([("a", pa.string()), ("b", pa.string())])])
def test_a_text_that_begins_like_a_byte_order_mark_keeps_its_first_character(schema: pa.Schema) -> None:
    table = pa.table([["\ufeffx"] for _ in schema], schema=schema)

    assert parse_lines(render_table(table), schema.names, schema) == table


def test_a_row_larger_than_the_readers_block_is_read() -> None:
    text = "a\n" * 800_000

    assert _parse(f'1,"{text}"\n2,b\n'.encode(), PLAIN) == [{"id": 1, "t": text}, {"id": 2, "t": "b"}]


def test_no_data_are_no_rows() -> None:
    assert parse_lines(b"", PLAIN.names, PLAIN) == PLAIN.empty_table()


def test_some_columns_are_read_alone() -> None:
    assert parse_columns(b"1,a\n2,b\n", PLAIN.names, PLAIN, ["t"]).to_pylist() == [{"t": "a"}, {"t": "b"}]
    assert parse_columns(b"", PLAIN.names, PLAIN, ["t"]).num_rows == 0
