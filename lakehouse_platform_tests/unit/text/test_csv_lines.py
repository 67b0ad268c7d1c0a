"""Row boundaries told from quotes and line ends alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.text.csv_lines import first_fault, last_row_end, row_at, row_starts

_TEXT = st.text(st.sampled_from('a,"\n\r'), max_size=30).map(str.encode)


def _ends(data: bytes) -> list[int]:
    """Return the row ends one byte at a time."""
    ends: list[int] = []
    inside = False
    for place, byte in enumerate(data, 1):
        inside ^= byte == ord('"')
        if byte == ord("\n") and not inside:
            ends.append(place)
    return ends


@given(_TEXT)
def test_rows_end_at_line_ends_outside_of_quotes(data: bytes) -> None:
    ends = _ends(data)

    assert row_starts(data).tolist() == sorted({0, *ends, len(data)})
    assert last_row_end(data) == max(ends, default=0)


@given(_TEXT, st.integers(0, 30))
def test_the_last_row_end_before_a_place_is_found(data: bytes, stop: int) -> None:
    stop = min(stop, len(data))
    assert last_row_end(data, stop) == max(_ends(data[:stop]), default=0)


@given(_TEXT, _TEXT)
def test_a_piece_that_begins_inside_a_quoted_field_is_cut_at_the_same_place(head: bytes, tail: bytes) -> None:
    inside = head.count(b'"') % 2 == 1
    ends = [end - len(head) for end in _ends(head + tail) if end > len(head)]

    assert last_row_end(tail, in_quotes=inside) == max(ends, default=0)


@pytest.mark.parametrize(
    "data",
    [b"", b"a,b\n", b'"a,b",c\n', b'"a""b"\r\n', b'""\n', b'"a\r\nb"\n', b'a,"b"', b',"",\n', b'""""\n'],
)
def test_sound_rows_have_no_fault(data: bytes) -> None:
    assert first_fault(data) is None


@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        (b'a"b\n', 1, "inside an unquoted field"),
        (b'"a"b\n', 2, "follows a closing quote"),
        (b'x\n"a\n', 2, "never closed"),
        (b"a\rb\n", 1, "carriage return"),
        (b"a\0b\n", 1, "NUL"),
        (b'a\n"b" ,c"\n\0', 4, "follows a closing quote"),
    ],
)
def test_the_first_fault_is_named(data: bytes, position: int, words: str) -> None:
    fault = first_fault(data)

    assert fault is not None
    assert fault.position == position
    assert words in fault.reason


@pytest.mark.parametrize("data", [b'"a', b'x,"', b'"a"', b"a\r", b'"a\n'])
def test_the_beginning_of_a_sound_row_has_no_fault(data: bytes) -> None:
    assert first_fault(data, whole=False) is None


@given(_TEXT)
def test_what_has_no_fault_as_a_beginning_has_none_when_it_is_whole_but_open_quotes(data: bytes) -> None:
    fault = first_fault(data)
    if fault is None:
        assert first_fault(data, whole=False) is None


def test_the_row_of_a_byte_is_found() -> None:
    assert [row_at(b'a\n"\n"\nb\n', at) for at in (0, 1, 2, 4, 6, 7)] == [0, 0, 2, 2, 6, 6]
