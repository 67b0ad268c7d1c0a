from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.query_view import MOST_FILES, MOST_QUERY_BYTES, USAGE, QueryFile, QueryFiles


@given(st.binary(min_size=1, max_size=50), st.data())
def test_pieces_make_the_same_query_in_any_order(text: bytes, data: st.DataObject) -> None:
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=4))})
    pieces = [(start, text[start:stop]) for start, stop in pairwise(cuts)]
    file = QueryFile(content=b"")
    for offset, piece in data.draw(st.permutations(pieces)):
        file.write(offset, piece)
    assert (bytes(file.text), file.waiting) == (text, True)


def test_a_new_query_takes_the_place_of_the_last_one() -> None:
    file = QueryFile()
    file.write(0, b"SELECT 111")
    file.waiting = False
    file.show(b"1\n", 5)
    file.write(0, b"SELECT 2")
    assert bytes(file.text) == b"SELECT 2"


def test_the_time_of_change_grows_even_if_the_clock_does_not() -> None:
    file = QueryFile(changed_ns=10)
    file.show(b"a", 10)
    file.show(b"b", 3)
    assert file.changed_ns == 12


@pytest.mark.parametrize(("offset", "status"), [(MOST_QUERY_BYTES, Status.FBIG), (1 << 62, Status.FBIG)])
def test_a_query_is_not_longer_than_a_mebibyte(offset: int, status: Status) -> None:
    with pytest.raises(NfsError) as caught:
        QueryFile(content=b"").write(offset, b"x")
    assert caught.value.status is status


def test_only_an_empty_file_can_be_begun() -> None:
    file = QueryFile()
    file.truncate(len(USAGE), 1)
    with pytest.raises(NfsError, match="INVAL"):
        file.truncate(3, 1)
    file.truncate(0, 1)
    assert file.content == b""


def test_files_unused_for_long_show_the_usage_again() -> None:
    files = QueryFiles(1)
    files.of(b"m", b"t").show(b"result", 2)
    assert files.of(b"m", b"t").content == b"result"
    for number in range(MOST_FILES):
        files.of(b"%d" % number, b"t")
    assert files.of(b"m", b"t").content == USAGE


def test_looking_at_files_takes_no_place_from_others() -> None:
    files = QueryFiles(1)
    files.of(b"m", b"t").show(b"result", 2)
    for number in range(MOST_FILES + 1):
        assert files.shown(b"%d" % number, b"t").content == USAGE
    assert files.shown(b"m", b"t").content == b"result"


def test_queries_that_are_not_run_yet_take_room_too() -> None:
    files = QueryFiles(1)
    for mount in (b"1", b"2"):
        files.of(mount, b"t").text = bytearray(200 << 20)
    files.of(b"3", b"t")
    assert (len(files.shown(b"1", b"t").text), len(files.shown(b"2", b"t").text)) == (0, 200 << 20)


def test_large_results_make_room_for_each_other() -> None:
    files = QueryFiles(1)
    large = bytes(200 << 20)
    for mount in (b"1", b"2"):
        files.of(mount, b"t").show(large, 2)
    assert files.of(b"2", b"t").content is large
    assert files.of(b"1", b"t").content == USAGE
