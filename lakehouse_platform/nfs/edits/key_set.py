"""Keys seen so far, as 128-bit hashes: exact for all practical purposes at 16 bytes a key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakehouse_platform.nfs.edits.line_hash import Hashes, row_hashes
from lakehouse_platform.text.csv_lines import Offsets

# Runs are merged up to this many keys (64 MB): merging needs twice a run's memory, looking up is fast in any run.
_LARGEST_MERGE = 1 << 22


class KeySet:
    """A set of keys that finds repetitions as keys are added in batches."""

    def __init__(self, key: Sequence[str]) -> None:
        self._key = list(key)
        self._runs: list[Hashes] = []

    def __len__(self) -> int:
        return sum(run.shape[1] for run in self._runs)

    def add(self, rows: pa.Table) -> int | None:
        """Add the keys of rows and return the first row whose key was there before, in the rows or earlier, or None."""
        hashes = row_hashes(rows.select(self._key))
        order = np.argsort(hashes[0], kind="stable")
        run = hashes[:, order]
        repeated = _repeated_within(run) + [at for old in self._runs for at in _repeated(old, run)]
        if repeated:
            return int(order[repeated].min())
        self._insert(run)
        return None

    def _insert(self, run: Hashes) -> None:
        while self._runs and self._runs[-1].shape[1] <= 2 * run.shape[1] <= _LARGEST_MERGE:
            both = np.concatenate((self._runs.pop(), run), axis=1)
            run = both[:, np.argsort(both[0], kind="stable")]
        self._runs.append(run)


def _repeated_within(run: Hashes) -> list[int]:
    """Return the places in a sorted run of keys that stand in it before."""
    neighbours = np.flatnonzero(run[0, 1:] == run[0, :-1])
    suspects: Offsets = np.unique(np.concatenate((neighbours, neighbours + 1)))
    seen = set[tuple[int, int]]()
    repeated: list[int] = []
    for at in suspects.tolist():
        pair = int(run[0, at]), int(run[1, at])
        if pair in seen:
            repeated.append(at)
        seen.add(pair)
    return repeated


def _repeated(old: Hashes, run: Hashes) -> list[int]:
    """Return the places in a run of keys that stand in an older run."""
    low = np.searchsorted(old[0], run[0])
    suspects = np.flatnonzero(old[0][np.minimum(low, old.shape[1] - 1)] == run[0])
    return [at for at in suspects.tolist() if _holds(old, int(low[at]), run[0, at], run[1, at])]


def _holds(old: Hashes, low: int, first: np.uint64, second: np.uint64) -> bool:
    high = int(np.searchsorted(old[0], first, side="right"))
    return bool((old[1, low:high] == second).any())
