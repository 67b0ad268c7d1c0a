"""Rows come out whole, whatever the pieces in which their bytes arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.rows import RowSplitter
from lakehouse_platform.text.csv_lines import last_row_end

_PIECES = st.lists(st.text(st.sampled_from('ab,"\n'), max_size=12).map(str.encode), max_size=10)


@given(_PIECES)
def test_all_whole_rows_come_out_at_once_and_the_rest_is_kept(pieces: list[bytes]) -> None:
    splitter, given_out, arrived = RowSplitter(), b"", b""
    for piece in pieces:
        arrived += piece
        given_out += splitter.feed(piece)

        assert len(given_out) == splitter.offset == last_row_end(arrived)
        assert given_out + splitter.rest == arrived
        assert splitter.is_whole == (len(given_out) == len(arrived))
        assert splitter.rest_size == len(splitter.rest)

    assert given_out + splitter.finish() == arrived
    assert splitter.is_whole


def test_a_memoryview_is_taken() -> None:
    assert RowSplitter().feed(memoryview(b"a\nb")) == b"a\n"
