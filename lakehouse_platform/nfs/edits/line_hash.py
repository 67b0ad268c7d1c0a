"""Lines as 128-bit hashes: two arrays of 64 bits, in one array of shape (2, lines)."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from lakehouse_platform.text.csv_lines import Offsets

Hashes = npt.NDArray[np.uint64]
_SEEDS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # two independent functions
_MATCHED_AT_ONCE = 1 << 21  # lines; sorting takes some 40 bytes for each


def no_hashes() -> Hashes:
    """Return the hashes of no lines."""
    return np.empty((2, 0), np.uint64)


def line_hashes(data: bytes, starts: Offsets) -> Hashes:
    """Return the hashes of the lines that begin at some offsets; the last offset ends the last line."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(starts)), pa.py_buffer(data)]
    lines = pa.Array.from_buffers(pa.large_binary(), len(starts) - 1, buffers)
    return _hashes(cast(pl.Series, pl.from_arrow(lines)).to_frame())


def row_hashes(rows: pa.Table) -> Hashes:
    """Return the hashes of the rows of a table; equal rows of equal columns have equal hashes."""
    return _hashes(cast(pl.DataFrame, pl.from_arrow(rows)))


def match_lines(removed: Hashes, added: Hashes) -> Offsets:
    """Pair each added line with an equal removed one, each of which is used once: the k-th with the k-th.

    Returns:
        For each added line the number of its removed one, or -1.
    """
    count = max(removed.shape[1], added.shape[1])
    bits = max(0, (count // _MATCHED_AT_ONCE).bit_length())
    result = np.full(added.shape[1], -1, np.int64)
    if bits == 0:
        return _matched(removed, added)
    shift = np.uint64(64 - bits)
    for part in range(1 << bits):
        ours = np.flatnonzero(removed[0] >> shift == part)
        theirs = np.flatnonzero(added[0] >> shift == part)
        found = _matched(removed[:, ours], added[:, theirs])
        hits = found >= 0
        result[theirs[hits]] = ours[found[hits]]
    return result


def _matched(removed: Hashes, added: Hashes) -> Offsets:
    result = np.full(added.shape[1], -1, np.int64)
    if not removed.shape[1] or not added.shape[1]:
        return result
    order_removed = np.argsort(removed[0], kind="stable")
    order_added = np.argsort(added[0], kind="stable")
    sorted_removed, sorted_added = removed[0][order_removed], added[0][order_added]
    rank = np.arange(len(sorted_added)) - np.searchsorted(sorted_added, sorted_added, side="left")
    slot = np.searchsorted(sorted_removed, sorted_added, side="left") + rank
    hits = np.flatnonzero(slot < np.searchsorted(sorted_removed, sorted_added, side="right"))
    ours, theirs = order_removed[slot[hits]], order_added[hits]
    equal = removed[1][ours] == added[1][theirs]
    result[theirs[equal]] = ours[equal]
    return result


def _hashes(frame: pl.DataFrame) -> Hashes:
    result = np.empty((2, frame.height), np.uint64)
    for place, seed in enumerate(_SEEDS):
        result[place] = frame.hash_rows(seed).to_numpy()
    return result
