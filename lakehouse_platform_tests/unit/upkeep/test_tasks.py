"""A task touches the tables that are due, and only those; one table's failure stops no other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakehouse_platform.errors import LakehouseError, TableNotFoundError
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.policy import Task
from lakehouse_platform.upkeep.tasks import Act, Result, Upkeep
from lakehouse_platform_tests.support.tables import ids, rows
from lakehouse_platform_tests.unit.upkeep.builders import break_log, scattered, with_sessions

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def upkeep(store: DeltaStore) -> Upkeep:
    return Upkeep(store, clock=lambda: NOW)


def versions(store: DeltaStore) -> dict[str, int]:
    return {name: store.table(name).version() for name in store.tables()}


def test_compaction_touches_only_the_table_that_is_due(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "many", files=6)
    scattered(store, "few", files=2)
    before = rows(store, "many")
    report = upkeep.run(Task.COMPACT)

    assert [outcome.table for outcome in report.touched] == ["many"]
    assert versions(store) == {"few": 2, "many": 7}
    assert len(store.table("many").data_files()) == 1
    assert rows(store, "many") == before
    assert report.summary == "compact: 2 tables looked at, 1 due, 1 done, 0 failed."


def test_the_report_has_the_facts_before_and_after(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "many", files=6)
    outcome = upkeep.run(Task.COMPACT).outcomes[0]

    assert outcome.before is not None
    assert outcome.after is not None
    assert (outcome.before.files, outcome.after.files) == (6, 1)
    assert outcome.summary == "many: done. 6 files below 50 MB can be merged; compaction starts at 4."


def test_each_change_is_handed_to_what_surrounds_it_and_looks_are_not(store: DeltaStore) -> None:
    scattered(store, "many", files=6)
    scattered(store, "few", files=2)
    handed: list[tuple[Task, str]] = []

    def surround(task: Task, table: str, act: Act) -> Result:
        handed.append((task, table))
        return act()

    report = Upkeep(store, clock=lambda: NOW, surround=surround).run(Task.COMPACT)
    assert handed == [(Task.COMPACT, "many")]
    assert [outcome.table for outcome in report.touched] == ["many"]


def test_who_cleans_up_sessions_can_be_chosen(store: DeltaStore) -> None:
    with_sessions(store, ["2020-01-01T00:00:00Z"])
    asked: list[datetime] = []

    def clean_up(_: DeltaStore, now: datetime) -> Result:
        asked.append(now)
        return 0

    Upkeep(store, clock=lambda: NOW, clean_up_sessions=clean_up).run(Task.SESSION_CLEANUP)
    assert asked == [NOW]


def test_a_second_run_finds_nothing_due(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "people", files=6)
    for task in Task:
        upkeep.run(task)
    settled = versions(store)
    reports = [upkeep.run(task) for task in Task]

    assert [report.touched for report in reports if report.task is not Task.LOG_CLEANUP] == [()] * 5
    assert versions(store) == settled


def test_z_order_uses_the_columns_of_the_settings(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "people", files=6)
    report = upkeep.run(Task.Z_ORDER)

    assert [outcome.due.columns for outcome in report.touched if outcome.due] == [("name",)]
    assert store.history("people", limit=1)[0].operation == "OPTIMIZE"
    assert ids(store, "people") == list(range(6))


def test_vacuum_removes_what_compaction_left_and_keeps_the_rows(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "people", files=6)
    store.compact("people")
    report = upkeep.run(Task.VACUUM)

    assert report.touched[0].before is not None
    assert report.touched[0].before.removable_files == 6
    assert ids(store, "people") == list(range(6))
    assert store.vacuum("people", retention_hours=0, dry_run=True).files_deleted in {0, 6}
    assert upkeep.facts("people").removable_files == 0


def test_vacuum_keeps_the_files_that_a_longer_retention_protects(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "people", files=6)
    store.compact("people")
    upkeep.run(Task.VACUUM, retention_hours=24)

    assert upkeep.facts("people").removable_files == 6


def test_sessions_past_their_end_are_deleted_and_the_others_stay(store: DeltaStore, upkeep: Upkeep) -> None:
    with_sessions(store, ["2026-03-01T11:59:59Z", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.5+00:00"])
    report = upkeep.run(Task.SESSION_CLEANUP)

    assert [outcome.table for outcome in report.outcomes] == ["sessions"]
    assert sorted(row["session_id"] for row in rows(store, "sessions")) == ["s1", "s2"]


def test_session_cleanup_makes_no_commit_when_none_is_past_its_end(store: DeltaStore, upkeep: Upkeep) -> None:
    with_sessions(store, ["2026-03-02T00:00:00Z"])
    before = versions(store)

    assert upkeep.run(Task.SESSION_CLEANUP).touched == ()
    assert versions(store) == before


def test_a_checkpoint_is_written_for_a_long_log_and_then_the_log_is_cleaned(store: DeltaStore) -> None:
    upkeep = Upkeep(store)
    scattered(store, "people", files=3)
    store.table("people").set_properties({"delta.checkpointInterval": "1000"})
    for number in range(10, 20):
        store.append("people", [{"id": number, "name": "x", "age": 1}])

    assert [outcome.table for outcome in upkeep.run(Task.CHECKPOINT).touched] == ["people"]
    assert upkeep.facts("people").commits_since_checkpoint == 0
    assert [outcome.table for outcome in upkeep.run(Task.LOG_CLEANUP).touched] == ["people"]
    assert len(ids(store, "people")) == 13


def test_a_dry_run_decides_and_changes_nothing(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "people", files=6)
    report = upkeep.run(Task.COMPACT, dry_run=True)

    assert [outcome.due.is_due for outcome in report.outcomes if outcome.due] == [True]
    assert versions(store) == {"people": 6}
    assert report.summary == "compact: 1 tables looked at, 1 due, nothing done (dry run), 0 failed."


def test_a_chosen_table_can_be_done_although_it_is_not_due(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "a", files=2)
    scattered(store, "b", files=2)
    report = upkeep.run(Task.COMPACT, ["b"], only_due=False)

    assert [outcome.table for outcome in report.touched] == ["b"]
    assert versions(store) == {"a": 2, "b": 3}


def test_a_table_without_z_order_columns_is_never_z_ordered(store: DeltaStore) -> None:
    scattered(store, "people", files=6)
    other = DeltaStore(store.config.model_copy(update={"z_order_columns": ("nothing",)}))

    assert Upkeep(other).run(Task.Z_ORDER, only_due=False).touched == ()


def test_an_unknown_table_is_refused_before_anything_is_done(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "people", files=6)
    with pytest.raises(TableNotFoundError, match=r"no table peple .* Tables here: people\."):
        upkeep.run(Task.COMPACT, ["people", "peple"])

    assert versions(store) == {"people": 6}


def test_a_broken_table_is_reported_and_the_others_are_done(store: DeltaStore, upkeep: Upkeep) -> None:
    for name in ("a", "b", "c"):
        scattered(store, name, files=6)
    break_log(store, "b")
    report = upkeep.run(Task.COMPACT)

    assert [outcome.table for outcome in report.touched] == ["a", "c"]
    assert [outcome.table for outcome in report.failures] == ["b"]
    assert isinstance(report.failures[0].error, LakehouseError)
    assert report.failures[0].summary.startswith("b: failed: ")


def test_due_tells_the_decisions_without_doing_anything(store: DeltaStore, upkeep: Upkeep) -> None:
    scattered(store, "few", files=1)
    scattered(store, "many", files=6)

    assert [(due.table, due.is_due) for due in upkeep.due(Task.COMPACT)] == [("few", False), ("many", True)]
    assert versions(store) == {"few": 1, "many": 6}


def test_a_lakehouse_without_tables_needs_nothing(upkeep: Upkeep) -> None:
    assert [upkeep.run(task).outcomes for task in Task] == [()] * len(Task)


def test_maintenance_commits_say_who_and_why(store: DeltaStore) -> None:
    scattered(store, "people", files=6)
    Upkeep(store.through(Origin(door=Door.DAGSTER, run_id="r1"))).run(Task.COMPACT)
    commit = store.history("people", limit=1)[0]

    assert (commit.operation, commit.door) == ("OPTIMIZE", "dagster")
    assert commit.reason == "6 files below 50 MB can be merged; compaction starts at 4."
