"""What commits tell about content and growth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakehouse_platform.model.results import VersionInfo
from lakehouse_platform.upkeep.history import changes_content, is_z_order, row_counts


def commit(
    version: int, operation: str, parameters: dict[str, Any] | None = None, **metrics: Any
) -> VersionInfo:
    when = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=version)
    return VersionInfo(
        version=version, timestamp=when, operation=operation, parameters=parameters or {}, metrics=metrics
    )


APPEND = {"mode": "Append"}


@pytest.mark.parametrize(
    "operation", ["WRITE", "DELETE", "UPDATE", "MERGE", "RESTORE", "CREATE TABLE", "ADD COLUMN"]
)
def test_operations_that_change_rows_or_columns_change_content(operation: str) -> None:
    assert changes_content(commit(1, operation))


@pytest.mark.parametrize("operation", ["OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES"])
def test_maintenance_does_not_change_content(operation: str) -> None:
    assert not changes_content(commit(1, operation))


def test_an_unknown_operation_is_taken_to_change_content() -> None:
    assert changes_content(commit(1, "COPY INTO"))


def test_a_z_order_is_told_from_a_compaction_in_commits_of_both_engines() -> None:
    assert is_z_order(commit(1, "OPTIMIZE", plannerStrategy="zOrder"))
    assert is_z_order(commit(1, "OPTIMIZE", {"zOrderBy": '["id"]'}))
    assert not is_z_order(commit(1, "OPTIMIZE", plannerStrategy="binPacking"))
    assert not is_z_order(commit(1, "OPTIMIZE", {"zOrderBy": "[]"}))
    assert not is_z_order(commit(1, "WRITE", {"zOrderBy": '["id"]'}))


def test_rows_are_counted_back_from_todays_number_through_every_kind_of_change() -> None:
    commits = [
        commit(5, "OPTIMIZE"),
        commit(4, "MERGE", num_target_rows_inserted=3, num_target_rows_deleted=1),
        commit(3, "UPDATE", num_updated_rows=9),
        commit(2, "DELETE", num_deleted_rows=4),
        commit(1, "WRITE", APPEND, num_added_rows=10),
        commit(0, "CREATE TABLE"),
    ]

    assert [(count.version, count.rows) for count in row_counts(commits, 8)] == [
        (0, 0), (1, 10), (2, 6), (3, 6), (4, 8), (5, 8),
    ]  # fmt: skip


def test_rows_written_by_spark_are_counted_from_its_own_metric_names() -> None:
    commits = [commit(1, "DELETE", numDeletedRows="2"), commit(0, "WRITE", APPEND, numOutputRows="7")]

    assert [count.rows for count in row_counts(commits, 5)] == [7, 5]


@pytest.mark.parametrize(
    "unknown",
    [
        commit(1, "WRITE", {"mode": "Overwrite"}, num_added_rows=3),
        commit(1, "RESTORE"),
        commit(1, "WRITE", APPEND),
        commit(1, "DELETE"),
        commit(1, "COPY INTO"),
    ],
    ids=lambda unknown: unknown.operation,
)
def test_counting_back_ends_where_a_commit_does_not_say_what_it_changed(unknown: VersionInfo) -> None:
    commits = [commit(2, "WRITE", APPEND, num_added_rows=1), unknown, commit(0, "CREATE TABLE")]

    assert [(count.version, count.rows) for count in row_counts(commits, 4)] == [(1, 3), (2, 4)]


def test_counting_back_ends_before_it_would_become_negative() -> None:
    commits = [commit(2, "WRITE", APPEND, num_added_rows=50), commit(1, "CREATE TABLE")]

    assert [count.rows for count in row_counts(commits, 10)] == [10]


def test_a_table_without_commits_has_no_growth() -> None:
    assert row_counts([], 0) == []
