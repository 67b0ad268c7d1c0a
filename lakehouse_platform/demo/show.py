"""How the tour speaks: numbered chapters, sentences, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from time import perf_counter

import pyarrow as pa

from lakehouse_platform.cli.grid import print_grid
from lakehouse_platform.cli.output import TextOutput

_UNITS = ("B", "kB", "MB", "GB")


class Show:
    """Prints the tour and keeps its time."""

    def __init__(self) -> None:
        self._output = TextOutput()
        self._numbers = count(1)
        self._started = perf_counter()

    def chapter(self, title: str) -> None:
        """Begin the next chapter."""
        head = f"{next(self._numbers)}. {title}"
        self._output.say(f"\n{head}\n{'-' * len(head)}", {})

    def say(self, *sentences: str) -> None:
        """Print sentences, one a line."""
        for sentence in sentences:
            self._output.say(sentence, {})

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; whole and decimal numbers stand to the right."""
        listed = [list(row) for row in rows]
        numeric = {i for i in range(len(columns)) if listed and all(_is_number(row[i]) for row in listed)}
        cells = [[_cell(value, name) for name, value in zip(columns, row, strict=True)] for row in listed]
        print_grid(columns, cells, right=numeric)

    def arrow(self, table: pa.Table) -> None:
        """Print an Arrow table."""
        self.table(table.column_names, [list(row.values()) for row in table.to_pylist()])

    def seconds(self) -> float:
        """Return the time since the tour began."""
        return perf_counter() - self._started


def size(bytes_: int) -> str:
    """Return a size as people say it."""
    value, unit = float(bytes_), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{bytes_} B"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object, column: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if column.endswith("_id"):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if _is_number(value) else str(value)
