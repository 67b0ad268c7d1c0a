from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    InvalidTimestampError,
    StorageError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakehouse_platform.model.results import ChangeKind
from lakehouse_platform.model.times import to_rfc3339
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE, forget_history, ids, people, refused, rows

INSERT, DELETE = ChangeKind.INSERT, ChangeKind.DELETE
PRE, POST = ChangeKind.UPDATE_PREIMAGE, ChangeKind.UPDATE_POSTIMAGE


@pytest.fixture
def aged(filled: DeltaStore) -> DeltaStore:
    """Versions 1: rows 1-5; 2: row 6 more; 3: rows 1, 2 gone; 4: row 6 is 99 years old."""
    filled.append("people", people(6))
    filled.delete("people", "id <= 2")
    filled.update("people", {"age": "99"}, "id = 6")
    return filled


def _ids(result: object) -> list[int]:
    return sorted(row["id"] for row in result.to_pylist())  # type: ignore[attr-defined]


def test_every_version_can_be_read(aged: DeltaStore) -> None:
    assert [_ids(aged.read_version("people", version)) for version in range(5)] == [
        [],
        [1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5, 6],
        [3, 4, 5, 6],
        [3, 4, 5, 6],
    ]
    assert rows(aged, "people", version=3, predicate="id = 6")[0]["age"] == 30


@pytest.mark.parametrize("version", [5, 99, -1, 2**40])
def test_a_version_that_does_not_exist_is_refused(aged: DeltaStore, version: int) -> None:
    with refused(aged, "people", VersionNotFoundError, "0 to 4"):
        aged.read_version("people", version).to_pylist()
    with refused(aged, "people", VersionNotFoundError):
        aged.restore("people", version)


def test_a_time_finds_the_version_that_was_newest_then(aged: DeltaStore) -> None:
    history = aged.history("people")
    for entry in history:
        newest = max(other.version for other in history if other.timestamp <= entry.timestamp)
        assert aged.table("people").version_at(entry.timestamp) == newest


def test_a_text_time_reads_the_table_as_it_was(aged: DeltaStore) -> None:
    newest = aged.history("people", 1)[0]
    later = to_rfc3339(newest.timestamp + timedelta(seconds=1))
    assert _ids(aged.read_timestamp("people", later)) == [3, 4, 5, 6]


def test_a_time_before_creation_is_refused_and_names_the_first(aged: DeltaStore) -> None:
    first = aged.history("people")[-1].timestamp
    before = to_rfc3339(first - timedelta(seconds=1))
    with refused(aged, "people", TimestampOutOfRangeError, to_rfc3339(first)[:10]):
        aged.read_timestamp("people", before).to_pylist()


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-02-01", "2026-02-01T12:00:00", "2026-02-30T12:00:00Z", ""]
)
def test_a_time_that_is_not_rfc3339_with_a_zone_is_refused(aged: DeltaStore, text: str) -> None:
    with refused(aged, "people", InvalidTimestampError):
        aged.read_timestamp("people", text).to_pylist()


def test_history_tells_every_commit_newest_first(aged: DeltaStore) -> None:
    history = aged.history("people")
    assert [entry.version for entry in history] == [4, 3, 2, 1, 0]
    assert [entry.operation for entry in history] == ["UPDATE", "DELETE", "WRITE", "WRITE", "CREATE TABLE"]
    assert all(newer.timestamp >= older.timestamp for newer, older in pairwise(history))


def test_history_tells_who_and_through_which_door(aged: DeltaStore) -> None:
    named = aged.through(aged.origin.because("spring cleaning"))
    named.delete("people", "id = 3")
    entry = named.history("people", 1)[0]
    assert (entry.actor, entry.door, entry.reason) == ("owner", "python", "spring cleaning")


@pytest.mark.parametrize("limit", [1, 2, 99])
def test_history_stops_at_its_limit(aged: DeltaStore, limit: int) -> None:
    assert len(aged.history("people", limit)) == min(limit, 5)


def test_history_keeps_right_numbers_after_the_log_was_cleaned(aged: DeltaStore) -> None:
    forget_history(aged, "people")
    aged.append("people", people(9))
    versions = [entry.version for entry in aged.history("people")]
    assert versions[0] == aged.table("people").version() == 6
    assert versions == list(range(6, 6 - len(versions), -1))
    with refused(aged, "people", VersionNotFoundError):
        aged.read_version("people", 1).to_pylist()


def test_restore_brings_an_old_version_back_as_a_new_one(aged: DeltaStore) -> None:
    assert aged.restore("people", 1) == 5
    assert rows(aged, "people") == rows(aged, "people", version=1)
    assert ids(aged, "people", version=4) == [3, 4, 5, 6]


def test_restore_goes_back_to_a_time(aged: DeltaStore) -> None:
    target = aged.history("people")[0].timestamp
    aged.append("people", people(50))
    version = aged.table("people").version_at(target)
    aged.table("people").restore(target)
    assert rows(aged, "people") == rows(aged, "people", version=version)


def test_restore_of_the_newest_version_changes_no_row(aged: DeltaStore) -> None:
    aged.restore("people", 4)
    assert rows(aged, "people") == rows(aged, "people", version=4)


def test_diff_by_key_tells_inserts_deletes_and_updates(aged: DeltaStore) -> None:
    changes = [(row["_change_type"], row["id"], row["age"]) for row in aged.diff("people", 1, 4).to_pylist()]
    assert sorted(changes) == sorted([(DELETE, 1, 30), (DELETE, 2, 30), (INSERT, 6, 99)])
    updates = [(row["_change_type"], row["age"]) for row in aged.diff("people", 3, 4).to_pylist()]
    assert sorted(updates) == sorted([(PRE, 30), (POST, 99)])


def test_diff_backwards_is_the_opposite(aged: DeltaStore) -> None:
    kinds = sorted(row["_change_type"] for row in aged.diff("people", 4, 1).to_pylist())
    assert kinds == sorted([INSERT, INSERT, DELETE])


def test_diff_without_a_key_counts_equal_rows(store: DeltaStore) -> None:
    store.create("t", pa.schema([("word", pa.string())]))
    store.append("t", [{"word": "a"}, {"word": "a"}, {"word": None}])
    store.overwrite("t", [{"word": "a"}, {"word": None}, {"word": None}])
    changes = sorted((row["_change_type"], row["word"]) for row in store.diff("t", 1, 2).to_pylist())
    assert changes == [(DELETE, "a"), (INSERT, None)]


def test_diff_of_a_version_with_itself_or_over_a_compaction_is_empty(aged: DeltaStore) -> None:
    aged.compact("people")
    assert aged.diff("people", 4, 4).num_rows == 0
    assert aged.diff("people", 4, aged.table("people").version()).num_rows == 0


def test_diff_over_an_added_column_reads_the_old_rows_as_null(filled: DeltaStore) -> None:
    filled.append("people", [{"id": 6, "name": "n6", "age": 1, "city": "Ulm"}], evolve=True)
    changes = filled.diff("people", 1, 2).to_pylist()
    assert [(row["_change_type"], row["id"], row["city"]) for row in changes] == [(INSERT, 6, "Ulm")]


def test_the_change_feed_tells_what_each_commit_did(store: DeltaStore) -> None:
    store.create("people", PEOPLE, properties={"delta.enableChangeDataFeed": "true"})
    store.append("people", people(1, 2))
    store.update("people", {"age": "31"}, "id = 1")
    store.delete("people", "id = 2")
    feed = store.table("people").change_feed(1, 3).to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in feed)
    assert told == sorted([(1, INSERT, 1), (1, INSERT, 2), (2, PRE, 1), (2, POST, 1), (3, DELETE, 2)])


def test_the_change_feed_of_a_table_without_one_is_refused(filled: DeltaStore) -> None:
    with pytest.raises(StorageError, match="enableChangeDataFeed"):
        filled.table("people").change_feed(0, 1).to_pylist()
