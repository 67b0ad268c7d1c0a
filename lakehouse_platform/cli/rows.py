"""Printing rows: which form they take, and streaming them there."""

from __future__ import annotations

import json
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.progress import row_progress
from lakehouse_platform.cli.row_options import BINARY_FORMATS, FORMAT_OF_SUFFIX, RowFormat, RowOptions
from lakehouse_platform.cli.row_source import RowSource
from lakehouse_platform.cli.session import Session

if TYPE_CHECKING:
    import pyarrow as pa


def print_rows(
    session: Session, rows: RowSource | pa.Table, wanted: RowOptions, *, total: int | None = None
) -> None:
    """Write rows where and how the user wants them, in bounded memory; `total` is for the progress bar."""
    row_format = chosen_format(session, wanted)
    if wanted.output is not None:
        _write_to_file(session, rows, row_format, wanted.output, total)
    elif row_format is RowFormat.TABLE:
        _show(rows, wanted.max_rows)
    else:
        _write_to_stdout(rows, row_format)


def chosen_format(session: Session, wanted: RowOptions) -> RowFormat:
    """Return the form: as asked for, else by the file's extension, else by who reads standard output.

    Raises:
        click.UsageError: The wishes contradict each other, or the form does not suit the destination.
    """
    if wanted.output is not None:
        return _file_format(wanted.row_format, wanted.output)
    if session.as_json and wanted.row_format not in (None, RowFormat.JSON):
        raise click.UsageError(
            f"--json and --format {wanted.row_format} contradict each other: give one of them."
        )
    if wanted.row_format in BINARY_FORMATS and sys.stdout.isatty():
        raise click.UsageError(f"{wanted.row_format} is binary: add --output FILE or pipe it somewhere.")
    if wanted.row_format is not None:
        return wanted.row_format
    if session.as_json:
        return RowFormat.JSON
    return RowFormat.TABLE if sys.stdout.isatty() else RowFormat.CSV


def _file_format(asked: RowFormat | None, output: str) -> RowFormat:
    row_format = asked or FORMAT_OF_SUFFIX.get(PurePath(output).suffix.lower())
    if row_format is None:
        known = ", ".join(FORMAT_OF_SUFFIX)
        raise click.UsageError(
            f"The form of {output} is not clear: end it in one of {known}, or add --format."
        )
    if row_format is RowFormat.TABLE:
        raise click.UsageError(
            "A table is for reading: use --format csv, json, jsonl, parquet or arrow in a file."
        )
    return row_format


def _write_to_file(
    session: Session, rows: RowSource | pa.Table, row_format: RowFormat, output: str, total: int | None
) -> None:
    from lakehouse_platform.services.files import export_rows

    options = session.config.plain_storage_options
    with row_progress(session, f"Writing {output}", total) as report:
        written = export_rows(rows, output, row_format, storage_options=options, on_progress=report)
    session.output.say(
        f"Wrote {counted(written, 'row')} to {output}.",
        {"file": output, "format": row_format.value, "rows": written},
    )


def _write_to_stdout(rows: RowSource | pa.Table, row_format: RowFormat) -> None:
    from lakehouse_platform.services.files import export_rows

    export_rows(rows, sys.stdout.buffer, row_format)


def _show(rows: RowSource | pa.Table, max_rows: int) -> None:
    """Show the first rows as a table and say how many more there are."""
    from lakehouse_platform.cli.grid import print_grid

    reader = rows.reader() if isinstance(rows, RowSource) else rows.to_reader()
    shown: list[list[str | None]] = []
    total = 0
    for batch in reader:
        total += batch.num_rows
        wanted = batch.num_rows if max_rows == 0 else max_rows - len(shown)
        if wanted > 0:
            shown += _cells(batch.slice(0, wanted))
    numeric = {index for index, field in enumerate(rows.schema) if _is_number(field.type)}
    print_grid(rows.schema.names, shown, right=numeric)
    click.echo(_footer(len(shown), total))


def _cells(batch: pa.RecordBatch) -> list[list[str | None]]:
    from lakehouse_platform.text.json_write import json_values

    columns = [[_cell(value) for value in json_values(column)] for column in batch.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        # Quotes mark the texts that could be taken for NULL or for nothing.
        return f"'{value}'" if value in ("", "NULL") else value
    return json.dumps(value, ensure_ascii=False)


def _footer(shown: int, total: int) -> str:
    if shown == total:
        return f"({counted(total, 'row')})"
    more = counted(total - shown, "more row")
    return f"… {more} ({counted(total, 'row')}; --max-rows 0 shows all, --format csv writes all)"


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow.types as pt

    return pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
