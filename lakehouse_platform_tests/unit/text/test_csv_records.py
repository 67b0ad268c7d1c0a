"""CSV records know the line they begin on, whatever their fields hold."""

from __future__ import annotations

import io

import pytest

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.text.csv_records import records


def parsed(text: str, delimiter: str = ",") -> list[tuple[int, list[str]]]:
    lines = io.StringIO(text, newline="")
    return [
        (record.line, [value.text for value in record.values(delimiter)])
        for record in records(lines, delimiter)
    ]


def test_records_know_their_first_line() -> None:
    assert parsed('a,b\r\n"x\r\n\r\ny",1\r\n2,3') == [
        (1, ["a", "b"]),
        (2, ["x\r\n\r\ny", "1"]),
        (5, ["2", "3"]),
    ]


def test_quotes_are_undone_as_the_fast_reader_does() -> None:
    assert parsed('"a""b","c"d,5" pipe,""\n') == [(1, ['a"b', "cd", '5" pipe', ""])]


def test_only_an_empty_field_without_quotes_is_null() -> None:
    (record,) = records(['"",,x'], ",")

    assert [value.is_null for value in record.values(",")] == [False, True, False]


def test_a_quoted_delimiter_belongs_to_the_field() -> None:
    assert parsed('"a;b";c\n', ";") == [(1, ["a;b", "c"])]


def test_a_field_that_is_never_closed_is_named_by_its_line() -> None:
    with pytest.raises(SourceFormatError, match="Line 2: a quoted field"):
        parsed('a,b\n1,"x\n3,4\n')
