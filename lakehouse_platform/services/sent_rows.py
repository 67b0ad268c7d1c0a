"""Rows that were sent as bytes, in whatever form, as a stream of record batches in bounded memory.

Whoever sent them is not trusted: nothing is believed about sizes, and what is malformed is refused before anything of
it is stored.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum, auto
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.services.arrow_source import arrow_rows
from lakehouse_platform.services.json_source import json_lines_of
from lakehouse_platform.store.csv_source import CsvOptions, InferMode, csv_names, csv_rows_of
from lakehouse_platform.store.database import merge_source
from lakehouse_platform.store.merge import OPERATION_COLUMN, MergeSource
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.source_files import SourceFile
from lakehouse_platform.text.json_rows import rows_from_json

_GZIP = b"\x1f\x8b"
_AT_ONCE = 2**20
_SHOWN = "body"  # how messages name the bytes
_OPERATION = pa.field(OPERATION_COLUMN, pa.string())


class SentForm(StrEnum):
    """A form in which rows can be sent."""

    JSON = auto()
    NDJSON = auto()
    CSV = auto()
    ARROW = auto()


@dataclass(frozen=True, slots=True)
class _Sent(SourceFile):
    """The bytes as a file: in memory, or in a file of ours whose name nobody is told."""

    content: bytes | None

    def open(self) -> pa.NativeFile:
        """Open the bytes for reading from anywhere."""
        return pa.memory_map(self.path) if self.content is None else pa.BufferReader(self.content)


@dataclass(frozen=True, slots=True)
class SentRows:
    """Rows as they were sent.

    Attributes:
        form: What the bytes are.
        held: The bytes, or the file that holds them.
        size: How many there are.
        most_bytes: Bytes that they may take when they are unpacked.
        most_json_bytes: Bytes that may become Python values at once: a JSON array as a whole, a line of NDJSON.
    """

    form: SentForm
    held: bytes | Path
    size: int
    most_bytes: int
    most_json_bytes: int

    def opened(self, schema: pa.Schema, *, evolve: bool = False) -> RowSource:
        """Return the rows for a table, as a stream that is read once; columns are matched by name.

        Args:
            schema: The table's columns.
            evolve: Whether columns that the table lacks are let through, in the type that the rows have them.

        Raises:
            SourceFormatError, InvalidRowsError: The bytes are not what the form says or do not fit the schema: line or
                row and column are named.
        """
        file = self._checked()
        if self.form is SentForm.ARROW:
            return arrow_rows(file, self.most_bytes)
        if evolve and self.form is not SentForm.CSV:
            raise SourceFormatError("JSON does not say which types new columns have: add them first.")
        if self.form is SentForm.CSV:
            into = self._widened(file, schema) if evolve else schema
            return csv_rows_of(file, CsvOptions(schema=into, delimiter=","))
        if self.form is SentForm.NDJSON:
            return json_lines_of(file, schema, longest_line=self.most_json_bytes)
        rows = rows_from_json(self._json(file), schema)
        return RowSource(schema, self.size, iter(rows.to_batches()))

    def to_merge(self, schema: pa.Schema) -> pa.Table | MergeSource:
        """Return the rows for a merge, each with an optional `_op`; a column that none gives is left out.

        Raises:
            SourceFormatError, InvalidRowsError: See `opened`.
        """
        file = self._checked()
        if self.form in {SentForm.JSON, SentForm.NDJSON}:
            return merge_source(self._json(file), schema)
        if self.form is SentForm.ARROW:
            return read_whole(arrow_rows(file, self.most_bytes))
        every = pa.schema([*(field.with_nullable(True) for field in schema), _OPERATION])
        given = csv_names(file, ",")
        known = pa.schema([every.field(name) for name in every.names if name in given])
        # With all columns the error about an unknown one can name those that there are.
        into = known if set(given) <= set(every.names) else every
        return read_whole(csv_rows_of(file, CsvOptions(schema=into, delimiter=",")))

    def digest_into(self, digest: hmac.HMAC) -> None:
        """Feed the form and the bytes to a digest."""
        digest.update(self.form.encode())
        with self._file().open() as stream:
            while part := stream.read(_AT_ONCE):
                digest.update(part)

    def _file(self) -> SourceFile:
        content = self.held if isinstance(self.held, bytes) else None
        path = "" if isinstance(self.held, bytes) else str(self.held)
        return _Sent(pafs.LocalFileSystem(), path, _SHOWN, self.size, content)

    def _checked(self) -> SourceFile:
        file = self._file()
        if self.form is SentForm.ARROW:
            return file
        with file.open() as stream:
            if stream.read(len(_GZIP)) == _GZIP:
                # Files are unpacked by themselves, without a limit.
                raise SourceFormatError(
                    "The body is gzip inside: send it once packed, as Content-Encoding: gzip says."
                )
        return file

    def _json(self, file: SourceFile) -> bytes:
        if self.size > self.most_json_bytes:
            raise SourceFormatError(
                f"JSON that is read as a whole may have {self.most_json_bytes} bytes; this has {self.size}: send "
                "NDJSON, CSV or Arrow, or fewer rows at a time.",
                size=self.size,
            )
        with file.open() as stream:
            return stream.read()

    def _widened(self, file: SourceFile, schema: pa.Schema) -> pa.Schema:
        found = csv_rows_of(file, CsvOptions(delimiter=",", infer=InferMode.ALL))
        with found:
            new = [column.with_nullable(True) for column in found.schema if column.name not in schema.names]
        return pa.schema([*schema, *new])


def read_whole(source: RowSource) -> pa.Table:
    """Return all rows of a source, and close it.

    Raises:
        LakehouseError: A row cannot be read.
    """
    with source:
        try:
            return source.reader.read_all()
        except Exception:
            source.raise_pending()
            raise
