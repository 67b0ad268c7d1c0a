"""Equal lines of two windows are paired in order."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.line_hash import Hashes, match_lines
from lakehouse_platform.nfs.edits.window_match import common_lines


def _hashes(values: list[int]) -> Hashes:
    return np.array([values, [value * 3 for value in values]], np.uint64).reshape(2, -1)


def _check(left: list[int], right: list[int]) -> int:
    ours, theirs = common_lines(_hashes(left), _hashes(right))
    assert (np.diff(ours) > 0).all()
    assert (np.diff(theirs) > 0).all()
    assert [left[at] for at in ours] == [right[at] for at in theirs]
    return len(ours)


_SHORT = st.lists(st.integers(0, 6), max_size=12)
_LONG = st.lists(st.integers(0, 900), min_size=300, max_size=400)


@given(_SHORT | _LONG, _SHORT | _LONG)
def test_pairs_are_equal_lines_in_order(left: list[int], right: list[int]) -> None:
    _check(left, right)


@given(st.sets(st.integers(0, 2999), max_size=40), st.integers(0, 9))
def test_all_lines_that_were_left_alone_are_paired(deleted: set[int], seed: int) -> None:
    values = random.Random(seed).sample(range(10_000), 3000)
    assert _check(values, [value for at, value in enumerate(values) if at not in deleted]) == 3000 - len(
        deleted
    )


@pytest.mark.parametrize("changed", [0, 500, 999])
def test_lines_that_repeat_are_paired_between_those_that_do_not(changed: int) -> None:
    left = [at // 10 if at % 10 else 1000 + at for at in range(1000)]
    right = [*left[:changed], 5000, *left[changed + 1 :]]

    assert _check(left, right) == 999


def test_long_runs_of_one_line_are_paired_at_both_ends() -> None:
    assert _check([7] * 1000, [7] * 400 + [8] + [7] * 599) == 999


def test_nothing_in_common_is_nothing() -> None:
    assert _check(list(range(400)), list(range(400, 800))) == 0
    assert _check([], [1]) == 0


@given(_SHORT, _SHORT)
def test_lines_are_matched_as_multisets_whatever_their_order(removed: list[int], added: list[int]) -> None:
    found = match_lines(_hashes(removed), _hashes(added)).tolist()

    used = [at for at in found if at >= 0]
    assert len(set(used)) == len(used)
    assert [removed[at] for at in used] == [value for value, at in zip(added, found, strict=True) if at >= 0]
    assert len(used) == sum(min(removed.count(value), added.count(value)) for value in set(added))


def test_millions_of_lines_are_matched_in_parts() -> None:
    generator = np.random.default_rng(1)
    removed = generator.integers(0, 2**63, (2, 2_500_000), np.uint64)
    order = generator.permutation(removed.shape[1])

    assert (match_lines(removed, removed[:, order]) == order).all()
