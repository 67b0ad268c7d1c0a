"""A file of JSON Lines as a stream of record batches, in bounded memory; errors name the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from lakehouse_platform.errors import InvalidRowsError, SourceFormatError
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.source_files import Progress, SourceFile, one_file, reading
from lakehouse_platform.text.json_rows import rows_from_json

# Large enough that parsing and not the loop around it takes the time; a block becomes some 50 MB of Python values.
_BLOCK_BYTES = 4 * 2**20
_LONGEST_LINE = 64 * 2**20


def open_json(
    source: str, schema: pa.Schema, storage_options: Mapping[str, str], on_progress: Progress | None = None
) -> RowSource:
    """Open a file with one JSON object per line; the returned stream reads it once.

    Args:
        source: A path or URI; gzip is recognised by `.gz`.
        schema: The columns of the table that the rows are for.
        storage_options: Credentials and endpoint for a URI.
        on_progress: Called with the bytes read and the bytes in total.

    Raises:
        SourceNotFoundError: No file is there.
    """
    return json_lines_of(one_file(source, storage_options), schema, on_progress=on_progress)


def json_lines_of(
    file: SourceFile,
    schema: pa.Schema,
    *,
    longest_line: int | None = None,
    on_progress: Progress | None = None,
) -> RowSource:
    """Return the rows of a file with one JSON object per line; see `open_json`.

    Args:
        file: The file.
        schema: The columns of the table that the rows are for.
        longest_line: Bytes that one line may have; None for what no honest file has.
        on_progress: Called with the bytes read and the bytes in total.
    """
    return RowSource(schema, file.size, _batches(file, schema, longest_line or _LONGEST_LINE, on_progress))


def _batches(
    file: SourceFile, schema: pa.Schema, longest_line: int, on_progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    line = 1
    for block in _blocks(file, longest_line, on_progress):
        yield from _rows(block, line, schema, file.shown).to_batches()
        line += block.count(b"\n")


def _blocks(file: SourceFile, longest_line: int, on_progress: Progress | None) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines."""
    rest = b""
    with reading(file.shown), file.open() as raw:
        stream = pa.CompressedInputStream(raw, "gzip") if file.shown.endswith(".gz") else raw
        while piece := stream.read(_BLOCK_BYTES):
            if on_progress is not None:
                on_progress(raw.tell(), file.size)
            whole, newline, tail = piece.rpartition(b"\n")
            if newline:
                yield rest + whole + newline
                rest = b""
            rest += tail
            if len(rest) > longest_line:
                raise SourceFormatError(
                    f"A line of {file.shown!r} is longer than {longest_line // 2**20} MB: it is not JSON Lines."
                )
    if rest:
        yield rest


def _rows(block: bytes, first_line: int, schema: pa.Schema, shown: str) -> pa.Table:
    try:
        return rows_from_json(block, schema)
    except InvalidRowsError:
        for number, line in enumerate(block.splitlines(), first_line):
            try:
                rows_from_json(line, schema)
            except InvalidRowsError as error:
                raise SourceFormatError(
                    f"Line {number} of {shown!r}: {error.message}",
                    source=shown,
                    line=number,
                    **_column(error),
                ) from error
        raise


def _column(error: InvalidRowsError) -> dict[str, object]:
    return {"column": error.details["column"]} if "column" in error.details else {}
