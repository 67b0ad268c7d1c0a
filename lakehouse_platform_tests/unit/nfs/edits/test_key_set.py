"""Repeated keys are found in whatever batches they come."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.key_set import KeySet

_KEY = st.tuples(st.integers(0, 15), st.sampled_from(["a", "b", ""]))


def _rows(keys: list[tuple[int, str]]) -> pa.Table:
    return pa.table(
        {"n": pa.array([n for n, _ in keys], pa.int64()), "t": pa.array([t for _, t in keys], pa.string())}
    )


@given(st.lists(st.lists(_KEY, min_size=1, max_size=8), max_size=6))
def test_the_first_repetition_is_found(batches: list[list[tuple[int, str]]]) -> None:
    keys, seen = KeySet(["n", "t"]), set[tuple[int, str]]()
    for batch in batches:
        repeated = [at for at, key in enumerate(batch) if key in seen or key in batch[:at]]

        assert keys.add(_rows(batch)) == min(repeated, default=None)
        if repeated:
            return
        seen |= set(batch)
        assert len(keys) == len(seen)


def test_many_keys_are_kept_apart() -> None:
    keys = KeySet(["n"])
    for start in range(0, 300_000, 10_000):
        assert keys.add(pa.table({"n": range(start, start + 10_000)})) is None

    assert keys.add(pa.table({"n": [300_000, 123_456, 5]})) == 1
