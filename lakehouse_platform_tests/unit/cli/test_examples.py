"""Every example in the help is run, in the order in which it stands there."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.main import cli
from lakehouse_platform_tests.unit.cli.running import Run


def _commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


COMMANDS = {name: command for name, command in _commands(cli) if isinstance(command, PlatformCommand)}
# What needs a kernel with an NFS client, and what goes on until it is ended; other tests run them.
NOT_RUN = ("sudo ", "lakehouse nfs serve ", "lakehouse serve", "lakehouse audit tail --follow")
SHELL_SIGNS = {"|", ">"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_run(name: str, run: Run, workplace: Path) -> None:
    for example in COMMANDS[name].examples:
        if example.startswith(NOT_RUN):
            continue
        is_for_a_shell = SHELL_SIGNS & set(shlex.split(example))
        status, output = in_a_shell(example, workplace) if is_for_a_shell else in_this_process(example, run)
        assert status == 0, f"{example}\n{output}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_examples_and_a_section(name: str) -> None:
    command = COMMANDS[name]
    assert command.examples
    assert command.help
    assert command.section != "Other"
    assert any(f"lakehouse {name}" in example for example in command.examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_is_explained(name: str) -> None:
    command = COMMANDS[name]
    records = dict(filter(None, (param.get_help_record(click.Context(command)) for param in command.params)))
    assert [words for words, meaning in records.items() if not meaning] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_the_examples_unfolded(name: str, run: Run) -> None:
    shown = run(*name.split(), "--help").stdout
    assert all(f"  {example}\n" in shown for example in COMMANDS[name].examples)


def test_all_commands_are_platform_commands() -> None:
    assert set(COMMANDS) == {name for name, _ in _commands(cli)}


def in_this_process(line: str, run: Run) -> tuple[int, str]:
    """Do what a shell does with `&&` and `<`, without starting the program for each command."""
    rest = shlex.split(line)
    while rest:
        command = list(takewhile(lambda word: word != "&&", rest))
        rest = rest[len(command) + 1 :]
        source = Path(command.pop()).read_text() if "<" in command else None
        program, *arguments = [word for word in command if word != "<"]
        assert program == "lakehouse"
        result = run(*arguments, stdin=source)
        if result.exit_code != 0:
            return result.exit_code, result.output
    return 0, ""


def in_a_shell(line: str, directory: Path) -> tuple[int, str]:
    lakehouse = f"{shlex.quote(sys.executable)} -m lakehouse_platform"
    script = f'set -o pipefail; lakehouse() {{ {lakehouse} "$@"; }}; {line}'
    done = subprocess.run(["bash", "-c", script], cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr
