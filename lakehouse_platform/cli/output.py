"""Where results go: an `Output` has one method per shape of result; text and JSON are its two kinds.

Text is for people on a terminal (colours, aligned tables) and plain in a pipe: sentences, `key: value` lines,
listings as CSV with a header. JSON is one document on standard output, whatever the command.
Rows of tables are streamed by `rows.py` instead.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any, TypeGuard

import click

Facts = Mapping[str, Any]


class Output(ABC):
    """Prints results; commands never print themselves."""

    @abstractmethod
    def say(self, sentence: str, facts: Facts) -> None:
        """Report what was done: a sentence for people, its facts for programs."""

    @abstractmethod
    def record(self, facts: Facts) -> None:
        """Show one thing with its properties."""

    @abstractmethod
    def listing(self, items: Sequence[Facts], columns: Sequence[str]) -> None:
        """Show many things of one kind; people see `columns` only, programs everything."""

    @abstractmethod
    def lines(self, columns: Sequence[str]) -> Callable[[Sequence[Facts]], None]:
        """Return what shows things as they come, each on a line of its own; see `listing`."""

    @abstractmethod
    def hint(self, sentence: str) -> None:
        """Tell people how to go on; programs know from the result."""


class JsonOutput(Output):
    """One JSON document on standard output, indented on a terminal."""

    def say(self, sentence: str, facts: Facts) -> None:
        """Print the facts; the sentence is for people."""
        del sentence
        self.record(facts)

    def record(self, facts: Facts) -> None:
        """Print one object."""
        click.echo(to_json(facts))

    def listing(self, items: Sequence[Facts], columns: Sequence[str]) -> None:
        """Print an array of objects."""
        del columns
        click.echo(to_json(list(items)))

    def lines(self, columns: Sequence[str]) -> Callable[[Sequence[Facts]], None]:
        """Return what prints each as one object on one line."""
        del columns

        def show(items: Sequence[Facts]) -> None:
            for item in items:
                click.echo(json.dumps(item, default=_plain, ensure_ascii=False))
            sys.stdout.flush()

        return show

    def hint(self, sentence: str) -> None:
        """Print nothing."""


class TextOutput(Output):
    """Text for people; plain in a pipe."""

    def say(self, sentence: str, facts: Facts) -> None:
        """Print the sentence."""
        del facts
        click.echo(sentence)

    def record(self, facts: Facts) -> None:
        """Print one `key: value` line per fact, nested facts below their key's name."""
        pairs = list(_flat(facts))
        width = max((len(key) for key, _ in pairs), default=0) + 1 if sys.stdout.isatty() else 0
        for key, value in pairs:
            click.echo(f"{key + ':':<{width}} {value}".rstrip())

    def listing(self, items: Sequence[Facts], columns: Sequence[str]) -> None:
        """Print a table on a terminal, CSV with a header in a pipe."""
        cells = [[_cell(item.get(column)) for column in columns] for item in items]
        if sys.stdout.isatty():
            from lakehouse_platform.cli.grid import print_listing  # rich is only needed on a terminal

            print_listing(columns, cells)
            return
        _write_csv([columns, *cells])

    def lines(self, columns: Sequence[str]) -> Callable[[Sequence[Facts]], None]:
        """Return what prints CSV in a pipe, after a header, and the same values with spaces on a terminal."""
        if not sys.stdout.isatty():
            _write_csv([columns])

        def show(items: Sequence[Facts]) -> None:
            cells = [[_cell(item.get(column)) for column in columns] for item in items]
            if sys.stdout.isatty():
                from lakehouse_platform.cli.grid import visible

                for line in cells:
                    click.echo("  ".join(visible(cell) for cell in line if cell))
            else:
                _write_csv(cells)
            sys.stdout.flush()

        return show

    def hint(self, sentence: str) -> None:
        """Print the sentence on standard error."""
        click.echo(sentence, err=True)


def counted(number: int | None, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 row`, `2 rows`; `plural` for a noun that takes no `s`."""
    return f"{'?' if number is None else number} {noun if number == 1 else plural or noun + 's'}"


def _write_csv(lines: Sequence[Sequence[str]]) -> None:
    csv.writer(sys.stdout, lineterminator="\n").writerows(lines)


def to_json(value: object) -> str:
    """Return a value as one JSON document, indented if a person is looking."""
    indent = 2 if sys.stdout.isatty() else None
    return json.dumps(value, default=_plain, ensure_ascii=False, indent=indent)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        from lakehouse_platform.model.times import to_rfc3339

        return to_rfc3339(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _flat(facts: Facts, prefix: str = "") -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for key, value in facts.items():
        if isinstance(value, Mapping) and value:
            pairs += _flat(value, f"{prefix}{key}.")  # pyright: ignore[reportUnknownArgumentType]
        elif _are_named(value):
            pairs += _flat({f"{key}.{item['name']}": _named(item) for item in value}, prefix)
        else:
            pairs.append((prefix + key, _cell(value)))
    return pairs


def _are_named(value: object) -> TypeGuard[Sequence[Facts]]:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(item, Mapping) and "name" in item for item in value)
    )


def _named(item: Facts) -> str:
    return ", ".join(f"{key}={_cell(value)}" for key, value in item.items() if key != "name")


def _cell(value: object) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    return str(_plain(value)) if isinstance(value, datetime) else str(value)
