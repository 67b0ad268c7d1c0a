from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import DataFilesMissingError, InvalidArgumentError, SchemaMismatchError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE, forget_history, ids, people, refused, rows


@pytest.fixture
def scattered(store: DeltaStore) -> DeltaStore:
    """Twenty files of one row, versions 1 to 20."""
    store.create("people", PEOPLE)
    for number in range(20):
        store.append("people", people(number))
    return store


def test_compact_joins_small_files_and_changes_no_row(scattered: DeltaStore) -> None:
    before = rows(scattered, "people")
    result = scattered.compact("people")
    assert (result.version, result.files_added, result.files_removed) == (21, 1, 20)
    assert result.bytes_removed > result.bytes_added > 0
    assert rows(scattered, "people") == before
    assert len(scattered.table("people").data_files()) == 1


def test_compact_of_a_compact_table_makes_no_version(scattered: DeltaStore) -> None:
    scattered.compact("people")
    result = scattered.compact("people")
    assert (result.version, result.files_added, result.files_removed) == (21, 0, 0)


def test_compact_can_be_kept_to_some_partitions(store: DeltaStore) -> None:
    store.create("t", pa.schema([("id", pa.int64()), ("day", pa.string())]), partition_by=["day"])
    for number in range(6):
        store.append("t", [{"id": number, "day": "ab"[number % 2]}])
    result = store.table("t").compact(where="day = 'a'")
    assert (result.files_added, result.files_removed) == (1, 3)
    assert ids(store, "t") == [0, 1, 2, 3, 4, 5]


def test_z_order_changes_no_row_and_lets_more_files_be_skipped(scattered: DeltaStore) -> None:
    before = rows(scattered, "people")
    result = scattered.z_order("people", ["id", "age"])
    assert result.files_removed == 20
    assert rows(scattered, "people") == before


@pytest.mark.parametrize("columns", [["nope"], []])
def test_z_order_by_columns_that_are_not_there_is_refused(scattered: DeltaStore, columns: list[str]) -> None:
    with refused(scattered, "people", SchemaMismatchError):
        scattered.z_order("people", columns)


def test_vacuum_keeps_what_time_travel_needs(scattered: DeltaStore) -> None:
    scattered.compact("people")
    result = scattered.vacuum("people")
    assert (result.files_deleted, result.files, result.dry_run) == (0, (), False)
    assert ids(scattered, "people", version=5) == [0, 1, 2, 3, 4]


def test_vacuum_tries_dry_and_then_deletes_the_same_files(scattered: DeltaStore) -> None:
    removed = {file.path for file in scattered.table("people").data_files()}
    scattered.compact("people")
    planned = scattered.vacuum("people", retention_hours=0, dry_run=True)
    assert (planned.dry_run, planned.files_deleted, set(planned.files)) == (True, 20, removed)
    assert ids(scattered, "people", version=20) == list(range(20))
    done = scattered.vacuum("people", retention_hours=0)
    assert (done.dry_run, done.files, done.bytes_deleted) == (False, planned.files, planned.bytes_deleted)
    assert done.bytes_deleted > 0
    assert ids(scattered, "people") == list(range(20))


def test_a_vacuumed_version_says_that_its_files_are_gone(scattered: DeltaStore) -> None:
    scattered.compact("people")
    scattered.vacuum("people", retention_hours=0)
    with refused(scattered, "people", DataFilesMissingError):
        scattered.read_version("people", 20).to_pylist()
    with refused(scattered, "people", DataFilesMissingError):
        scattered.restore("people", 20)


def test_vacuum_refuses_a_negative_retention(scattered: DeltaStore) -> None:
    with refused(scattered, "people", InvalidArgumentError):
        scattered.vacuum("people", retention_hours=-1)


def test_a_checkpoint_and_a_clean_log_leave_the_table_as_it_was(scattered: DeltaStore) -> None:
    before = rows(scattered, "people")
    forget_history(scattered, "people")
    assert rows(scattered, "people") == before
    assert scattered.append("people", people(99)) == 22


def test_all_maintenance_together_keeps_every_row(scattered: DeltaStore) -> None:
    scattered.delete("people", "id < 5")
    scattered.z_order("people", ["id"])
    scattered.compact("people")
    scattered.vacuum("people", retention_hours=0)
    forget_history(scattered, "people")
    assert ids(scattered, "people") == list(range(5, 20))
