"""Equal lines of two windows, in order: which lines of one are lines of the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt

from lakehouse_platform.nfs.edits.line_hash import Hashes
from lakehouse_platform.text.csv_lines import Offsets

_Column = npt.NDArray[np.uint64]
# Lines up to which `difflib`, whose time grows with the square, finds more than unique lines tell.
_SMALL = 256
# Of so many lines or more, hardly any in the same order: they were sorted anew, and a closer look finds no more.
_SHUFFLED = 1 << 12


def common_lines(base: Hashes, new: Hashes) -> tuple[Offsets, Offsets]:
    """Return the numbers of lines that are equal, growing on both sides.

    Lines that stand once on each side are paired first (as "patience diff" does), then what lies between them.
    """
    if base.shape[1] <= _SMALL and new.shape[1] <= _SMALL:
        return _arrays(_small_matches(base[0], new[0], 0, 0))
    ours, theirs = _unique_matches(base, new)
    lines = min(base.shape[1], new.shape[1])
    if lines >= _SHUFFLED and len(ours) < lines // 16:
        return ours, theirs
    more = [
        _arrays(_gap_matches(base[0], new[0], *gap)) for gap in _promising_gaps(base[0], new[0], ours, theirs)
    ]
    if not more:
        return ours, theirs
    ours = np.concatenate([ours, *(found for found, _ in more)])
    theirs = np.concatenate([theirs, *(found for _, found in more)])
    order = np.argsort(ours)
    return ours[order], theirs[order]


def _unique_matches(base: Hashes, new: Hashes) -> tuple[Offsets, Offsets]:
    ours, values = _once(base[0])
    theirs, other_values = _once(new[0])
    if not len(ours):
        return ours, theirs[:0]
    slot = np.minimum(np.searchsorted(values, other_values), len(values) - 1)
    shared = np.flatnonzero(values[slot] == other_values)
    ours, theirs = ours[slot[shared]], theirs[shared]
    order = np.argsort(ours)
    ours, theirs = ours[order], theirs[order]
    equal = base[1][ours] == new[1][theirs]
    ours, theirs = ours[equal], theirs[equal]
    kept = _longest_growing(theirs)
    return ours[kept], theirs[kept]


def _once(hashes: _Column) -> tuple[Offsets, _Column]:
    """Return the places of the values that stand once, and those values, sorted by value."""
    order = np.argsort(hashes)
    values = hashes[order]
    differs = values[1:] != values[:-1]
    once = np.ones(len(values), np.bool_)
    once[1:] &= differs
    once[:-1] &= differs
    return order[once].astype(np.int64, copy=False), values[once]


def _longest_growing(values: Offsets) -> Offsets:
    """Return the places of a longest growing subsequence."""
    if np.all(values[1:] > values[:-1]):
        return np.arange(len(values))
    tails: list[int] = []
    tail_values: list[int] = []
    before = np.empty(len(values), np.int64)
    for place, value in enumerate(values.tolist()):
        length = bisect_left(tail_values, value)
        before[place] = tails[length - 1] if length else -1
        tails[length : length + 1] = [place]
        tail_values[length : length + 1] = [value]
    chain = [tails[-1]]
    while (place := int(before[chain[-1]])) >= 0:
        chain.append(place)
    return np.array(chain[::-1], np.int64)


def _promising_gaps(
    base: _Column,
    new: _Column,
    ours: Offsets,
    theirs: Offsets,
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges between matches in which both sides hold lines that the other side has too."""
    left, right = _others(ours, len(base)), _others(theirs, len(new))
    left, right = left[np.isin(base[left], new[right])], right[np.isin(new[right], base[left])]
    gaps = np.intersect1d(np.searchsorted(ours, left), np.searchsorted(theirs, right))
    starts = np.concatenate(([0], ours + 1)), np.concatenate(([0], theirs + 1))
    stops = np.append(ours, len(base)), np.append(theirs, len(new))
    for gap in gaps.tolist():
        yield int(starts[0][gap]), int(stops[0][gap]), int(starts[1][gap]), int(stops[1][gap])


def _others(places: Offsets, count: int) -> Offsets:
    others = np.ones(count, np.bool_)
    others[places] = False
    return np.flatnonzero(others)


def _gap_matches(
    base: _Column,
    new: _Column,
    start: int,
    stop: int,
    new_start: int,
    new_stop: int,
) -> list[tuple[int, int]]:
    left, right = base[start:stop], new[new_start:new_stop]
    if len(left) <= _SMALL and len(right) <= _SMALL:
        return _small_matches(left, right, start, new_start)
    shorter = min(len(left), len(right))
    ahead = _equal_run(left[:shorter], right[:shorter])
    behind = _equal_run(left[ahead:][::-1][: shorter - ahead], right[ahead:][::-1][: shorter - ahead])
    return [(start + n, new_start + n) for n in range(ahead)] + [
        (stop - n, new_stop - n) for n in range(behind, 0, -1)
    ]


def _equal_run(left: _Column, right: _Column) -> int:
    different = left != right
    return int(np.argmax(different)) if different.any() else len(left)


def _small_matches(
    left: _Column,
    right: _Column,
    start: int,
    new_start: int,
) -> list[tuple[int, int]]:
    blocks = SequenceMatcher(None, left.tolist(), right.tolist(), autojunk=False).get_matching_blocks()
    return [(start + block.a + n, new_start + block.b + n) for block in blocks for n in range(block.size)]


def _arrays(pairs: list[tuple[int, int]]) -> tuple[Offsets, Offsets]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
