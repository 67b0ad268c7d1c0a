"""Passwords are typed unseen or piped in: never an argument, never an environment variable, never printed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

# Far longer than any password that is accepted; a pipe without an end is not read into memory.
_MOST_BYTES = 4096


def password_option(command: Decorated) -> Decorated:
    """Add --password-stdin."""
    return click.option(
        "--password-stdin",
        "from_stdin",
        is_flag=True,
        help="Read the password from standard input, one line, instead of asking for it.",
    )(command)


def known_password(question: str, *, from_stdin: bool) -> str:
    """Return a password that exists: typed unseen, or the next line of standard input.

    Args:
        question: What is asked for, at the beginning of a line.
        from_stdin: Whether it is piped in.

    Raises:
        click.UsageError: Nobody can type here, or there is no line.
    """
    if from_stdin:
        return piped_line(question)
    _require_terminal()
    return click.prompt(question, hide_input=True, err=True)


def new_password(question: str, *, from_stdin: bool) -> str:
    """Return a new password: typed unseen twice, or the next line of standard input; see `known_password`."""
    if from_stdin:
        return piped_line(question)
    _require_terminal()
    return click.prompt(question, hide_input=True, confirmation_prompt="The same again", err=True)


def piped_line(what: str) -> str:
    """Return the next line of standard input without its end.

    Args:
        what: What it holds, for the error.

    Raises:
        click.UsageError: There is none, it is too long, or it is no text.
    """
    line = sys.stdin.buffer.readline(_MOST_BYTES + 1)
    if len(line) > _MOST_BYTES:
        raise click.UsageError(f"{what}: the line on standard input is longer than {_MOST_BYTES} bytes.")
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise click.UsageError(f"{what}: standard input is not UTF-8 text.") from None
    if not text:
        raise click.UsageError(f"{what}: standard input holds none, one line is expected.")
    return text


def _require_terminal() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody can type a password here: pipe it in and add --password-stdin.")
