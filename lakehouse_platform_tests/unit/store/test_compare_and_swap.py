from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakehouse_platform.errors import CommitConflictError
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def table(store: DeltaStore) -> Table:
    return store.create("t", SCHEMA)


def _ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in table.scan().to_pylist())


def test_an_append_lands_right_after_the_expected_version(table: Table) -> None:
    assert table.append([{"id": 1}], expected_version=0) == 1


def test_an_append_after_another_version_is_refused_and_writes_nothing(table: Table) -> None:
    table.append([{"id": 1}])
    with pytest.raises(CommitConflictError, match="at version 1, not at 0"):
        table.append([{"id": 2}], expected_version=0)
    assert _ids(table) == [1]


def test_of_many_appends_after_one_version_exactly_one_wins(table: Table) -> None:
    def attempt(number: int) -> bool:
        try:
            table.append([{"id": number}], expected_version=0)
        except CommitConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(8)))
    assert won.count(True) == 1
    assert _ids(table) == [won.index(True)]


def test_a_transaction_that_landed_is_not_a_conflict(table: Table) -> None:
    once = AppTransaction("app", 7)
    table.append([{"id": 1}], expected_version=0, transaction=once)
    assert table.append([{"id": 1}], expected_version=0, transaction=once) == 1
    assert _ids(table) == [1]


def test_a_commit_says_what_its_writer_adds(table: Table) -> None:
    version = table.append([{"id": 1}], metadata={"lakehouse.auditSequence": "1"})
    info = table.commit_info(version)
    assert info is not None
    assert info["lakehouse.auditSequence"] == "1"
    assert info["lakehouse.actor"] == "owner"


def test_a_version_without_a_log_entry_says_nothing(table: Table) -> None:
    assert table.commit_info(99) is None


def test_what_an_application_wrote_last_is_told_with_the_version_it_was_read_at(table: Table) -> None:
    assert table.landed("app") == (0, None)
    table.append([{"id": 1}], transaction=AppTransaction("app", 7))
    assert table.landed("app") == (1, 7)
