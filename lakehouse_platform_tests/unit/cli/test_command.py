"""One way from every error to its message and exit status."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner, Result

from lakehouse_platform.cli.command import PlatformCommand, PlatformGroup
from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform.cli.main import cli
from lakehouse_platform.cli.options import common_options
from lakehouse_platform.errors import CommitConflictError
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.unit.cli.running import Run, error


class EnginePanic(BaseException):
    """Like pyo3's PanicException: not an Exception."""


def run_failing(problem: BaseException, *words: str) -> Result:
    @click.command("fail", cls=PlatformCommand)
    def fail() -> None:
        raise problem

    program = PlatformGroup("lakehouse", params=common_options())
    program.add_command(fail)
    return CliRunner().invoke(program, ["fail", *words])


def test_an_error_of_ours_is_one_line_and_its_status() -> None:
    result = run_failing(CommitConflictError("Another writer was first: try again."))
    assert result.exit_code == ExitStatus.CONFLICT
    assert (result.stdout, result.stderr) == ("", "Error: Another writer was first: try again.\n")


def test_with_json_an_error_is_a_document_with_code_message_and_details() -> None:
    result = run_failing(CommitConflictError("Another writer was first.", table="t"), "--json")
    assert error(result) == {
        "code": "commit_conflict", "message": "Another writer was first.", "details": {"table": "t"},
    }  # fmt: skip


@pytest.mark.parametrize(
    "problem", [KeyError("x"), EnginePanic("called unwrap\non None"), RecursionError("deep")]
)
def test_a_bug_is_one_line_with_a_hint_and_status_70(problem: BaseException) -> None:
    result = run_failing(problem)
    assert result.exit_code == ExitStatus.INTERNAL
    assert result.stderr.count("\n") == 1
    assert type(problem).__name__ in result.stderr
    assert "--debug" in result.stderr


def test_only_debug_shows_the_traceback() -> None:
    assert "Traceback" not in run_failing(KeyError("x")).stderr
    assert "Traceback" in run_failing(KeyError("x"), "--debug").stderr
    assert "Traceback" in run_failing(CommitConflictError("x"), "--debug").stderr


def test_an_interrupt_is_130() -> None:
    result = run_failing(KeyboardInterrupt())
    assert (result.exit_code, result.stderr.split()) == (ExitStatus.INTERRUPTED, ["Error:", "Interrupted."])


def test_an_error_of_the_system_is_an_io_error() -> None:
    assert run_failing(OSError(28, "No space left on device")).exit_code == ExitStatus.IO


@pytest.mark.parametrize(
    "words",
    [
        ["tables", "--nmes"],
        ["query", "customers"],
        ["tabels"],
        ["history", "customers", "--limit", "0"],
        ["merge"],
    ],
)
def test_a_wrong_command_line_is_2_and_json_on_request(run: Run, words: list[str]) -> None:
    assert run(*words).exit_code == 2
    refused = run(*words, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (2, "usage")


def test_a_mistyped_command_is_corrected(run: Run) -> None:
    assert "tables" in run("tabels").stderr


def test_common_options_stand_before_or_after_the_command(run: Run) -> None:
    after = run("tables", "--names", "--json", "--base-path", "lakehouse")
    before = run("--json", "--base-path", "lakehouse", "tables", "--names")
    assert json.loads(after.stdout) == json.loads(before.stdout)
    names = [table["name"] for table in json.loads(after.stdout)]
    assert names == sorted([*SYSTEM_TABLES, "customers", "orders"])


def test_the_overview_lists_every_command_and_every_exit_status(run: Run) -> None:
    shown = run("--help").stdout
    assert [name for name in cli.commands if f"\n  {name} " not in shown] == []
    assert [status for status in ExitStatus if f"\n  {status.value} " not in shown] == []


def test_a_settings_file_is_named_on_the_command_line(run: Run, workplace: object) -> None:
    del workplace
    refused = run("tables", "--config", "absent.toml", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (78, "config")


def test_an_unknown_setting_is_refused_by_name(run: Run) -> None:
    refused = run("tables", "--json", env={"LAKEHOUSE_BASE_PTH": "x"})
    assert (refused.exit_code, error(refused)["code"]) == (78, "config")
    assert "LAKEHOUSE_BASE_PATH" in error(refused)["message"]


def test_a_storage_option_needs_a_key(run: Run) -> None:
    assert run("tables", "--storage-option", "novalue").exit_code == 2
