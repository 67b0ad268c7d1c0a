"""An Arrow stream from bytes that arrive in pieces; one that was cut is never taken for a shorter one.

pyarrow reads streams from files, takes the end of the file for the end of the stream, and waits while it reads. Here
the messages are found first (Arrow Columnar Format, "Encapsulated message format"), and the stream has ended only when
its end-of-stream marker has come.
"""

from __future__ import annotations

import struct
from collections import deque

import pyarrow as pa

from lakehouse_platform.errors import UnexpectedAnswerError

_CONTINUATION = 0xFFFFFFFF
_PREFIX = struct.Struct("<II")
_OFFSET = struct.Struct("<I")
_TABLE = struct.Struct("<i")
_SLOT = struct.Struct("<H")
_LONG = struct.Struct("<q")
# The fields of the flatbuffer table Message (Message.fbs) by number, and the kinds in its union MessageHeader.
_KIND_FIELD, _LENGTH_FIELD = 1, 3
_SCHEMA, _RECORD_BATCH = 1, 3
# Metadata tells a message's buffers, some 40 bytes a column: this is enough for a million columns.
_LONGEST_METADATA = 2**26
# The server sends batches of some megabytes; a message beyond this is no message.
_LONGEST_BODY = 2**31


class ArrowStream:
    """Takes the bytes of one stream and gives its record batches as soon as they are whole.

    Attributes:
        schema: The columns, once the first message has come.
    """

    def __init__(self) -> None:
        self.schema: pa.Schema | None = None
        self._bytes = _Bytes()
        self._next: int | None = None
        self._kind = 0
        self._source = _Source()
        self._reader: pa.RecordBatchReader | None = None
        self._ended = False

    def feed(self, piece: bytes) -> list[pa.RecordBatch]:
        """Take the next bytes and return the batches that are whole with them.

        Raises:
            UnexpectedAnswerError: The bytes are no Arrow stream.
        """
        self._bytes.add(piece)
        batches: list[pa.RecordBatch] = []
        while not self._ended and (message := self._message()) is not None:
            batches += self._read(message)
        if self._ended and len(self._bytes):
            raise _broken("there is more behind its end")
        return batches

    def finish(self) -> pa.Schema:
        """Return the columns: no more bytes will come.

        Raises:
            UnexpectedAnswerError: The stream was cut.
        """
        if not self._ended or self.schema is None:
            raise _broken("it was cut off before its end: rows are missing, so ask again")
        return self.schema

    def _message(self) -> memoryview | None:
        """Return the next whole message, or None until there is one."""
        if self._next is None:
            self._next = self._length()
        if self._next is None or len(self._bytes) < self._next:
            return None
        message = self._bytes.take(self._next)
        self._next = None
        return message

    def _length(self) -> int | None:
        """Return how long the next message is, as soon as its beginning tells."""
        if len(self._bytes) < _PREFIX.size:
            return None
        mark, size = _PREFIX.unpack(self._bytes.peek(_PREFIX.size))
        if mark != _CONTINUATION or size > _LONGEST_METADATA:
            raise _broken("a message does not begin like one")
        if size == 0:
            self._kind = 0
            return _PREFIX.size
        if len(self._bytes) < _PREFIX.size + size:
            return None
        self._kind, body = _header(self._bytes.peek(_PREFIX.size + size)[_PREFIX.size :])
        return _PREFIX.size + size + body

    def _read(self, message: memoryview) -> list[pa.RecordBatch]:
        self._source.add(message)
        try:
            if self._reader is None:
                if self._kind != _SCHEMA:
                    raise _broken("it does not begin with its columns")
                opened = pa.ipc.open_stream(pa.PythonFile(self._source, "r"))
                self._reader, self.schema = opened, opened.schema
                return []
            if self._kind == 0:
                self._ended = True
                return []
            # A dictionary is read together with the batch that follows it.
            return [self._reader.read_next_batch()] if self._kind == _RECORD_BATCH else []
        except (pa.ArrowException, OSError, EOFError) as error:
            raise _broken("a message cannot be read") from error


class _Bytes:
    """Bytes that are added in pieces and taken in other ones; a byte is copied only where a piece ends too early."""

    def __init__(self) -> None:
        self._parts: deque[memoryview] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, part: bytes | memoryview) -> None:
        if len(part):
            self._parts.append(memoryview(part).cast("B"))
            self._size += len(part)

    def peek(self, count: int) -> memoryview:
        if len(self._parts[0]) < count:
            self._gather(count)
        return self._parts[0][:count]

    def take(self, count: int) -> memoryview:
        taken = self.peek(count)
        rest = self._parts.popleft()[count:]
        if len(rest):
            self._parts.appendleft(rest)
        self._size -= count
        return taken

    def _gather(self, count: int) -> None:
        """Make the first part at least so long."""
        # Arrow's memory is that of rows read before: fresh memory from the system costs as much as the copy (measured).
        whole = memoryview(pa.allocate_buffer(count)).cast("B")
        size, rest = 0, memoryview(b"")
        while size < count:
            part = self._parts.popleft()
            taken, rest = part[: count - size], part[count - size :]
            whole[size : size + len(taken)] = taken
            size += len(taken)
        if len(rest):
            self._parts.appendleft(rest)
        self._parts.appendleft(whole)


class _Source:
    """A file for pyarrow that holds whole messages only, so that no reading of it waits or ends too early."""

    closed = False

    def __init__(self) -> None:
        self._bytes = _Bytes()

    def add(self, message: memoryview) -> None:
        self._bytes.add(message)

    def read(self, count: int = -1) -> bytes:
        return self.read_buffer(count).to_pybytes()

    def read_buffer(self, count: int) -> pa.Buffer:
        """Return the next bytes without a copy; pyarrow asks for it where the file has it."""
        count = len(self._bytes) if count < 0 else min(count, len(self._bytes))
        return pa.py_buffer(self._bytes.take(count) if count else b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _header(metadata: memoryview) -> tuple[int, int]:
    """Return the kind of a message and the length of its body, from the flatbuffer that describes it."""
    try:
        (table,) = _OFFSET.unpack_from(metadata)
        (distance,) = _TABLE.unpack_from(metadata, table)
        slots = table - distance
        if slots < 0:
            raise _broken("a message's description is damaged")
        (size,) = _SLOT.unpack_from(metadata, slots)
        kind_at, length_at = (
            _field(metadata, slots, size, number) for number in (_KIND_FIELD, _LENGTH_FIELD)
        )
        kind = metadata[table + kind_at] if kind_at else 0
        (length,) = _LONG.unpack_from(metadata, table + length_at) if length_at else (0,)
    except (struct.error, IndexError) as error:
        raise _broken("a message's description is damaged") from error
    if kind == 0 or not 0 <= length <= _LONGEST_BODY:
        raise _broken("a message's description is damaged")
    return kind, length


def _field(metadata: memoryview, slots: int, size: int, number: int) -> int:
    """Return where in its table a field stands; 0 if it has its default value."""
    place = 4 + 2 * number
    return _SLOT.unpack_from(metadata, slots + place)[0] if place < size else 0


def _broken(reason: str) -> UnexpectedAnswerError:
    return UnexpectedAnswerError(f"The rows that the server sent are not a whole Arrow stream: {reason}.")
