"""Which new row takes the place of which removed one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_platform.nfs.edits.pairing import paired_by_key, paired_by_place, pairing_key


def _keys(values: list[int | None]) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


@pytest.mark.parametrize(
    ("removed", "added", "pairs"),
    [
        ([1, 2, 3], [3, 9, 1], [2, -1, 0]),
        ([1], [], []),
        ([1, 1], [1], None),
        ([1], [1, 1], None),
        ([None, 1], [1], None),
    ],
)
def test_an_inferred_key_pairs_only_where_it_is_unique(
    removed: list[int | None], added: list[int | None], pairs: list[int] | None
) -> None:
    found = paired_by_key(_keys(removed), _keys(added), declared=False)

    assert found is None if pairs is None else found is not None and found.tolist() == pairs


def test_a_declared_key_uses_each_removed_row_once() -> None:
    found = paired_by_key(_keys([5, 1]), _keys([1, 1, 7]), declared=True)

    assert found is not None
    assert found.tolist() == [1, -1, -1]


def test_the_kth_takes_the_place_of_the_kth_of_its_hunk() -> None:
    assert paired_by_place(np.array([0, 0, 2]), np.array([0, 1, 2, 2])).tolist() == [0, -1, 2, -1]


def test_the_key_that_pairs_is_inferred() -> None:
    assert pairing_key(pa.schema([("a", pa.string()), ("id", pa.string())])) == ("id",)
    assert pairing_key(pa.schema([("a", pa.string()), ("n", pa.int32())])) == ("n",)
    assert pairing_key(pa.schema([("a", pa.string())])) == ()
