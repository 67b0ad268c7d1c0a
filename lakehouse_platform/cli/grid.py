"""Tables for eyes: rich on a terminal, plain ASCII elsewhere; what does not fit is cut, and said so."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from rich.box import ASCII2, SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_MAX_CELL = 60  # characters of a cell; more only with another format
_PADDING = 3  # between two columns: one space of each and the box's
_PIPE_WIDTH = 10_000  # a pipe has no width: never fold

NULL = Text("NULL", style="dim italic")


def print_grid(
    columns: Sequence[str], rows: Sequence[Sequence[str | None]], *, right: Collection[int] = ()
) -> None:
    """Print rows as a table, one line each; None shows as NULL, control characters are escaped.

    Args:
        columns: The names above the columns.
        rows: One text per column.
        right: Positions of the columns to align to the right.
    """
    console = _console()
    shown = _fitting(columns, rows, console.width)
    table = _table()
    for index, name in enumerate(columns[:shown]):
        justify = "right" if index in right else "left"
        table.add_column(_plain(name), no_wrap=True, overflow="ellipsis", justify=justify)
    for row in rows:
        table.add_row(*(NULL if value is None else _plain(value) for value in row[:shown]))
    console.print(table)
    if shown < len(columns):
        hidden = ", ".join(columns[shown:])
        console.print(f"… {len(columns) - shown} more columns: {hidden}", style="dim", soft_wrap=True)


def print_listing(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print all of every cell; what is too long for the terminal goes on in the next line."""
    table = _table()
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_escaped(value)) for value in row))
    _console().print(table)


def visible(text: str) -> str:
    """Return text with everything a terminal would act on escaped, cut to the longest cell."""
    return _escaped(text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…")


def _escaped(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _plain(text: str) -> Text:
    return Text(visible(text))


def _console() -> Console:
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)


def _table() -> Table:
    if sys.stdout.isatty():
        return Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    return Table(box=ASCII2)


def _fitting(columns: Sequence[str], rows: Sequence[Sequence[str | None]], width: int) -> int:
    """Return how many columns fit side by side, at least one."""
    used = 0
    for index, name in enumerate(columns):
        cells = ["NULL" if row[index] is None else row[index] or "" for row in rows]
        used += max(cell_len(visible(cell)) for cell in (name, *cells)) + _PADDING
        if used - _PADDING > width and index:
            return index
    return len(columns)
