"""Rows to a file, an object store or a stream, as CSV, JSON, JSON Lines, Parquet or Arrow."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_platform.errors import (
    InvalidArgumentError,
    LakehouseError,
    StorageIoError,
    StoragePermissionError,
)
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.source_files import is_uri, local_path
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.distinct import require_distinct
from lakehouse_platform.text.json_write import json_lines

# Rows written at a time. Polars writes CSV 40 % faster in 64 k than in 8 k; Parquet makes a row group of
# each.
_TEXT_ROWS = 65_536
_PARQUET_ROWS = 1_048_576
_MAX_BYTES = 64 * 2**20  # of Arrow data held back, however wide the rows


class ExportFormat(StrEnum):
    """A file format to export to."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"

    @classmethod
    def of(cls, destination: str | os.PathLike[str]) -> ExportFormat:
        """Return the format that a file name's ending means.

        Raises:
            InvalidArgumentError: It means none.
        """
        ending = os.fspath(destination).rpartition(".")[2].lower()
        known = {**{str(kind): kind for kind in cls}, "ndjson": cls.JSONL, "feather": cls.ARROW}
        if ending not in known:
            raise InvalidArgumentError(
                f"{os.fspath(destination)!r} does not end in one of .{', .'.join(known)}: name the format.",
                destination=os.fspath(destination),
            )
        return known[ending]


class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...


class _Sink:
    """A stream that counts: a pipe cannot tell its position, which Parquet and Arrow ask for."""

    closed = False

    def __init__(self, stream: _Writable) -> None:
        self._stream = stream
        self._position = 0

    def write(self, data: bytes) -> int:
        self._stream.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Leave it to the stream's owner."""


def export(
    reader: pa.RecordBatchReader,
    destination: str | os.PathLike[str] | BinaryIO,
    kind: ExportFormat | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Write all rows of a reader and return how many there were.

    A local file appears under its name only when all of it is on disk; until then, and after an error, what
    stood there is untouched.

    Args:
        reader: The rows.
        destination: A path, a URI, or a binary stream such as standard output, which is not closed.
        kind: The format; None to tell it by the destination's ending, or CSV for a stream.
        storage_options: Credentials and endpoint for a URI.
        on_progress: Called with the rows written so far.

    Raises:
        InvalidArgumentError: The format is not known, or a directory stands at the destination.
        InvalidSqlError: The format cannot hold columns, or fields, of one name.
        StoragePermissionError: Access is denied.
        StorageIoError: Writing failed.
    """
    with _opened(destination, storage_options) as sink:
        if isinstance(destination, (str, os.PathLike)):
            kind = kind or ExportFormat.of(destination)
        if kind in _BY_NAME:
            require_distinct(reader.schema)
        return _WRITERS[kind or ExportFormat.CSV](reader, _Sink(sink), on_progress or _ignore)


def _ignore(rows: int) -> None:
    del rows


def _write_csv(reader: pa.RecordBatchReader, sink: _Sink, report: Callable[[int], None]) -> int:
    sink.write(csv_header(reader.schema))
    rows = 0
    for batch in _gathered(reader, _TEXT_ROWS):
        sink.write(csv_rows(batch))
        rows += len(batch)
        report(rows)
    return rows


def _write_json_lines(reader: pa.RecordBatchReader, sink: _Sink, report: Callable[[int], None]) -> int:
    rows = 0
    for batch in _gathered(reader, _TEXT_ROWS):
        sink.write(json_lines(batch))
        rows += len(batch)
        report(rows)
    return rows


def _write_json(reader: pa.RecordBatchReader, sink: _Sink, report: Callable[[int], None]) -> int:
    rows = 0
    for batch in _gathered(reader, _TEXT_ROWS):
        lines = json_lines(batch)[:-1].replace(b"}\n{", b"},\n{")
        sink.write((b",\n" if rows else b"[\n") + lines)
        rows += len(batch)
        report(rows)
    sink.write(b"\n]\n" if rows else b"[]\n")
    return rows


def _write_parquet(reader: pa.RecordBatchReader, sink: _Sink, report: Callable[[int], None]) -> int:
    schema = _plain_schema(reader.schema)
    rows = 0
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        for batch in _gathered(reader, _PARQUET_ROWS):
            writer.write_batch(batch)
            rows += len(batch)
            report(rows)
    return rows


def _write_arrow(reader: pa.RecordBatchReader, sink: _Sink, report: Callable[[int], None]) -> int:
    schema = _plain_schema(reader.schema)
    rows = 0
    with pa.ipc.new_file(pa.PythonFile(sink, mode="w"), schema) as writer:
        for batch in _gathered(reader, _TEXT_ROWS):
            writer.write_batch(batch)
            rows += len(batch)
            report(rows)
    return rows


_WRITERS = {
    ExportFormat.CSV: _write_csv,
    ExportFormat.JSON: _write_json,
    ExportFormat.JSONL: _write_json_lines,
    ExportFormat.PARQUET: _write_parquet,
    ExportFormat.ARROW: _write_arrow,
}


# What finds values by the names of their columns; common readers refuse Parquet files with two of one name.
_BY_NAME = frozenset({ExportFormat.JSON, ExportFormat.JSONL, ExportFormat.PARQUET})


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema without string views, which older readers do not know and kernels cannot join."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return pa.schema([column.with_type(plain.get(column.type, column.type)) for column in schema])


def _gathered(reader: pa.RecordBatchReader, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of at least so many rows or `_MAX_BYTES`, except the last; never an empty one."""
    schema = _plain_schema(reader.schema)
    held: list[pa.RecordBatch] = []
    for batch in reader:
        if len(batch):
            held.append(batch.cast(schema))
        if sum(map(len, held)) >= rows or sum(one.nbytes for one in held) >= _MAX_BYTES:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


@contextmanager
def _opened(
    destination: str | os.PathLike[str] | BinaryIO, options: Mapping[str, str] | None
) -> Generator[_Writable]:
    if not isinstance(destination, (str, os.PathLike)):
        yield destination
        return
    text = os.fspath(destination)
    with (
        _writing(text),
        _remote_object(text, options) if is_uri(text) else _local_file(local_path(text)) as sink,
    ):
        yield sink


@contextmanager
def _writing(shown: str) -> Generator[None]:
    try:
        yield
    except LakehouseError:
        raise
    except IsADirectoryError as error:
        raise InvalidArgumentError(
            f"{shown!r} is a directory: name a file in it.", destination=shown
        ) from error
    except FileNotFoundError as error:
        raise InvalidArgumentError(
            f"The directory of {shown!r} does not exist: make it first.", destination=shown
        ) from error
    except PermissionError as error:
        raise StoragePermissionError(
            f"Writing {shown!r} is not allowed: check the permissions of its directory.", destination=shown
        ) from error
    except OSError as error:
        raise StorageIoError(
            f"Writing {shown!r} failed: {error}. Nothing was exported.", destination=shown
        ) from error


@contextmanager
def _local_file(path: Path) -> Generator[_Writable]:
    path = path.resolve()
    if path.is_dir():
        raise IsADirectoryError(path)
    if path.exists() and not path.is_file():  # a device or a pipe
        with path.open("wb") as sink:
            yield sink
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _remote_object(uri: str, options: Mapping[str, str] | None) -> Generator[_Writable]:
    parent, _, name = uri.rpartition("/")
    filesystem = Location.parse(parent, options).filesystem()
    try:
        # Unbuffered, deltalake 1.6.6 is handed a buffer that it does not take.
        with filesystem.open_output_stream(name, buffer_size=_MAX_BYTES // 8) as sink:
            yield sink
    except BaseException:
        # Closing the stream made an object of the part that was written.
        filesystem.delete_file(name)
        raise
