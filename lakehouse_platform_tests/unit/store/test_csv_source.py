"""CSV files: read as they are meant, or refused with line, column and value."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import SourceFormatError, SourceNotFoundError
from lakehouse_platform.store.csv_source import CsvOptions, InferMode, open_csv
from lakehouse_platform_tests.support.s3_server import S3Server

TYPED = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("price", pa.decimal128(5, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("bytes", pa.binary()),
        ("list", pa.list_(pa.int64())),
        ("f", pa.float32()),
        ("note", pa.string()),
    ]
)
# Ten rows: what the sample sees. The line after them is 12.
SAMPLE = "id,score,ok\n" + "".join(f"{number},{number}.5,true\n" for number in range(10))


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Return what reads a text or bytes as a CSV file, and returns its rows."""

    def read_rows(content: str | bytes, **options: Any) -> pa.Table:
        file = tmp_path / "data.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with open_csv(file, CsvOptions(**options)) as source:
            try:
                return source.reader.read_all()
            finally:
                source.raise_pending()

    return read_rows


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n1,x\n", [{"a": 1, "b": "x"}]),
        ("a,b\n1,x", [{"a": 1, "b": "x"}]),
        ('\ufeff"a",b\r\n1,x\r\n', [{"a": 1, "b": "x"}]),
        ("a;b\n1;2,5\n", [{"a": 1, "b": "2,5"}]),
        ("a\tb\n1\tx y\n", [{"a": 1, "b": "x y"}]),
        ("a|b\n1|2.5\n", [{"a": 1, "b": 2.5}]),
        ('"a, b",c\n1,"x\n""y"""\n', [{"a, b": 1, "c": 'x\n"y"'}]),
        ('a,b\n1,\n2,""\n', [{"a": 1, "b": None}, {"a": 2, "b": ""}]),
        ('a,b\n00123,5" pipe\n', [{"a": "00123", "b": '5" pipe'}]),
        ("a,b\n\n1,x\n\n", [{"a": 1, "b": "x"}]),
        ("a\n1\n\n2\n", [{"a": 1}, {"a": None}, {"a": 2}]),
        ("a,b\r1,x\r", [{"a": 1, "b": "x"}]),
        ("a,b\n", []),
        ("a,b", []),
    ],
)  # fmt: skip
def test_a_file_is_read_as_it_is_meant(read: Any, content: str, rows: list[dict[str, Any]]) -> None:
    assert read(content).to_pylist() == rows


def test_gzip_is_recognised_by_its_bytes(read: Any) -> None:
    assert read(gzip.compress(b"a\n1\n") + gzip.compress(b"2\n"))["a"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        ("abc,1,1", "id", "'abc'"),
        ("77.0,1,1", "id", "'77.0'"),
        ("00123,1,1", "id", "'00123'"),
        ("+5,1,1", "id", "'+5'"),
        ("0x1F,1,1", "id", "'0x1F'"),
        ('"",1,1', "id", "''"),
        ("9223372036854775808,1,1", "id", "9223372036854775808"),
        ("1,1.2.3,1", "score", "'1.2.3'"),
        ("1,+1.5,1", "score", "'+1.5'"),
        ("1,007.5,1", "score", "'007.5'"),
        ("1,9007199254740993,1", "score", "9007199254740993"),
        ("1,1e999,1", "score", "'1e999'"),
        ("1,1,yes", "ok", "'yes'"),
    ],
)
def test_a_later_value_that_does_not_fit_the_sample_is_named(
    read: Any, line: str, column: str, value: str
) -> None:
    with pytest.raises(SourceFormatError, match="--infer all") as caught:
        read(f'{SAMPLE}10,"1.5",true\n{line}\n11,1.5,true\n')

    assert value in caught.value.message
    assert caught.value.details == {"line": 13, "column": column}


def test_lines_are_counted_as_an_editor_does(read: Any) -> None:
    with pytest.raises(SourceFormatError, match=r"^Line 15, column 'b'"):
        read('a,b\n\n"two\r\nlines",1\n' + "x,1\n" * 10 + "x,abc\n")


def test_a_bad_value_far_into_a_large_file_is_found(read: Any) -> None:
    with pytest.raises(SourceFormatError, match=r"^Line 200002, column 'b' \(Int64\): 'abc'"):
        read("a,b\n" + "some text,123456\n" * 200_000 + "x,abc\n" + "some text,1\n" * 200_000)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1,2", "Line 12 has 2 fields, but the header has 3"),
        (b"1,2,true,4", "Line 12 has 4 fields"),
        (b'1,2,"true\n2,2,true', "Line 12: a quoted field"),
        (b"1,2,\xfftrue", r"Line 12 is not UTF-8 \(byte 0xFF\)"),
    ],
)
def test_a_broken_line_is_named(read: Any, line: bytes, reason: str) -> None:
    with pytest.raises(SourceFormatError, match=reason):
        read(SAMPLE.encode() + line + b"\n")


def test_a_text_that_is_not_utf8_is_named(read: Any) -> None:
    with pytest.raises(SourceFormatError, match=r"Line 13 is not UTF-8 \(byte 0xE9\)"):
        read(b"a,b\n" + b"x,y\n" * 11 + b"caf\xe9,y\n")


@pytest.mark.parametrize("before", ["1,x", '5" pipe,x'])
def test_an_open_quote_is_refused_where_the_file_ends_in_text(read: Any, before: str) -> None:
    with pytest.raises(SourceFormatError, match="Line 3: a quoted field"):
        read(f'a,b\n{before}\n1,"never closed\n2,x\n')


@pytest.mark.parametrize(
    ("lines", "types"),
    [
        ("00123,1,1\n", [pa.string(), pa.float64(), pa.string()]),
        ("1.5,x,0\n", [pa.float64(), pa.string(), pa.bool_()]),
        ("18446744073709551616,1,true\n", [pa.string(), pa.float64(), pa.bool_()]),
    ],
)
def test_all_rows_decide_the_types_if_asked_for(read: Any, lines: str, types: list[pa.DataType]) -> None:
    table = read(SAMPLE.replace(",true", ",1", 1) + lines, infer=InferMode.ALL)

    assert table.schema.types[:2] == types[:2]
    assert table.num_rows == 11


def test_all_rows_are_also_asked_for_by_a_plain_word(read: Any) -> None:
    assert read(f"{SAMPLE}x,1,true\n", infer="all")["id"].to_pylist()[-1] == "x"


def test_an_empty_line_above_the_header_is_named(read: Any) -> None:
    with pytest.raises(SourceFormatError, match="remove the empty lines above the header"):
        read(f"\n{SAMPLE}")


def test_needless_zeros_are_kept_when_all_rows_decide(read: Any) -> None:
    assert read(f"{SAMPLE}00123,1,true\n", infer=InferMode.ALL)["id"].to_pylist()[-1] == "00123"


def test_numbers_with_zeros_after_a_comma_or_in_text_are_no_reason_to_refuse(read: Any) -> None:
    table = read('id,score,name\n0,0.5,"x,007"\n' * 1 + "0,0.05,-0.5\n" * 20)

    assert table["score"].to_pylist()[:2] == [0.5, 0.05]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,A\n1,2\n", "repeats the name"),
        ("a,,b\n1,2,3\n", "has no name"),
        ("a,b\n1\n".encode("utf-16"), "iconv -f UTF-16"),
        (gzip.compress(SAMPLE.encode(), mtime=0)[:-20], "damaged"),
    ],
)
def test_a_file_that_is_no_csv_is_refused(read: Any, content: str | bytes, reason: str) -> None:
    with pytest.raises(SourceFormatError, match=reason):
        read(content)


def test_a_schema_is_matched_by_name_and_missing_columns_are_null(read: Any) -> None:
    table = read('at,id,price,bytes,list\n2024-01-01T00:00:00Z,007,1.5,AA==,"[1,null]"\n', schema=TYPED)

    assert table.schema == TYPED
    assert table.drop_columns("at").to_pylist() == [
        {"id": 7, "price": Decimal("1.50"), "bytes": b"\x00", "list": [1, None], "f": None, "note": None}
    ]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("id", "", "NOT NULL"),
        ("id", "3000000000", "outside of Int32"),
        ("id", "0x1F", "not an integer"),
        ("price", "1.234", "more than 2 decimals"),
        ("price", "99999", "Decimal"),
        ("at", "2024-01-01T00:00:00", "no zone"),
        ("at", "2024-01-01T00:00:00.1234567Z", "finer"),
        ("bytes", "***", "base64"),
        ("list", "[1.5]", "item 1"),
        ("list", "[1", "not JSON"),
        ("f", "1e300", "outside of Float32"),
        ("f", "16777217", "not exactly"),
    ],
)
def test_a_value_that_does_not_fit_its_schema_is_named(
    read: Any, column: str, value: str, reason: str
) -> None:
    row = {"id": "1", "note": "x", column: value}

    with pytest.raises(SourceFormatError, match=reason) as caught:
        read(
            ",".join(row) + "\n" + '1,"a\n\nb"' + "," * (len(row) - 2) + "\n" + ",".join(row.values()) + "\n",
            schema=TYPED,
            delimiter=",",
        )

    assert caught.value.details == {"line": 5, "column": column}


@pytest.mark.parametrize(
    ("header", "reason"),
    [("id,pirce", "'pirce'.*did you mean 'price'"), ("price", "no column 'id', which is NOT NULL")],
)
def test_columns_that_do_not_match_the_schema_are_named(read: Any, header: str, reason: str) -> None:
    with pytest.raises(SourceFormatError, match=reason):
        read(f"{header}\n1{',1' * header.count(',')}\n", schema=TYPED)


def test_a_field_larger_than_a_block_is_read_once(read: Any) -> None:
    long = "x\n" * 1_500_000
    rows = "1,short\n" * 200_000

    table = read(f'a,b\n{rows}2,"{long}"\n{rows}')

    assert table.num_rows == 400_001
    assert table["b"][200_000].as_py() == long


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("a,b\n" + "1,some text\n" * 300_000)
    seen: list[tuple[int, int]] = []

    with open_csv(file, CsvOptions(on_progress=lambda done, total: seen.append((done, total)))) as source:
        assert source.reader.read_all().num_rows == 300_000

    assert seen == sorted(seen)
    assert seen[-1] == (source.total_bytes, file.stat().st_size)


@pytest.mark.parametrize("place", ["absent.csv", "."])
def test_a_place_without_a_file_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(SourceNotFoundError):
        open_csv(tmp_path / place)


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "a", "é"])
def test_a_delimiter_that_cannot_be_one_is_refused(read: Any, delimiter: str) -> None:
    if delimiter:
        with pytest.raises(SourceFormatError, match="Delimiter"):
            read("a,b\n1,2\n", delimiter=delimiter)
    else:
        assert read("a,b\n1,2\n", delimiter=delimiter).num_rows == 1


@pytest.mark.object_store
def test_a_file_in_an_object_store_is_read(s3: S3Server) -> None:
    from lakehouse_platform.store.location import Location

    place = Location(s3.fresh_uri(), s3.options)
    with place.filesystem().open_output_stream("data.csv", buffer_size=1024) as sink:
        sink.write(SAMPLE.encode())

    with open_csv(f"{place.uri}/data.csv", CsvOptions(storage_options=s3.options)) as source:
        assert source.reader.read_all().num_rows == 10
