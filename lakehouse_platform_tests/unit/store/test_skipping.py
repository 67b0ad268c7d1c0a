from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table


@pytest.fixture
def table(store: DeltaStore) -> Table:
    """Four files: ids 0 to 3 in partitions a and b by turns."""
    columns = pa.schema([("id", pa.int64()), ("part", pa.string()), ("amount", pa.float64())])
    table = store.create("t", columns, partition_by=["part"])
    for number in range(4):
        table.append([{"id": number, "part": "ab"[number % 2], "amount": float(number)}])
    return table


@pytest.mark.parametrize(
    ("predicate", "read"),
    [
        (None, 4),
        ("true", 4),
        ("false", 0),
        ("id > 2", 1),
        ("part = 'a'", 2),
        ("part = 'a' AND id > 1", 1),
        ("part = 'a' OR id > 2", 3),
        ("id = 99", 0),
    ],
)
def test_files_that_cannot_hold_a_row_are_skipped(table: Table, predicate: str | None, read: int) -> None:
    stats = table.skipping(predicate)
    assert (stats.total_files, stats.files_read, stats.files_skipped) == (4, read, 4 - read)


@pytest.mark.parametrize(
    "predicate", ["amount > 2", "part LIKE 'a%'", "id % 2 = 0", "abs(id) > 2", "upper(part) = 'A'"]
)
def test_a_condition_that_statistics_say_nothing_about_skips_nothing(table: Table, predicate: str) -> None:
    assert table.skipping(predicate).files_read == 4


def test_the_other_conditions_still_skip_files(table: Table) -> None:
    assert table.skipping("amount > 0 AND part = 'a' AND id IN (2, 3)").files_read == 1
