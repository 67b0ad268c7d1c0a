"""An Arrow IPC stream from somebody who is not trusted, as a stream of record batches.

Arrow's readers take care of their memory, but a stream may claim more than it brings: compressed buffers, texts that
many rows share, rows without a byte. Such streams could fill the memory when they are unpacked: they are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.store.row_source import RowSource
from lakehouse_platform.store.source_files import SourceFile

# As many rows as a batch of ours; columns that the sender leaves out are filled for so many rows at a time.
_SLICE_ROWS = 65_536
# Beyond any table that people make by hand or program; each column costs time in every check.
_MOST_COLUMNS = 4_096
# A Boolean takes one bit: no column that a table can hold takes less.
_MOST_ROWS_PER_BYTE = 8
# Types whose values stand in a row of the stream once and whole.
_FLAT = (
    pt.is_primitive, pt.is_decimal, pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary,
    pt.is_fixed_size_binary, pt.is_string_view, pt.is_binary_view,
)  # fmt: skip
_NESTED = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_struct, pt.is_map)

# Places in the flatbuffers of Arrow's format (Message.fbs): numbers of fields in their tables, and of kinds of headers.
_HEADER_KIND, _HEADER = 1, 2
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2
_ROWS, _COMPRESSION, _DICTIONARY_DATA = 0, 3, 1


def arrow_rows(file: SourceFile, most_bytes: int) -> RowSource:
    """Open an Arrow IPC stream; the returned stream reads it once.

    Args:
        file: Where its bytes are.
        most_bytes: Bytes that its rows may take unpacked.

    Raises:
        SourceFormatError: It is no such stream, or one that nobody honest writes.
    """
    _check_messages(file)
    stream = file.open()
    try:
        reader = pa.ipc.open_stream(stream)
        _check_schema(reader.schema, file)
    # Names are not looked at before they are asked for: they may be no UTF-8.
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        stream.close()
        raise _malformed(file, error) from error
    except SourceFormatError:
        stream.close()
        raise
    return RowSource(reader.schema, file.size, _batches(file, stream, reader, most_bytes))


def _batches(
    file: SourceFile, stream: pa.NativeFile, reader: pa.RecordBatchReader, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    left = most_bytes
    try:
        with stream:
            for number, batch in enumerate(reader, 1):
                batch.validate(full=True)
                left -= sum(_unpacked(column) for column in batch.columns)
                if left < 0:
                    raise _refused(file, f"batch {number} unpacks to more than {most_bytes} bytes in all")
                for start in range(0, batch.num_rows, _SLICE_ROWS):
                    yield batch.slice(start, _SLICE_ROWS)
    except (pa.ArrowException, OSError) as error:
        raise _malformed(file, error) from error


def _check_messages(file: SourceFile) -> None:
    """Look at the head of every message before anything is unpacked."""
    with file.open() as stream:
        try:
            for message in pa.ipc.MessageReader.open_stream(stream):
                _check_message(file, message)
            end = stream.tell()
        except (pa.ArrowException, OSError, struct.error) as error:
            raise _malformed(file, error) from error
    if end != file.size:
        raise _refused(file, f"{file.size - end} bytes follow its end: send one stream only")


def _check_message(file: SourceFile, message: Any) -> None:
    head = _Head(memoryview(message.metadata))
    size = message.body.size if message.body is not None else 0
    if head.is_compressed:
        raise _refused(file, "its buffers are compressed: write it uncompressed, and gzip the whole body")
    if head.rows > _MOST_ROWS_PER_BYTE * size:
        raise _refused(file, f"a batch claims {head.rows} rows in {size} bytes")


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of a message: a flatbuffer, which Arrow has verified."""

    bytes: memoryview

    @property
    def rows(self) -> int:
        batch = self._batch()
        place = None if batch is None else self._field(batch, _ROWS)
        return 0 if place is None else self._number("q", place)

    @property
    def is_compressed(self) -> bool:
        batch = self._batch()
        return batch is not None and self._field(batch, _COMPRESSION) is not None

    def _batch(self) -> int | None:
        root = self._number("I", 0)
        place = self._field(root, _HEADER_KIND)
        kind = None if place is None else self._number("B", place)
        if kind == _RECORD_BATCH:
            return self._table(root, _HEADER)
        header = self._table(root, _HEADER) if kind == _DICTIONARY_BATCH else None
        return None if header is None else self._table(header, _DICTIONARY_DATA)

    def _table(self, table: int, field: int) -> int | None:
        place = self._field(table, field)
        return None if place is None else place + self._number("I", place)

    def _field(self, table: int, field: int) -> int | None:
        """Return where a table's field stands; None if it has its default."""
        fields = table - self._number("i", table)
        entry = 4 + 2 * field
        if entry >= self._number("H", fields):
            return None
        offset = self._number("H", fields + entry)
        return table + offset if offset else None

    def _number(self, kind: str, place: int) -> int:
        return struct.unpack_from(f"<{kind}", self.bytes, place)[0]


def _check_schema(schema: pa.Schema, file: SourceFile) -> None:
    if len(schema) > _MOST_COLUMNS:
        raise _refused(file, f"it has {len(schema)} columns, {_MOST_COLUMNS} are taken")
    for field in schema:
        if not pt.is_null(field.type):
            _check_type(field.type, field.name, file)


def _check_type(kind: pa.DataType, column: str, file: SourceFile) -> None:
    if pt.is_dictionary(kind) and any(test(kind.value_type) for test in _FLAT):
        return
    if any(test(kind) for test in _NESTED):
        for part in _parts(kind):
            _check_type(part, column, file)
        return
    if not any(test(kind) for test in _FLAT):
        raise _refused(file, f"column {column!r} has type {kind}, which is not taken: cast it first", column)


def _parts(kind: pa.DataType) -> list[pa.DataType]:
    """Return the types of the fields inside; their names are read too, because they may be no text."""
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return [field.type for field in fields if field.name is not None]


def _unpacked(array: pa.Array) -> int:
    """Return the bytes that an array's values take, each written out."""
    kind = array.type
    if pt.is_dictionary(kind):
        if pt.is_primitive(kind.value_type) or pt.is_decimal(kind.value_type):
            return len(array) * kind.value_type.bit_width // 8
        lengths = pc.call_function("take", [_lengths(array.dictionary), array.indices])
        return _sum(lengths)
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        return _sum(_lengths(array))
    if any(test(kind) for test in _NESTED):
        parts = array.flatten() if pt.is_struct(kind) else [_entries(array)]
        return sum(_unpacked(part) for part in parts)
    return array.nbytes


def _entries(array: pa.Array) -> pa.Array:
    return array.values if pt.is_map(array.type) else array.flatten()


def _lengths(texts: pa.Array) -> pa.Array:
    if not (pt.is_string_view(texts.type) or pt.is_binary_view(texts.type)):
        return pc.call_function("binary_length", [texts]).cast(pa.int64())
    # Arrow 26 has no function for views: each is 16 bytes, of which the first four are the length.
    views = np.frombuffer(texts.buffers()[1], np.int32)[4 * texts.offset :: 4][: len(texts)]
    present = texts.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.where(present, views, 0), pa.int64())


def _sum(lengths: pa.Array) -> int:
    return pc.call_function("sum", [lengths]).as_py() or 0


def _malformed(file: SourceFile, error: Exception) -> SourceFormatError:
    return SourceFormatError(
        f"{file.shown[:1].upper()}{file.shown[1:]} is no sound Arrow IPC stream: {error}.", source=file.shown
    )


def _refused(file: SourceFile, reason: str, column: str | None = None) -> SourceFormatError:
    details = {} if column is None else {"column": column}
    return SourceFormatError(
        f"The Arrow stream in {file.shown} is not taken: {reason}.", source=file.shown, **details
    )
