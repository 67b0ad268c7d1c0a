"""How a command that prints rows is told which form they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any

import click

DEFAULT_SHOWN_ROWS = 100  # on a terminal: about two screens


class RowFormat(StrEnum):
    """A form of rows; the values are the words of --format."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


FILE_FORMATS = tuple(one.value for one in RowFormat if one is not RowFormat.TABLE)
BINARY_FORMATS = frozenset({RowFormat.PARQUET, RowFormat.ARROW})
FORMAT_OF_SUFFIX = {
    ".csv": RowFormat.CSV,
    ".json": RowFormat.JSON,
    ".jsonl": RowFormat.JSONL,
    ".ndjson": RowFormat.JSONL,
    ".parquet": RowFormat.PARQUET,
    ".arrow": RowFormat.ARROW,
    ".feather": RowFormat.ARROW,
    ".ipc": RowFormat.ARROW,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """What the user asked for.

    Attributes:
        row_format: The form, or None for the one that fits the destination.
        output: File to write, or None for standard output.
        max_rows: Rows of a table on the screen; 0 for all.
    """

    row_format: RowFormat | None = None
    output: str | None = None
    max_rows: int = DEFAULT_SHOWN_ROWS


def row_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --format, --output and --max-rows; the command takes them as `wanted`."""

    @click.option(
        "--format",
        "row_format",
        type=click.Choice([one.value for one in RowFormat]),
        help="Form of the rows  [default: table on a terminal, csv in a pipe, by extension in a file]",
    )
    @click.option(
        "--output",
        "-o",
        metavar="FILE|URI",
        help="Write the rows to FILE, replacing it once they are complete.",
    )
    @click.option(
        "--max-rows",
        type=click.IntRange(min=0),
        default=DEFAULT_SHOWN_ROWS,
        show_default=True,
        metavar="N",
        help="Rows of a table to show; 0 shows all. Other forms are always complete.",
    )
    @wraps(command)
    def with_options(
        *args: Any, row_format: str | None, output: str | None, max_rows: int, **kwargs: Any
    ) -> Any:
        chosen = RowFormat(row_format) if row_format else None
        return command(
            *args, wanted=RowOptions(row_format=chosen, output=output, max_rows=max_rows), **kwargs
        )

    return with_options
