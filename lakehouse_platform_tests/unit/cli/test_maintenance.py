from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.cli.maintain import TASKS
from lakehouse_platform.upkeep.policy import Task
from lakehouse_platform_tests.unit.cli.running import Run, document


@pytest.mark.parametrize("command", ["compact", "optimize"])
def test_compact_merges_files_and_says_so(run: Run, command: str) -> None:
    facts = document(run(command, "customers", "--json"))
    assert (facts["files_removed"], facts["files_added"], facts["version"]) == (2, 1, 4)
    assert "needs nothing" in run(command, "customers").stdout


def test_zorder_rewrites_the_files(run: Run) -> None:
    assert document(run("zorder", "customers", "name", "--json"))["files_added"] == 1


def test_vacuum_keeps_what_the_retention_protects(run: Run) -> None:
    run("compact", "customers")
    assert document(run("vacuum", "customers", "--json"))["files_deleted"] == 0


def test_a_dry_run_names_the_files_and_keeps_them(run: Run, workplace: Path) -> None:
    run("compact", "customers")
    facts = document(run("vacuum", "customers", "--dry-run", "--retention-hours", "0", "--json"))
    assert facts["dry_run"]
    assert len(facts["files"]) == facts["files_deleted"] == 3
    assert all((workplace / "lakehouse" / "customers" / name).exists() for name in facts["files"])


def test_a_shorter_retention_needs_consent(run: Run) -> None:
    run("compact", "customers")
    refused = run("vacuum", "customers", "--retention-hours", "0")
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert (
        document(run("vacuum", "customers", "--retention-hours", "0", "--yes", "--json"))["files_deleted"]
        == 3
    )


def test_checkpoint_writes_one(run: Run, workplace: Path) -> None:
    assert document(run("checkpoint", "customers", "--json"))["version"] == 3
    assert list((workplace / "lakehouse" / "customers" / "_delta_log").glob("*3.checkpoint.parquet"))


def test_stats_show_size_and_what_a_predicate_skips(run: Run) -> None:
    facts = document(run("stats", "orders", "--where", "country = 'FR'", "--json"))
    assert (facts["rows"], facts["files"]) == (4, 2)
    assert (facts["skipping"]["files_read"], facts["skipping"]["files_skipped"]) == (1, 1)


def test_maintain_offers_every_task_of_upkeep() -> None:
    assert set(TASKS) == {task.value for task in Task}


def test_maintain_does_only_what_is_due(run: Run) -> None:
    items = document(run("maintain", "--task", "compact", "--json"))
    assert {item["status"] for item in items} == {"not due"}
    many = {"LAKEHOUSE_COMPACT_MIN_SMALL_FILES": "2"}
    assert "due" in {item["status"] for item in document(run("maintain", "--dry-run", "--json", env=many))}
    done = [
        item["table"] for item in document(run("maintain", "--json", env=many)) if item["status"] == "done"
    ]
    assert "customers" in done


def test_maintain_leaves_with_1_if_a_table_failed(run: Run, workplace: Path) -> None:
    log = workplace / "lakehouse" / "orders" / "_delta_log" / f"{0:020}.json"
    log.write_text("rubbish")
    result = run("maintain", "--task", "compact", "--json")
    assert result.exit_code == 1
    assert '"status": "failed"' in result.stdout
