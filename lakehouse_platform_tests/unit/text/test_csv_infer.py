"""Delimiters, header names and column types, told from a file's beginning."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.text.csv_infer import ColumnGuess, fits_guess, header_names, sniff_delimiter
from lakehouse_platform.text.csv_records import Record


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\nx, y\tz\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ("a\n1\n", ","),
        ('"x,y";b\n1;2\n', ";"),
        ("a,b\n1;2,3;4\n", ","),
        ("a,b,c\n1,2\n", ","),
        ('a,b\n1,"open\n', ","),
        ("", ","),
    ],
)
def test_the_delimiter_is_the_one_that_cuts_all_lines_alike(text: str, delimiter: str) -> None:
    assert sniff_delimiter(text.splitlines(keepends=True)) == delimiter


def test_blanks_around_names_are_dropped_unless_quoted() -> None:
    assert header_names(Record(1, 'id, name ," x "'), ",") == ["id", "name", " x "]


@pytest.mark.parametrize(
    ("header", "reason"),
    [("a,b,A", "column 3 repeats"), ("a,,b", "column 2 has no name"), ("a, ", "no name")],
)
def test_a_header_names_each_column_once(header: str, reason: str) -> None:
    with pytest.raises(SourceFormatError, match=f"Line 3: .*{reason}"):
        header_names(Record(3, header), ",")


@pytest.mark.parametrize(
    ("texts", "data_type"),
    [
        (["1", "-2", None], pa.int64()),
        ([" 1", "2 "], pa.int64()),
        (["1", "0"], pa.int64()),
        (["1", "2.5"], pa.float64()),
        (["1e5", ".5"], pa.float64()),
        (["nan", "1.5"], pa.float64()),
        (["NaN", "inf"], pa.string()),
        (["true", "FALSE", "1"], pa.bool_()),
        (["00123"], pa.string()),
        (["-007"], pa.string()),
        (["1", "00.5"], pa.string()),
        (["+1"], pa.string()),
        (["0x1F"], pa.string()),
        (["9223372036854775807"], pa.int64()),
        (["9223372036854775808"], pa.string()),
        (["18446744073709551616"], pa.string()),
        (["1.5", "9007199254740993"], pa.string()),
        (["1e999"], pa.string()),
        (["1_000"], pa.string()),
        (["1,5"], pa.string()),
        (["yes"], pa.string()),
        (["1", ""], pa.string()),
        ([None, None], pa.string()),
        ([], pa.string()),
        (["2024-01-01"], pa.string()),
        (["٣"], pa.string()),
    ],
)
def test_a_type_is_the_narrowest_that_changes_no_text(
    texts: list[str | None], data_type: pa.DataType
) -> None:
    guess = ColumnGuess()
    guess.observe(pa.array(texts, pa.string()))

    assert guess.data_type() == data_type


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("2024-01-01", pa.date32()),
        ("2024-02-30", pa.string()),
        ("2024-01-01T00:00:00Z", pa.timestamp("us", "UTC")),
        ("2024-01-01 00:00:00.5", pa.timestamp("us")),
        ("2024-01-01T00:00:00.1234567Z", pa.string()),
    ],
)
def test_dates_are_told_if_asked_for(text: str, data_type: pa.DataType) -> None:
    guess = ColumnGuess(dates=True)
    guess.observe(pa.array([text]))

    assert guess.data_type() == data_type


def test_a_guess_widens_with_what_it_sees() -> None:
    guess = ColumnGuess()
    seen: list[pa.DataType] = []
    for text in ("1", "2.5", "x", "1"):
        guess.observe(pa.array([text]))
        seen.append(guess.data_type())

    assert seen == [pa.int64(), pa.float64(), pa.string(), pa.string()]
    assert guess.settled


@pytest.mark.parametrize(("text", "fits"), [("7", True), ("007", False), ("+7", False)])
def test_a_text_fits_a_number_if_it_would_have_been_taken_for_one(text: str, fits: bool) -> None:
    assert fits_guess(text, pa.int64()) is fits
    assert fits_guess(text, pa.string())
