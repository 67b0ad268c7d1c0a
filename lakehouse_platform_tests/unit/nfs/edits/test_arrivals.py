"""What arrives is checked at once, in whatever order it comes, and the draft's shape is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import DuplicateKeyError, RowError, StorageUnavailableError
from lakehouse_platform.nfs.edits.arrivals import Arrivals, Rules
from lakehouse_platform.nfs.edits.draft import Bytes, Draft
from lakehouse_platform.nfs.edits.session import Ending, Shape
from lakehouse_platform_tests.support.editing import PEOPLE, PEOPLE_FILE

HEADER = b"id,name,age\n"
TAKEN = {2}


def known_key(rows: pa.Table) -> str | None:
    found = TAKEN & set(rows.column("id").to_pylist())
    return f"there is a row with id {found}" if found else None


@dataclass
class Log:
    data: bytearray = field(default_factory=bytearray)

    def pread(self, place: int, count: int) -> bytes:
        return bytes(self.data[place : place + count])


class Arriving:
    def __init__(
        self, base: bytes = PEOPLE_FILE, key: tuple[str, ...] = (), known: object = known_key
    ) -> None:
        self.log = Log()
        self.draft = Draft(Bytes(base), self.log)
        rules = Rules(PEOPLE, key, None, known)  # type: ignore[arg-type]
        self.arrivals = Arrivals(self.draft.base, PEOPLE.names, rules)

    def write(self, offset: int, data: bytes) -> Shape:
        self.log.data += data
        self.draft.write(offset, len(data), len(self.log.data) - len(data))
        self.arrivals.touch(offset)
        shape = self.arrivals.look(self.draft.peek())
        self.arrivals.check_patch(self.draft.peek(), offset, offset + len(data))
        return shape

    def append(self, data: bytes) -> Shape:
        return self.write(self.draft.size, data)

    def cut(self, size: int) -> Shape:
        self.draft.truncate(size)
        self.arrivals.cut(size)
        return self.arrivals.look(self.draft.peek())


def test_an_append_in_pieces_has_rows_when_they_are_whole() -> None:
    file = Arriving()
    assert file.append(b"4,n4") == Shape(is_append=True, size=40, ending=Ending.BROKEN, added=4)
    assert file.append(b",34").ending is Ending.TAIL
    shape = file.append(b"\n5,n")
    assert (shape.has_rows, shape.ending) == (True, Ending.BROKEN)
    assert file.arrivals.rows_end() == len(PEOPLE_FILE) + len(b"4,n4,34\n")


def test_a_wrong_row_of_an_append_is_named_by_its_line_in_the_file() -> None:
    with pytest.raises(RowError) as caught:
        Arriving().append(b"4,n4,34\n5,n5,x\n")
    assert (caught.value.line, caught.value.column) == (6, "age")


def test_a_copy_in_progress_looks_like_the_beginning_of_the_file() -> None:
    file = Arriving()
    assert file.cut(0).is_cautious
    assert file.append(HEADER).is_cautious
    shape = file.append(b"1,n1,3")
    assert (shape.is_cautious, shape.cuts_row, shape.ending) == (True, True, Ending.TAIL)
    shape = file.append(b"1")
    assert (shape.is_cautious, shape.cuts_row, shape.ending) == (True, False, Ending.TAIL)
    assert not file.append(b"\n9,n9,39\n").is_cautious


def test_a_file_written_anew_with_more_rows_is_an_append() -> None:
    file = Arriving()
    file.cut(0)
    shape = file.append(PEOPLE_FILE + b"4,n4,34\n")
    assert (shape.is_append, shape.has_rows, shape.ending) == (True, True, Ending.WHOLE)


def test_a_hole_is_not_checked_and_breaks_the_file_until_it_is_filled() -> None:
    file = Arriving()
    file.cut(0)
    assert file.write(20, b"2,n2,32\n").ending is Ending.BROKEN
    assert file.write(0, HEADER + b"7,n7,37\n").ending is Ending.WHOLE


def test_a_wrong_row_inside_of_a_patch_is_refused_and_its_edges_are_not_judged() -> None:
    with pytest.raises(RowError) as caught:
        Arriving().write(0, PEOPLE_FILE.replace(b"32", b"xx"))
    assert (caught.value.line, caught.value.column) == (3, "age")
    assert not Arriving().write(PEOPLE_FILE.index(b"2,n2") + 2, b"zz").is_append


def test_a_key_that_the_table_holds_is_refused_in_an_append_only() -> None:
    with pytest.raises(DuplicateKeyError, match="id"):
        Arriving(key=("id",)).append(b"2,n2,32\n")
    file = Arriving(key=("id",))
    file.cut(0)
    assert file.append(HEADER + b"2,two,32\n").ending is Ending.WHOLE
    with pytest.raises(RowError, match="twice"):
        file.append(b"2,again,32\n")


def test_keys_wait_for_the_publication_while_the_storage_is_away() -> None:
    def away(rows: pa.Table) -> str | None:
        raise StorageUnavailableError("it does not answer")

    assert Arriving(key=("id",), known=away).append(b"2,n2,32\n").has_rows


NEW = HEADER + b"".join(b'%d,"n,%d",%d\n' % (n, n, n % 90) for n in range(12)) + b"99,end,1"


@given(st.randoms(use_true_random=False), st.lists(st.integers(1, len(NEW) - 1), max_size=5), st.booleans())
def test_the_order_of_the_pieces_makes_no_difference(order: object, cuts: list[int], keyed: bool) -> None:
    edges = [0, *sorted(set(cuts)), len(NEW)]
    pieces = list(pairwise(edges))
    order.shuffle(pieces)  # type: ignore[attr-defined]
    file, whole = Arriving(key=("id",) if keyed else ()), Arriving()
    for one in (file, whole):
        one.cut(0)
    for start, stop in pieces:
        shape = file.write(start, NEW[start:stop])
    assert shape == whole.append(NEW)
    assert shape.ending is Ending.TAIL
