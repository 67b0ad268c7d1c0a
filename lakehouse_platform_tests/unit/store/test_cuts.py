from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.store.cuts import Cut, FileSplices, effective, spliced

SCHEMA = pa.schema([("n", pa.int64())])


def table(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers}, schema=SCHEMA)


def batches(sizes: list[int]) -> list[pa.RecordBatch]:
    edges = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
    return [pa.record_batch({"n": range(a, b)}, schema=SCHEMA) for a, b in pairwise(edges)]


def numbers(found: list[pa.RecordBatch]) -> list[int]:
    return [row["n"] for batch in found for row in batch.to_pylist()]


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[int], list[Cut]]:
    sizes = draw(st.lists(st.integers(0, 5), max_size=6))
    edges = sorted(draw(st.lists(st.integers(0, sum(sizes)), max_size=8)))
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    news = [draw(st.lists(st.integers(100, 120), max_size=3)) for _ in spans]
    return sizes, [Cut(start, stop, table(*new)) for (start, stop), new in zip(spans, news, strict=True)]


@given(_cases())
def test_cuts_do_to_batches_what_slices_do_to_a_list(case: tuple[list[int], list[Cut]]) -> None:
    sizes, cuts = case
    gone: list[pa.RecordBatch] = []
    model = list(range(sum(sizes)))
    taken = [number for cut in cuts for number in model[cut.start : cut.stop]]
    for cut in reversed(cuts):
        model[cut.start : cut.stop] = cut.rows.column("n").to_pylist()
    assert numbers(list(spliced(batches(sizes), cuts, gone.append))) == model
    assert numbers(gone) == taken


@pytest.mark.parametrize("cut", [Cut(2, 4, table()), Cut(4, 4, table(9)), Cut(3, 9, table(9))])
def test_a_cut_beyond_the_end_of_the_file_is_refused(cut: Cut) -> None:
    with pytest.raises(InvalidArgumentError, match="data file that has 3 rows"):
        list(spliced(batches([2, 1]), [cut], lambda _: None))


@pytest.mark.parametrize(
    "spans",
    [[(0, 2), (1, 3)], [(4, 5), (0, 1)], [(3, 1)], [(-1, 1)]],
    ids=["overlap", "order", "span", "sign"],
)
def test_cuts_that_are_no_sorted_list_are_refused(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidArgumentError, match="sorted"):
        effective([FileSplices("f", tuple(Cut(a, b, table()) for a, b in spans))])


def test_a_file_named_twice_is_refused() -> None:
    file = FileSplices("f", (Cut(0, 1, table()),))
    with pytest.raises(InvalidArgumentError):
        effective([file, file])


def test_cuts_that_change_nothing_are_left_out() -> None:
    files: list[Any] = [FileSplices("a", (Cut(1, 1, table()),)), FileSplices("b", (Cut(1, 2, table()),))]
    assert set(effective(files)) == {"b"}
