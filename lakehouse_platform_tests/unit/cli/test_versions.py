from __future__ import annotations

import csv
import io

import pytest

from lakehouse_platform_tests.unit.cli.running import Run, document, error


def test_history_is_an_array_newest_first(run: Run) -> None:
    versions = document(run("history", "customers", "--json"))
    assert [(one["version"], one["operation"]) for one in versions] == [
        (3, "WRITE"), (2, "UPDATE"), (1, "WRITE"), (0, "CREATE TABLE"),
    ]  # fmt: skip
    assert {one["door"] for one in versions} == {"cli"}


def test_history_in_a_pipe_is_csv_and_can_be_limited(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("history", "customers", "--limit", "2").stdout)))
    assert [row["version"] for row in rows] == ["3", "2"]


def test_diff_shows_rows_before_and_after(run: Run) -> None:
    rows = document(run("diff", "customers", "1", "2", "--json"))
    assert [(row["_change_type"], row["name"]) for row in rows] == [
        ("update_preimage", "Alice"), ("update_postimage", "Alice A."),
    ]  # fmt: skip


def test_diff_goes_up_to_the_newest_version_by_itself(run: Run) -> None:
    assert [row["id"] for row in document(run("diff", "customers", "2", "--json"))] == [4]


@pytest.mark.parametrize("by_time", [False, True])
def test_restore_makes_an_earlier_version_the_newest(run: Run, by_time: bool) -> None:
    moment = document(run("history", "customers", "--json"))[2]["timestamp"] if by_time else "1"
    assert document(run("restore", "customers", moment, "--json"))["version"] == 4
    rows = document(run("query", "customers", "SELECT name FROM data WHERE id = 1", "--json"))
    assert rows == [{"name": "Alice"}]


def test_restore_of_a_version_that_is_not_there_is_refused(run: Run) -> None:
    refused = run("restore", "customers", "99", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (66, "version_not_found")
