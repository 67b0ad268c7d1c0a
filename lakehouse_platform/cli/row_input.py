"""Rows that a person types or pipes in: JSON as an argument, from a file, or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lakehouse_platform.errors import SourceNotFoundError, StorageIoError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_EXAMPLE = """'[{"id": 1, "name": "Alice"}]'"""
_STANDARD_INPUT = "-"


def rows_arguments(command: Decorated) -> Decorated:
    """Add ROWS and --file: where a command takes its JSON rows from."""
    with_file = click.option(
        "--file", "-f", metavar="FILE", help="Read the JSON from FILE; - is standard input."
    )
    return click.argument("rows", required=False, help="JSON: one object, an array, or one object per line.")(
        with_file(command)
    )


def read_json(rows: str | None, file: str | None) -> str | bytes:
    """Return the JSON text of the argument, the file, or else of standard input.

    Raises:
        click.UsageError: Both were given, or neither and nothing is piped in.
        SourceNotFoundError: The file does not exist.
        StorageIoError: The file cannot be read.
    """
    if rows is not None and file is not None:
        raise click.UsageError("Give ROWS or --file, not both.")
    if rows is not None:
        return rows
    if file is not None and file != _STANDARD_INPUT:
        return _read_file(file)
    if sys.stdin.isatty():
        raise click.UsageError(f"Give the rows as JSON such as {_EXAMPLE}, with --file, or through a pipe.")
    return sys.stdin.buffer.read()


def _read_file(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except FileNotFoundError as error:
        raise SourceNotFoundError(f"File {file} does not exist: check the path.", file=file) from error
    except OSError as error:
        raise StorageIoError(f"Cannot read {file}: {error.strerror or error}.", file=file) from error
