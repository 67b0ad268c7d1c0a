"""Two compactions of the same files at once: the engine lets both land, and every row would be there twice."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakehouse_platform import DeltaStore, Origin, Schema, Table
from lakehouse_platform.errors import CommitConflictError
from lakehouse_platform.store.commit import Committer
from lakehouse_platform.store.doubling import withdraw_if_doubled


def _scattered(store: DeltaStore, partition_by: tuple[str, ...] = ()) -> Table:
    table = store.create("t", Schema.parse("id:Int64,day:String"), partition_by=partition_by)
    for number in range(6):
        table.append([{"id": number, "day": f"d {number % 2}"}])
    return table


def _ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in table.scan().to_pylist())


def _committer(table: Table) -> Committer:
    return Committer(table.location, table.config, Origin())


@pytest.mark.parametrize("partition_by", [(), ("day",)])
def test_the_second_of_two_compactions_is_taken_back(
    store: DeltaStore, partition_by: tuple[str, ...]
) -> None:
    table = _scattered(store, partition_by)
    base = table.version()
    rivals = [DeltaTable(table.location.uri), DeltaTable(table.location.uri)]
    for rival in rivals:
        rival.optimize.compact()
    assert _ids(table) == sorted([*range(6), *range(6)])

    with pytest.raises(CommitConflictError, match="taken back"):
        withdraw_if_doubled(_committer(table), base, table.version())

    assert _ids(table) == list(range(6))
    assert pa.table(DeltaTable(table.location.uri).scan()).num_rows == 6


def test_rows_appended_meanwhile_stay(store: DeltaStore) -> None:
    table = _scattered(store)
    base = table.version()
    rivals = [DeltaTable(table.location.uri), DeltaTable(table.location.uri)]
    for rival in rivals:
        rival.optimize.compact()
    doubled = table.version()
    table.append([{"id": 9, "day": "later"}])

    with pytest.raises(CommitConflictError):
        withdraw_if_doubled(_committer(table), base, doubled)

    assert _ids(table) == [*range(6), 9]


def test_an_append_meanwhile_does_not_take_a_compaction_back(store: DeltaStore) -> None:
    table = _scattered(store)
    base = table.version()
    stale = DeltaTable(table.location.uri)
    table.append([{"id": 9, "day": "later"}])
    stale.optimize.compact()
    version = table.version()

    withdraw_if_doubled(_committer(table), base, version)

    assert (table.version(), _ids(table)) == (version, [*range(6), 9])
