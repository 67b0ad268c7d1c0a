"""Segment files: records that a crash can only cut off at the end.

A writer's records are in `<writer>.<number of the first>.journal`. Their numbers grow over the writer's whole life; so
what a table holds of a writer is told by one number, however the records were cut into batches.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

SEGMENT_SUFFIX = ".journal"
_MAGIC = b"LHAUDIT1"
_HEADER = struct.Struct("<8sQI")  # magic, index of the first record, checksum of both
_SUM = struct.Struct("<I")
_RECORD = struct.Struct("<II")  # checksum of all that follows, length of the payload
PRIVATE = 0o600


def encode_header(first: int) -> bytes:
    """Return what a segment begins with, whose first record has this index."""
    body = _HEADER.pack(_MAGIC, first, 0)[: -_SUM.size]
    return body + _SUM.pack(zlib.crc32(body))


def encode_record(payload: bytes) -> bytes:
    """Return a record as the segment holds it."""
    length = _SUM.pack(len(payload))
    return _SUM.pack(zlib.crc32(payload, zlib.crc32(length))) + length + payload


def decode_segment(data: bytes) -> list[tuple[int, bytes]]:
    """Return a segment's records with their indexes, up to the first that is not whole."""
    if len(data) < _HEADER.size:
        return []
    magic, first, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC or checksum != zlib.crc32(data[: _HEADER.size - _SUM.size]):
        return []
    return list(enumerate(_payloads(data, _HEADER.size), first))


def _payloads(data: bytes, position: int) -> Iterator[bytes]:
    while position + _RECORD.size <= len(data):
        checksum, length = _RECORD.unpack_from(data, position)
        begin, end = position + _RECORD.size, position + _RECORD.size + length
        if end > len(data) or checksum != zlib.crc32(data[position + _SUM.size : end]):
            return
        yield data[begin:end]
        position = end


class Segment:
    """A segment that is written.

    Attributes:
        path: Where it is.
        first: Index of its first record.
        count: Records that are on the disk.
        size: Bytes that are on the disk.
    """

    def __init__(self, directory: Path, writer: str, first: int) -> None:
        """Make the file, durable before its first record.

        Raises:
            OSError: The disk refused; no file is left.
        """
        self.path = directory / f"{writer}.{first:020}{SEGMENT_SUFFIX}"
        self.first = first
        self.count = 0
        self.size = 0
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)
        try:
            self.append(encode_header(first), 0)
            sync_directory(directory)
        except BaseException:
            self.discard()
            raise

    @property
    def last(self) -> int:
        """Index of its last record; one less than the first if there is none."""
        return self.first + self.count - 1

    def append(self, data: bytes, count: int) -> None:
        """Return when the data, which is so many records, is on the disk.

        Raises:
            OSError: The disk refused; the segment must not be written to any more.
        """
        rest, position = memoryview(data), self.size
        while rest:
            written = os.pwrite(self._file, rest, position)
            rest, position = rest[written:], position + written
        os.fdatasync(self._file)
        self.size, self.count = position, self.count + count

    def cut(self) -> None:
        """Take away what was written, but is not known to be on the disk.

        Raises:
            OSError: The disk refused.
        """
        os.ftruncate(self._file, self.size)

    def close(self) -> None:
        """Close the file and leave it."""
        os.close(self._file)

    def discard(self) -> None:
        """Close the file and delete it."""
        os.close(self._file)
        self.path.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Return when the directory's names are on the disk.

    Raises:
        OSError: The disk refused.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
