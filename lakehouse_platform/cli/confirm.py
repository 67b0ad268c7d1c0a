"""Asking before something that cannot be undone."""

from __future__ import annotations

import sys

import click


class Declined(click.ClickException):
    """The user did not confirm; nothing was changed."""


def confirm(question: str, *, yes: bool) -> None:
    """Return if the user agrees, now or beforehand with --yes.

    Raises:
        Declined: The answer is no.
        click.UsageError: Nobody can answer: standard input is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody can answer here: add --yes to agree.")
    if not click.confirm(question, err=True):
        raise Declined("Nothing was changed.")
