"""The files at the top agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from lakehouse_platform_tests.architecture.source import ROOT

SET_UP = {"Run it": "sh .ci/demo", "Test it": "sh .ci/test"}


def _first_block_below(heading: str) -> list[str]:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    below = page.split(f"\n## {heading}\n", 1)[1]
    block = re.search(r"^```[^\n]*\n(.*?)^```", below, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


@pytest.mark.parametrize(("heading", "command"), SET_UP.items())
def test_the_readme_gives_one_command_for_each_purpose(heading: str, command: str) -> None:
    assert _first_block_below(heading) == [command]
    assert (ROOT / command.removeprefix("sh ")).is_file()


def test_continuous_integration_runs_both_commands() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert set(SET_UP.values()) <= set(lines)


def test_both_files_that_dagster_reads_name_the_same_code_location() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text(encoding="utf-8"))
    (entry,) = workspace["load_from"]
    assert entry["python_module"]["module_name"] == project["dagster"]["module_name"]
    assert entry["python_module"]["location_name"] == project["dagster"]["code_location_name"]
    assert project["dg"]["project"]["code_location_name"] == project["dagster"]["code_location_name"]


def test_the_import_contracts_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout


def test_the_scripts_are_plain_posix_shell() -> None:
    for name in ("run", "demo", "test", "setup.sh"):
        done = subprocess.run(["sh", "-n", ROOT / ".ci" / name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
