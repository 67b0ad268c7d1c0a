from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lakehouse_platform_tests.unit.cli.running import Run, document


@pytest.mark.parametrize(
    ("shell", "sign"),
    [("bash", "complete -o"), ("zsh", "#compdef lakehouse"), ("fish", "complete --no-files")],
)
def test_each_shell_gets_its_script(run: Run, shell: str, sign: str) -> None:
    assert sign in run("completion", shell).stdout
    assert sign in document(run("completion", shell, "--json"))["script"]


def test_the_bash_script_is_valid(run: Run, workplace: Path) -> None:
    (workplace / "complete.sh").write_text(run("completion", "bash").stdout)
    bash = shutil.which("bash")
    assert bash
    done = subprocess.run([bash, "-n", "complete.sh"], cwd=workplace, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_commands_are_completed(run: Run) -> None:
    offered = run(
        env={"_LAKEHOUSE_COMPLETE": "bash_complete", "COMP_WORDS": "lakehouse ex", "COMP_CWORD": "1"}
    )
    assert offered.stdout.splitlines() == ["plain,export"]


def test_table_names_are_completed(run: Run) -> None:
    env = {"_LAKEHOUSE_COMPLETE": "bash_complete", "COMP_WORDS": "lakehouse schema o", "COMP_CWORD": "2"}
    assert run(env=env).stdout.splitlines() == ["plain,orders"]


def test_what_is_no_table_is_completed_as_a_file(run: Run) -> None:
    env = {"_LAKEHOUSE_COMPLETE": "bash_complete", "COMP_WORDS": "lakehouse schema ./l", "COMP_CWORD": "2"}
    assert run(env=env).stdout.splitlines() == ["file,./l"]
