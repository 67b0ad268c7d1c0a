"""The audit log on the command line."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform_tests.support.tampering import Rows, rewrite_rows
from lakehouse_platform_tests.unit.cli.running import PASSWORD, Run, document, error, lakehouse_here


def login(run: Run, name: str, password: str = PASSWORD) -> None:
    run("login", name, "--password-stdin", stdin=f"{password}\n")


def found(run: Run, *words: str) -> list[dict[str, Any]]:
    return document(run("audit", "search", "--json", *words))


def test_entries_are_searched_by_all_conditions(run: Run) -> None:
    login(run, "alice", "wrong")
    alice = document(run("users", "show", "alice", "--json"))["user_id"]
    failed = found(run, "--action", "login_failed", "--user", "alice", "--outcome", "failed")
    assert [(one["user_id"], one["door"], one["details"]) for one in failed] == [
        (alice, "cli", "invalid_credentials")
    ]
    assert found(run, "--action", "login_failed", "--user", "bob") == []
    assert found(run, "--action", "register", "--until", "2020-01-01") == []
    assert len(found(run, "--action", "register", "--since", "2020-01-01")) == 3
    (created,) = found(run, "--resource", "orders")
    assert (created["action"], created["row_count"], created["door"]) == ("schema_change", 4, "cli")


def test_a_search_goes_on_where_the_page_before_ended(run: Run) -> None:
    everything = [one["sequence"] for one in found(run)]
    assert everything[:5] == [1, 2, 3, 4, 5]
    page = run("audit", "search", "--limit", "3")
    assert page.stdout.startswith("sequence,timestamp,action,outcome,user_id,")
    assert "--after 3" in page.stderr
    assert [one["sequence"] for one in found(run, "--limit", "2", "--after", "3")] == [4, 5]


def test_the_newest_entries_are_shown_in_their_order(run: Run) -> None:
    numbers = [one["sequence"] for one in document(run("audit", "tail", "--lines", "4", "--json"))]
    assert numbers == list(range(numbers[0], numbers[0] + 4))
    assert numbers[-1] >= max(one["sequence"] for one in found(run)) - 3
    assert document(run("audit", "tail", "--lines", "0", "--json")) == []


def test_users_see_what_they_did_themselves_and_nothing_else(run: Run) -> None:
    login(run, "alice")
    mine = document(run("audit", "activity", "alice", "--json"))
    assert "login" in {one["action"] for one in mine}
    assert document(run("audit", "billing", "alice", "--from", "2026-02-01", "--to", "2026-02-28", "--json")) == {
        "user_id": mine[0]["user_id"], "period_start": "2026-02-01", "period_end": "2026-02-28",
        "total_actions": 0, "total_rows": 0, "actions_by_type": {},
    }  # fmt: skip
    for words in (["activity", "owner"], ["search"], ["tail"], ["verify"], ["export", "log.csv"]):
        assert run("audit", *words).exit_code == ExitStatus.DENIED, words
    assert not Path("log.csv").exists()


def test_activity_goes_on_with_the_next_page(run: Run) -> None:
    first = run("audit", "activity", "owner", "--limit", "2")
    page = first.stderr.rpartition("--page ")[2].strip(" .\n")
    rest = document(run("audit", "activity", "owner", "--page", page, "--json"))
    numbers = [int(line.partition(",")[0]) for line in first.stdout.splitlines()[1:]]
    assert len(numbers) == 2
    assert numbers[-1] > rest[0]["sequence"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["billing", "owner", "--from", "2026-02-30", "--to", "2026-03-01"], "invalid_timestamp"),
        (["billing", "owner", "--from", "2026-03-01", "--to", "2026-02-01"], "invalid_argument"),
        (["search", "--since", "yesterday"], "invalid_timestamp"),
        (["search", "--action", "everything"], "usage"),
        (["search", "--limit", "10001"], "usage"),
        (["activity", "owner", "--page", "x"], "invalid_argument"),
        (["export", "log.pdf"], "usage"),
    ],
)
def test_a_wrong_question_is_2_and_says_why(run: Run, words: list[str], code: str) -> None:
    refused = run("audit", *words, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.USAGE, code)


def test_a_log_that_is_as_it_was_written_is_whole(run: Run) -> None:
    verdict = document(run("audit", "verify", "--json"))
    assert (verdict["is_whole"], verdict["problems"]) == (True, [])
    assert verdict["entries"] == verdict["head_sequence"]


def test_a_changed_entry_is_named_and_the_status_is_1(run: Run, workplace: Path) -> None:
    def change(rows: Rows) -> Rows:
        rows[2]["action"] = "custom"
        return rows

    with lakehouse_here(workplace) as lakehouse:
        rewrite_rows(lakehouse.store.table("audit_log"), change)
    shown = run("audit", "verify")
    assert shown.exit_code == ExitStatus.PROBLEM
    assert "Entry 3: altered." in shown.stdout
    verdict = json.loads(run("audit", "verify", "--json").stdout)
    assert (verdict["is_whole"], verdict["problems"][0]["sequence"]) == (False, 3)


def test_the_log_is_exported_in_the_form_of_the_files_ending(run: Run) -> None:
    for name in ("log.csv", "log.jsonl", "log.parquet"):
        assert run("audit", "export", name, "--action", "register").exit_code == 0
    with Path("log.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    objects = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    table = pq.read_table("log.parquet")
    assert [line["audit_id"] for line in lines] == [one["audit_id"] for one in objects]
    assert table["audit_id"].to_pylist() == [one["audit_id"] for one in objects]
    assert len(objects) == 3
    assert not {"salt", "commitment"} & set(table.column_names)
    assert [one["action"] for one in found(run, "--action", "data_export")][-1:] == ["data_export"]


def test_new_entries_are_shown_as_they_come(run: Run, workplace: Path) -> None:
    words = ["audit", "tail", "--follow", "--lines", "0", "--action", "login_failed", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lakehouse_platform", *words], cwd=workplace, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        with lakehouse_here(workplace) as lakehouse:
            while not any(one.details == "watching" for one in lakehouse.audit.search()):
                assert process.poll() is None
        login(run, "alice", "wrong")
        entry = json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    assert (entry["action"], entry["outcome"]) == ("login_failed", "failed")
