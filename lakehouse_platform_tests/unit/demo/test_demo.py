"""The README's first command, from its Python side."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHAPTERS = (
    "Input",
    "A lakehouse",
    "Import",
    "Dagster assets",
    "Maintenance",
    "Questions",
    "Time travel",
    "What to open next",
)


def _demo(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lakehouse_platform.demo", "--dir", directory.name],
        cwd=directory.parent,
        env={name: value for name, value in os.environ.items() if not name.startswith("LAKEHOUSE_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.slow
def test_the_tour_runs_to_its_end_twice_in_the_same_place(tmp_path: Path) -> None:
    outputs = [_demo(tmp_path / "tour") for _ in range(2)]
    for done in outputs:
        assert done.returncode == 0, done.stderr
        assert all(chapter in done.stdout for chapter in CHAPTERS)
        assert "checks passed" in done.stdout
        assert "dagster dev" in done.stdout
        for command in ("users bootstrap NAME EMAIL", "serve"):
            assert f".venv/bin/lakehouse --base-path tour/lakehouse {command}\n" in done.stdout
        assert "sudo .venv/bin/lakehouse mount tour/lakehouse/stations tour/files\n" in done.stdout
        assert "later version" not in done.stdout
        assert done.stderr == ""
    for command in _closing_commands(outputs[-1].stdout):
        ran = _as_printed(command, tmp_path)
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"


def _closing_commands(printed: str) -> list[str]:
    """Return the commands at the tour's end that end by themselves and need no root."""
    commands = [line.strip() for line in printed.splitlines() if line.lstrip().startswith(".venv/bin/")]
    ending = [command for command in commands if not command.endswith(" serve")]
    assert len(ending) == len(commands) - 1 == 5, printed
    return ending


def _as_printed(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the tour's end where the tour ran, with a name and a password to be made up by the reader."""
    made_up = command.replace("NAME EMAIL", "root root@example.com --password-stdin")
    return subprocess.run(
        ["sh", "-c", made_up.replace(".venv/bin/", f"{Path(sys.executable).parent}/")],
        cwd=directory,
        env={name: value for name, value in os.environ.items() if not name.startswith("LAKEHOUSE_")},
        input="seven small boats at noon\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_a_directory_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    done = _demo(place)
    assert done.returncode == 1
    assert "--dir" in done.stderr
    assert (place / "thesis.txt").read_text() == "years of work"
