from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lakehouse_platform_tests.unit.cli.running import Run, document


def findings(run: Run, *words: str, status: int = 1) -> list[dict[str, Any]]:
    result = run("doctor", "--json", *words)
    assert result.exit_code == status, result.output
    return [one for one in json.loads(result.stdout) if one["status"] != "ok"]


def a_data_file(workplace: Path) -> Path:
    return next((workplace / "lakehouse" / "customers").glob("*.parquet"))


def live_file(run: Run, workplace: Path) -> Path:
    run("compact", "customers")
    run("vacuum", "customers", "--retention-hours", "0", "--yes")
    return a_data_file(workplace)


def test_a_sound_lakehouse_has_no_findings(run: Run) -> None:
    listed = document(run("doctor", "--json"))
    assert {one["status"] for one in listed} == {"ok"}
    assert {one["check"] for one in listed} >= {"python", "package", "settings", "storage", "table"}


def test_a_lakehouse_that_is_not_made_yet_is_told_how(run: Run) -> None:
    found = findings(run, "--base-path", "absent")
    assert [one["check"] for one in found] == ["storage"]
    assert "lakehouse init" in found[0]["detail"]


def test_a_wrong_setting_is_a_finding(run: Run, workplace: Path) -> None:
    (workplace / "lakehouse.toml").write_text("commit_retires = 3\n")
    assert "commit_retries" in findings(run)[0]["detail"]


def test_a_missing_data_file_is_found(run: Run, workplace: Path) -> None:
    live_file(run, workplace).unlink()
    assert [(one["check"], one["subject"]) for one in findings(run)] == [("data files", "customers")]


def test_an_empty_data_file_is_found(run: Run, workplace: Path) -> None:
    live_file(run, workplace).write_bytes(b"")
    assert "0 bytes" in findings(run)[0]["detail"]


def test_a_table_that_does_not_open_is_found_and_the_others_are_still_checked(
    run: Run, workplace: Path
) -> None:
    (workplace / "lakehouse" / "customers" / "_delta_log" / f"{1:020}.json").write_text("rubbish")
    result = run("doctor", "--json")
    listed = json.loads(result.stdout)
    bad = [one["subject"] for one in listed if one["status"] == "problem"]
    good = [one["subject"] for one in listed if one["check"] == "table" and one["status"] == "ok"]
    assert (result.exit_code, bad) == (1, ["customers"])
    assert "orders" in good


def test_many_small_files_are_a_warning_and_no_problem_unless_strict(run: Run) -> None:
    for number in range(50, 70):
        run("insert", "customers", f'{{"id": {number}, "name": "n"}}')
    found = findings(run, status=0)
    assert [(one["check"], one["subject"]) for one in found] == [("upkeep", "customers")]
    assert "lakehouse compact customers" in found[0]["detail"]
    findings(run, "--strict", status=1)


def test_the_check_leaves_nothing_behind(run: Run, workplace: Path) -> None:
    before = sorted(path.name for path in (workplace / "lakehouse").iterdir())
    run("doctor")
    assert sorted(path.name for path in (workplace / "lakehouse").iterdir()) == before
