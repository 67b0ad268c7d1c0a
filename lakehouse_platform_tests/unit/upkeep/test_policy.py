"""Maintenance is due by numbers, and every decision says which."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform.upkeep.policy import Due, TableFacts, Task, decide, small_file_limit, z_order_columns

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def config() -> LakehouseConfig:
    return LakehouseConfig(compact_min_small_files=16, z_order_min_new_versions=20, checkpoint_interval=100)


def due(task: Task, config: LakehouseConfig, name: str = "orders", **facts: object) -> Due:
    return decide(task, TableFacts(name=name, **facts), config, NOW)  # type: ignore[arg-type]


def test_an_empty_table_needs_nothing(config: LakehouseConfig) -> None:
    assert [due(task, config).is_due for task in Task] == [False] * len(Task)


@pytest.mark.parametrize(("mergeable", "expected"), [(0, False), (15, False), (16, True), (1000, True)])
def test_compaction_is_due_from_the_number_of_mergeable_files_in_the_settings(
    config: LakehouseConfig, mergeable: int, expected: bool
) -> None:
    decision = due(Task.COMPACT, config, files=2000, mergeable_files=mergeable)

    assert decision.is_due is expected
    assert decision.reason == (f"{mergeable:,} files below 50 MB can be merged; compaction starts at 16.")


def test_small_files_alone_in_their_partitions_do_not_make_compaction_due(config: LakehouseConfig) -> None:
    assert not due(Task.COMPACT, config, files=365, small_files=365, mergeable_files=0).is_due


def test_a_file_is_small_when_two_of_its_size_fit_into_one_of_the_target() -> None:
    assert small_file_limit(LakehouseConfig(target_file_mb=100)) == 50_000_000


@pytest.mark.parametrize(("commits", "expected"), [(99, False), (100, True)])
def test_a_checkpoint_is_due_when_a_foreign_writer_has_left_a_long_log(
    config: LakehouseConfig, commits: int, expected: bool
) -> None:
    decision = due(Task.CHECKPOINT, config, commits_since_checkpoint=commits)

    assert decision.is_due is expected
    assert decision.reason == f"{commits} commits since the last checkpoint; one is written at 100."


def test_z_order_is_due_after_enough_commits_on_a_table_that_has_the_columns(config: LakehouseConfig) -> None:
    decision = due(Task.Z_ORDER, config, files=5, columns=("id", "action"), commits_since_z_order=20)

    assert decision.is_due
    assert decision.columns == ("action",)
    assert decision.reason == "20 commits and never Z-ordered; Z-order starts at 20."


def test_z_order_waits_until_enough_has_changed_since_the_last_one(config: LakehouseConfig) -> None:
    decision = due(
        Task.Z_ORDER, config, files=5, columns=("action",), commits_since_z_order=1, was_z_ordered=True
    )

    assert not decision.is_due
    assert decision.reason == "1 commit since the last Z-order; Z-order starts at 20."


def test_z_order_leaves_a_table_alone_that_has_none_of_the_columns(config: LakehouseConfig) -> None:
    decision = due(Task.Z_ORDER, config, files=5, columns=("id",), commits_since_z_order=500)

    assert not decision.is_due
    assert decision.columns == ()
    assert decision.reason == "It has none of the Z-order columns user_id, action."


def test_z_order_leaves_a_single_file_alone(config: LakehouseConfig) -> None:
    decision = due(Task.Z_ORDER, config, files=1, columns=("action",), commits_since_z_order=500)

    assert not decision.is_due
    assert decision.reason == "1 data file: there is nothing to skip yet."


def test_a_registered_table_is_z_ordered_by_its_own_columns(config: LakehouseConfig) -> None:
    spec = SYSTEM_TABLES["sessions"]
    facts = TableFacts(name="sessions", spec=spec, columns=tuple(spec.schema.names))

    assert z_order_columns(facts, config) == spec.z_order_by


def test_a_table_is_never_z_ordered_by_a_partition_column() -> None:
    facts = TableFacts(name="t", columns=("day", "action"), partition_columns=("day",))

    assert z_order_columns(facts, LakehouseConfig(z_order_columns=("day", "action"))) == ("action",)


def test_vacuum_is_due_when_files_can_be_removed(config: LakehouseConfig) -> None:
    decision = due(Task.VACUUM, config, removable_files=3, removable_bytes=1_250_000)

    assert decision.is_due
    assert decision.reason == "3 files (1.2 MB) removed from the table more than 168 hours ago."


def test_vacuum_leaves_a_table_alone_when_it_would_only_write_commits(config: LakehouseConfig) -> None:
    assert not due(Task.VACUUM, config, removable_files=0).is_due


@pytest.mark.parametrize(("age_hours", "expected"), [(719, False), (721, True)])
def test_log_cleanup_is_due_once_the_oldest_entry_is_past_the_retention(
    config: LakehouseConfig, age_hours: int, expected: bool
) -> None:
    decision = due(
        Task.LOG_CLEANUP,
        config,
        checkpoint=100,
        oldest_commit=0,
        oldest_commit_time=NOW - timedelta(hours=age_hours),
    )

    assert decision.is_due is expected
    assert decision.reason == f"The oldest log entry is {age_hours} hours old; entries are kept for 720."


@pytest.mark.parametrize("checkpoint", [None, 0])
def test_log_cleanup_keeps_entries_that_no_checkpoint_covers(
    config: LakehouseConfig, checkpoint: int | None
) -> None:
    decision = due(
        Task.LOG_CLEANUP, config, checkpoint=checkpoint, oldest_commit_time=NOW - timedelta(days=900)
    )

    assert not decision.is_due
    assert decision.reason == "No log entry is covered by a later checkpoint."


def test_session_cleanup_is_due_when_a_session_is_past_its_end(config: LakehouseConfig) -> None:
    decision = due(Task.SESSION_CLEANUP, config, name="sessions", expired_rows=1)

    assert decision.is_due
    assert decision.reason == "1 session past the end."


def test_session_cleanup_concerns_no_other_table(config: LakehouseConfig) -> None:
    assert not due(Task.SESSION_CLEANUP, config, name="orders", expired_rows=7).is_due
