"""The facts are those of the real table, however it was written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform.upkeep.facts import expired_sessions, gather_facts
from lakehouse_platform_tests.support.tables import PEOPLE, people
from lakehouse_platform_tests.unit.upkeep.builders import scattered, with_sessions

NOW = datetime(2026, 3, 1, 12, 0, 30, 500_000, tzinfo=UTC)


def test_rows_files_and_bytes_are_the_tables(store: DeltaStore) -> None:
    scattered(store, "people", files=3)
    facts = gather_facts(store, "people", NOW)
    files = store.table("people").data_files()

    assert (facts.version, facts.rows, facts.files, facts.small_files, facts.mergeable_files) == (
        3,
        3,
        3,
        3,
        3,
    )
    assert facts.bytes == sum(file.size for file in files)
    assert facts.columns == ("id", "name", "age")
    assert facts.spec is None


def test_small_files_count_as_mergeable_only_beside_others_in_their_partition(store: DeltaStore) -> None:
    store.create("t", pa.schema([("id", pa.int64()), ("day", pa.string())]), partition_by=["day"])
    for day in ("a", "b", "b", "b", "c"):
        store.append("t", [{"id": 1, "day": day}])
    facts = gather_facts(store, "t", NOW)

    assert (facts.small_files, facts.mergeable_files, facts.partition_columns) == (5, 3, ("day",))


def test_commits_since_z_order_do_not_count_maintenance(store: DeltaStore) -> None:
    scattered(store, "people", files=2)
    store.z_order("people", ["name"])
    store.append("people", people(7))
    store.compact("people")
    store.append("people", people(8))
    facts = gather_facts(store, "people", NOW)

    assert (facts.was_z_ordered, facts.commits_since_z_order) == (True, 2)


def test_a_compaction_is_not_taken_for_a_z_order(store: DeltaStore) -> None:
    scattered(store, "people", files=2)
    store.compact("people")

    assert not gather_facts(store, "people", NOW).was_z_ordered


def test_removable_files_are_those_still_on_the_storage(store: DeltaStore) -> None:
    scattered(store, "people", files=3)
    sizes = [file.size for file in store.table("people").data_files()]
    store.compact("people")
    before = gather_facts(store, "people", NOW)
    store.vacuum("people", retention_hours=0)
    after = gather_facts(store, "people", NOW)

    assert (before.removable_files, before.removable_bytes) == (3, sum(sizes))
    # The engine goes on listing them as long as the log has their tombstones.
    assert (after.removable_files, after.removable_bytes) == (0, 0)


def test_the_log_is_measured_from_its_last_checkpoint(store: DeltaStore) -> None:
    scattered(store, "people", files=3)
    without = gather_facts(store, "people", NOW)
    store.table("people").set_properties({"delta.logRetentionDuration": "interval 30 days"})
    store.table("people").checkpoint()
    store.append("people", people(9))
    facts = gather_facts(store, "people", NOW)

    assert (without.checkpoint, without.commits_since_checkpoint) == (None, 4)
    assert (facts.checkpoint, facts.commits_since_checkpoint, facts.oldest_commit) == (4, 1, 0)
    assert facts.oldest_commit_time is not None
    assert datetime.now(UTC) - facts.oldest_commit_time < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("expiry", "expired"),
    [
        ("2026-03-01T12:00:29Z", 1),
        ("2026-03-01T12:00:29.999Z", 1),
        ("2026-03-01T12:00:29.999999+00:00", 1),
        ("2026-03-01T12:00:30Z", 0),
        ("2026-03-01T12:00:30.1Z", 0),
        ("2026-03-01T12:00:30+00:00", 0),
        ("2026-03-02T00:00:00Z", 0),
        ("2025-12-31T23:59:59Z", 1),
    ],
)
def test_a_session_is_expired_to_the_second_whatever_form_its_time_has(
    store: DeltaStore, expiry: str, expired: int
) -> None:
    with_sessions(store, [expiry])

    assert gather_facts(store, "sessions", NOW).expired_rows == expired


def test_the_predicate_for_expired_sessions_holds_no_value_but_the_time() -> None:
    assert expired_sessions(NOW) == "expires_at < '2026-03-01T12:00:30'"


def test_a_platform_table_comes_with_its_definition(store: DeltaStore) -> None:
    store.ensure(SYSTEM_TABLES["users"])

    assert gather_facts(store, "users", NOW).spec is SYSTEM_TABLES["users"]


def test_an_empty_table_has_facts_too(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    facts = gather_facts(store, "people", NOW)

    assert (facts.rows, facts.files, facts.bytes, facts.removable_files) == (0, 0, 0, 0)
