"""Scans: how much they hold at a time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.store.delta_store import DeltaStore


def _largest_batch(store: DeltaStore, rows: pa.Table) -> int:
    store.create("t", rows.schema)
    store.append("t", rows)
    return max(batch.num_rows for batch in store.scan("t").reader())


def test_narrow_rows_come_in_batches_larger_than_the_engines_own(store: DeltaStore) -> None:
    assert _largest_batch(store, pa.table({"id": range(100_000)})) > 8_192


def test_wide_rows_come_in_small_batches_so_that_few_are_held_at_a_time(store: DeltaStore) -> None:
    # Each row is another text of 20 kB that does not compress, and so 16 MB hold fewer than 1 000 rows.
    texts = [
        "".join(chr(33 + (row * 7919 + place * place) % 90) for place in range(300)) * 70
        for row in range(1_500)
    ]
    rows = pa.table({"text": [f"{row}{text}" for row, text in enumerate(texts)]})
    assert _largest_batch(store, rows) <= 8_192


def test_a_table_without_statistics_is_read_whole(tmp_path: Path, store: DeltaStore) -> None:
    path = tmp_path / "t"
    write_deltalake(
        path, pa.table({"id": range(10)}), configuration={"delta.dataSkippingNumIndexedCols": "0"}
    )
    assert store.at(path).scan().to_arrow().num_rows == 10


def test_the_rows_of_many_small_files_come_together(store: DeltaStore) -> None:
    store.create("t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    for number in range(20):
        store.append("t", [{"id": number, "name": f"n{number}"}])
    batches = list(store.scan("t").reader())
    assert len(batches) == 1
    assert sorted(row["id"] for row in batches[0].to_pylist()) == list(range(20))
    assert store.scan("t", limit=3).to_arrow().num_rows == 3


@pytest.mark.parametrize("limit", [-1, 2**63, 10**30])
def test_a_limit_that_counts_nothing_is_refused(store: DeltaStore, limit: int) -> None:
    store.create("limits", pa.schema([("id", pa.int64())])).append([{"id": 1}])
    with pytest.raises(InvalidArgumentError, match="limit of rows"):
        store.scan("limits", limit=limit)
    assert store.scan("limits", limit=2**63 - 1).to_arrow().num_rows == 1
