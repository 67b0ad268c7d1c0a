"""Rows are checked as their bytes arrive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.edits.check import RowChecker
from lakehouse_platform.nfs.edits.constraints import violations_of

SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string()), ("age", pa.int8())])
SOUND = b'id,name,age\n1,"Al\nice",30\n2,,\n3,"",1\n'


def _checked(pieces: Sequence[bytes], checker: RowChecker | None = None) -> RowChecker:
    checker = checker or RowChecker(SCHEMA)
    for piece in pieces:
        checker.feed(piece)
    return checker


@given(st.lists(st.integers(0, len(SOUND)), max_size=6))
def test_sound_rows_pass_in_any_pieces(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(SOUND)]

    checker = _checked([SOUND[a:b] for a, b in pairwise(edges)], RowChecker(SCHEMA, ("id",)))

    assert checker.is_whole
    assert checker.finish() == 3
    assert checker.names == ("id", "name", "age")


@given(st.lists(st.integers(0, 60), max_size=4))
def test_a_bad_row_is_named_in_any_pieces(cuts: list[int]) -> None:
    data = SOUND + b"4,Bob,x\n5,Eve,1\n"
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    with pytest.raises(RowError) as caught:
        _checked([data[a:b] for a, b in pairwise(edges)])

    assert (caught.value.line, caught.value.column, caught.value.offset) == (6, "age", len(SOUND))


def test_a_bad_row_fails_the_bytes_that_complete_it() -> None:
    checker = _checked([SOUND, b"4,Bob,300"])

    with pytest.raises(RowError, match=r"Line 6, column 'age': .*outside of Int8"):
        checker.feed(b"\n")


def test_an_append_has_no_header_and_knows_its_place() -> None:
    checker = RowChecker(SCHEMA, header=("id", "name", "age"), first_line=7, first_offset=90)
    checker.feed(b"1,a,1\n")

    with pytest.raises(RowError) as caught:
        checker.feed(b"x,a,1\n")

    assert (caught.value.line, caught.value.offset) == (8, 96)


def test_columns_follow_the_header() -> None:
    checker = _checked([b"age,id,name\r\n30,1,Al\r\n"])

    assert checker.finish() == 1
    with pytest.raises(RowError, match="column 'id'"):
        _checked([b"age,id,name\n30,x,Al\n"])


def test_a_wrong_header_fails_as_soon_as_it_is_whole() -> None:
    checker = _checked([b"id,name"])

    with pytest.raises(RowError, match="did you mean 'age'"):
        checker.feed(b",agee\n")


def test_a_text_that_never_ends_its_first_line_is_no_header() -> None:
    with pytest.raises(RowError, match="must be the header"):
        _checked([b"x" * 600_000, b"x" * 600_000])


def test_a_file_without_line_ends_must_still_be_a_header() -> None:
    assert _checked([b"id,name,age"]).finish() == 0
    with pytest.raises(RowError, match="must be the header"):
        _checked([b"hello"]).finish()
    with pytest.raises(RowError, match="must be the header"):
        RowChecker(SCHEMA).finish()


def test_a_last_row_without_line_end_is_checked_at_the_end() -> None:
    checker = _checked([SOUND, b"4,Bob,1"])

    assert not checker.is_whole
    assert checker.finish() == 4
    with pytest.raises(RowError, match="has 2 fields"):
        _checked([SOUND, b"4,Bob"]).finish()


def test_empty_lines_pass_only_at_the_end() -> None:
    assert _checked([SOUND, b"\n", b"\r\n"]).finish() == 3
    with pytest.raises(RowError, match="Line 6: the line is empty"):
        _checked([SOUND, b"\n", b"4,,\n"])


def test_an_empty_line_is_a_row_of_a_table_with_one_column() -> None:
    schema = pa.schema([("a", pa.int8())])

    assert _checked([b"a\n1\n\n\n"], RowChecker(schema)).finish() == 3


def test_a_stray_quote_fails_at_once_and_not_at_the_end() -> None:
    with pytest.raises(RowError, match="inside an unquoted field") as caught:
        _checked([SOUND, b'4,5" pipe,1\n5,Eve,1\n'])

    assert caught.value.line == 6


def test_an_open_quote_fails_at_the_end() -> None:
    with pytest.raises(RowError, match="never closed"):
        _checked([SOUND, b'4,"Bob,1\n']).finish()


def test_a_repeated_key_is_refused_wherever_it_stood_before() -> None:
    with pytest.raises(RowError, match="key id = 2 stands twice") as caught:
        _checked([SOUND, b"4,,\n", b"5,,\n2,x,\n"], RowChecker(SCHEMA, ("id",)))

    assert (caught.value.line, caught.value.column) == (8, "id")


def test_an_empty_key_is_refused() -> None:
    schema = pa.schema([("k", pa.string()), ("v", pa.int8())])

    with pytest.raises(RowError, match="the key is empty") as caught:
        _checked([b"k,v\na,1\n,2\n"], RowChecker(schema, ("k",)))

    assert (caught.value.line, caught.value.column) == (3, "k")


def test_a_broken_constraint_is_refused() -> None:
    violations = violations_of(
        {"adult": "age >= 18", "foreign": "frob(age)", "named": "name IS NOT NULL"}, SCHEMA
    )
    checker = RowChecker(SCHEMA, violations=violations)
    checker.feed(b"id,name,age\n1,Al,18\n")

    with pytest.raises(RowError, match="breaks constraint 'named': name IS NOT NULL") as caught:
        checker.feed(b"2,Bo,20\n3,,20\n4,Ed,17\n")

    assert caught.value.line == 4


def test_the_tables_own_bytes_are_believed_until_others_come() -> None:
    checker = RowChecker(SCHEMA, ("id",))
    checker.feed(b"id,name,age\n1,\0,1\n2,", trusted=True)

    checker.feed(b"\0,1\n", trusted=True)
    checker.feed(b"3,x,1\n")
    with pytest.raises(RowError, match=r"Line 5: .*NUL"):
        checker.feed(b"4,\0,1\n", trusted=True)


def test_a_row_that_is_only_partly_the_tables_own_is_checked() -> None:
    checker = RowChecker(SCHEMA)
    checker.feed(b"id,name,age\n1,\0", trusted=True)

    with pytest.raises(RowError, match="NUL"):
        checker.feed(b",1\n")


def test_keys_of_the_tables_own_rows_count() -> None:
    checker = RowChecker(SCHEMA, ("id",))
    checker.feed(b"id,name,age\n1,a,1\n2,b,1\n", trusted=True)

    with pytest.raises(RowError, match="key id = 1 stands twice"):
        checker.feed(b"1,c,1\n")


def test_rows_that_are_believed_are_counted() -> None:
    checker = RowChecker(SCHEMA)
    checker.feed(SOUND, trusted=True)

    assert checker.finish() == 3
