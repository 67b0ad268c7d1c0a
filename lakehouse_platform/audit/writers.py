"""Writers of the journal: the lock that tells whether one lives, and what a dead one left.

A writer is one journal of one process. It holds a lock on `<writer>.lock` for as long as it lives.

A table remembers the name of each writer for good. So a writer that ended in order leaves its name, and in the lock's
file how far it counted, and the next writer goes on under that name. It begins its count at the time, so that it
counts beyond what the table has even if the directory was put back to an earlier state.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lakehouse_platform.audit.segments import PRIVATE, SEGMENT_SUFFIX, decode_segment
from lakehouse_platform.errors import StorageIoError

LOCK_SUFFIX = ".lock"
_COUNT = struct.Struct("<QI")  # how far a writer counted, checksum of it
_CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class WriterLock:
    """The lock of one writer, held until it is closed or the process ends.

    Attributes:
        directory: Where the writer's files are.
        writer: Its name.
    """

    directory: Path
    writer: str
    _file: int

    @classmethod
    def take(cls, directory: Path, writer: str) -> Self | None:
        """Return the lock; None if a living writer holds it, or gave it up in this moment.

        Raises:
            OSError: The disk refused.
        """
        path = directory / f"{writer}{LOCK_SUFFIX}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have deleted the file, and then another one can lock its successor.
            if path.stat().st_ino == os.fstat(file).st_ino:
                return cls(directory, writer, file)
        except (BlockingIOError, FileNotFoundError):
            os.close(file)
            return None
        os.close(file)
        return None

    @classmethod
    def take_free(cls, directory: Path) -> tuple[Self, int] | None:
        """Return the lock of a writer that ended in order, and how far it counted; None if there is none.

        Raises:
            OSError: The disk refused.
        """
        for writer in writers(directory):
            lock = cls.take(directory, writer)
            if lock is None:
                continue
            count = lock.count()
            if count is not None and not lock.segments():
                # From here on nobody can tell how far it counts, unless it ends in order again.
                lock.forget_count()
                return lock, count
            lock.close()
        return None

    def count(self) -> int | None:
        """Return how far the writer counted before it ended in order; None if it did not."""
        data = os.pread(self._file, _COUNT.size + 1, 0)
        if len(data) != _COUNT.size:
            return None
        count, checksum = _COUNT.unpack(data)
        return count if checksum == zlib.crc32(data[:-_CHECKSUM_BYTES]) else None

    def forget_count(self) -> None:
        """Say no more how far the writer counted.

        Raises:
            OSError: The disk refused.
        """
        os.ftruncate(self._file, 0)
        os.fsync(self._file)

    def set_free(self, count: int) -> None:
        """Let the next writer go on under this name; the tables must have all records, which are so many.

        Raises:
            OSError: The disk refused.
        """
        for path in self.segments():
            path.unlink(missing_ok=True)
        data = _COUNT.pack(count, 0)[:-_CHECKSUM_BYTES]
        os.pwrite(self._file, data + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little"), 0)
        os.fsync(self._file)

    def segments(self) -> list[Path]:
        """Return the writer's segment files, oldest first."""
        return sorted(self.directory.glob(f"{self.writer}.*{SEGMENT_SUFFIX}"))

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the records of all segments with their indexes.

        Raises:
            OSError: The disk refused.
            StorageIoError: A segment lacks records in its middle, which no crash explains.
        """
        paths = self.segments()
        ends = [*(_first_index(path) for path in paths), None][1:]
        for path, end in zip(paths, ends, strict=True):
            records = decode_segment(path.read_bytes())
            # Beyond the next one's beginning are records that were refused when the disk failed; their numbers were
            # given anew.
            yield from ((index, payload) for index, payload in records if end is None or index < end)
            last = records[-1][0] if records else _first_index(path) - 1
            if end is not None and last < end - 1:
                raise _damaged(path, last + 1, end - 1)

    def discard(self) -> None:
        """Delete the writer's files, the lock last."""
        for path in self.segments():
            path.unlink(missing_ok=True)
        (self.directory / f"{self.writer}{LOCK_SUFFIX}").unlink(missing_ok=True)

    def close(self) -> None:
        """Give the lock up."""
        os.close(self._file)


def _first_index(path: Path) -> int:
    return int(path.name.split(".")[1])


def _damaged(path: Path, first: int, last: int) -> StorageIoError:
    return StorageIoError(
        f"The audit journal {path} is damaged: its records {first} to {last} cannot be read, though they were "
        "acknowledged. Restore the file from a backup, or move it away to give them up.",
        path=str(path),
    )


def writers(directory: Path) -> list[str]:
    """Return the names of all writers that left something in the directory, living or dead."""
    names = (path.name for path in directory.iterdir())
    return sorted({name.partition(".")[0] for name in names if name.endswith((LOCK_SUFFIX, SEGMENT_SUFFIX))})
