"""The header names the columns, or says what it should have been."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.edits.header import header_end, read_header
from lakehouse_platform.store.properties import allows_missing_columns, check_properties

SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string()), ("a,b", pa.int8())])


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (b'id,name,"a,b"\n', ("id", "name", "a,b")),
        (b'"a,b",id,name\r\n', ("a,b", "id", "name")),
        (b'\xef\xbb\xbfid, name ,"a,b"', ("id", "name", "a,b")),
    ],
)
def test_columns_stand_in_any_order(line: bytes, names: tuple[str, ...]) -> None:
    header = read_header(line, SCHEMA)

    assert (header.names, header.size, header.lines) == (names, len(line), 1)


def test_only_the_header_as_shown_is_plain() -> None:
    assert read_header(b'id,name,"a,b"\n', SCHEMA).is_plain
    assert not read_header(b'id,name,"a,b"\r\n', SCHEMA).is_plain


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        (b'id,nam,"a,b"\n', "nam", "did you mean 'name'"),
        (b'id,id,name,"a,b"\n', "id", "twice"),
        (b"id,name\n", "a,b", "leaves the column out"),
        (b"name\n", "id", "leaves the column out"),
        (b"1,Alice,3\n", None, "the first line must be the header 'id,name,\"a,b\"', but it is '1,Alice,3'"),
        (b"\n", None, "the first line must be the header"),
        (b'id,"name\n', None, "never closed"),
        (b"id,\xff\n", None, "not UTF-8"),
    ],
)
def test_a_wrong_header_is_explained(line: bytes, column: str | None, words: str) -> None:
    with pytest.raises(RowError) as caught:
        read_header(line, SCHEMA)

    assert (caught.value.line, caught.value.column) == (1, column)
    assert words in caught.value.reason


def test_nullable_columns_may_be_left_out_where_the_table_allows_it() -> None:
    assert read_header(b"id\n", SCHEMA, allow_missing=True).names == ("id",)
    with pytest.raises(RowError, match="'id': the header leaves the column out"):
        read_header(b"name\n", SCHEMA, allow_missing=True)


def test_a_table_allows_missing_columns_by_its_property() -> None:
    properties = check_properties({"lakehouse.allowMissingColumns": "true"})

    assert allows_missing_columns(properties)
    assert not allows_missing_columns({})


@pytest.mark.parametrize(
    ("data", "end"), [(b"a,b\nc", 4), (b"a,b", 0), (b'"a\nb",c\nd', 8), (b'"a\n', 0), (b"", 0)]
)
def test_the_header_ends_at_the_first_line_end_outside_of_quotes(data: bytes, end: int) -> None:
    assert header_end(data) == end
