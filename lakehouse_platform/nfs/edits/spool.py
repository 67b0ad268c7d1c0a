"""The logs of edits: what is acknowledged is here before it is in the table.

One append-only file per edit. When the edit is over the file is emptied for the next one, but goes on counting: its
name and count identify commits, and a table remembers each name for good. A record is written whole or, if the process
or the machine dies, cut off by its checksum. Writing and syncing block: call them in a thread.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import threading
import weakref
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.operations import NfsError, Status

_SUFFIX, _UNFINISHED, _KEPT = ".log", ".new", ".kept"
# checksum, kind, offset, length of the payload
_HEAD = struct.Struct("<IBxxxQI")
_SUM = struct.Struct("<I")
_MOST_FREE = 32


class RecordKind(IntEnum):
    """What a record says. WRITE and UNSTABLE have the written bytes, a COMMITTED stands for those before it."""

    OPEN = 1
    WRITE = 2
    TRUNCATE = 3
    INTENT = 4
    PUBLISHED = 5
    REMOVED = 6
    CREATED = 7
    REVERTED = 8
    FREE = 9
    UNSTABLE = 10
    COMMITTED = 11


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a log.

    Attributes:
        kind: What it says.
        offset: Where in the file, or at which size.
        place: Where the payload begins in the log.
        length: Size of the payload.
    """

    kind: RecordKind
    offset: int
    place: int
    length: int


class SpoolLog:
    """The log of one edit. One thread at a time appends; any may read and sync.

    Attributes:
        id: Its name.
        path: Where it is.
        size: Bytes in it.
        count: How many commits were made, or tried, under its name by edits of before.
    """

    def __init__(self, path: Path, spool: Spool, size: int = 0, count: int = 0) -> None:
        self.id = path.stem
        self.path = path
        self.size = size
        self.count = count
        self._spool = spool
        self._synced = size
        self._syncing = threading.Lock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._closer = weakref.finalize(self, os.close, self._file)

    @property
    def is_synced(self) -> bool:
        """Whether all of it is on the disk."""
        return self._synced >= self.size

    def open_again(self) -> bool | None:
        """Read all of it; return whether an edit uses it, None if it is not known how often its name was used."""
        records = list(self.records())
        if not records or records[0].kind is not RecordKind.FREE:
            return None
        self.count = records[0].offset
        return len(records) > 1

    def pread(self, place: int, count: int) -> bytes:
        """Return bytes at a place."""
        return os.pread(self._file, count, place)

    def write(self, offset: int, data: Buffer, *, stable: bool = True) -> int:
        """Log written bytes, which a COMMIT follows if they are not stable, and return their place.

        Raises:
            NfsError: The spool or its disk is full (NOSPC); nothing was logged.
        """
        return self._append(RecordKind.WRITE if stable else RecordKind.UNSTABLE, offset, data)

    def note(self, kind: RecordKind, offset: int = 0, facts: Mapping[str, Any] | None = None) -> None:
        """Log anything else.

        Raises:
            NfsError: The spool or its disk is full (NOSPC); nothing was logged.
        """
        self._append(kind, offset, json.dumps(facts).encode() if facts is not None else b"")

    def facts(self, record: Record) -> dict[str, Any]:
        """Return the facts of a record."""
        return json.loads(self.pread(record.place, record.length) or b"{}")

    def sync(self) -> None:
        """Return when everything logged before is on the disk; waiting threads share one sync.

        Raises:
            NfsError: The disk refused (IO).
        """
        wanted = self.size
        with self._syncing:
            if self._synced >= wanted:
                return
            reached = self.size
            try:
                os.fdatasync(self._file)
            except OSError as error:
                raise NfsError(Status.IO, f"the spool's disk did not confirm: {error.strerror}") from error
            self._synced = reached

    def records(self) -> Iterator[Record]:
        """Yield the sound records; the log goes on after the last of them."""
        end = os.fstat(self._file).st_size
        self.size = 0
        while (record := self._record_at(self.size, end)) is not None:
            self.size = record.place + record.length
            yield record
        if end > self.size:
            os.ftruncate(self._file, self.size)
        self._synced = 0

    def age_ns(self, now_ns: int) -> int:
        """Return how long ago it was last written."""
        return now_ns - os.fstat(self._file).st_mtime_ns

    def drop(self, count: int | None = None) -> None:
        """Give the log up; what still refers to it can read on.

        Args:
            count: How many commits were made, or tried, under its name; None for none since it was taken.
        """
        self._spool.take_back(self, self.count if count is None else count)

    def set_aside(self) -> None:
        """Keep a copy of the log under a name that is left alone, which takes no room on the disk."""
        kept = self.path.with_suffix(_KEPT)
        kept.unlink(missing_ok=True)
        kept.hardlink_to(self.path)

    def discard(self) -> None:
        """Delete the log; its name is never used again."""
        self.path.unlink(missing_ok=True)
        self._spool.release(self.size)

    def _append(self, kind: RecordKind, offset: int, data: Buffer) -> int:
        head = _HEAD.pack(0, kind, offset, len(data))[_SUM.size :]
        checksum = _SUM.pack(zlib.crc32(data, zlib.crc32(head)))
        total = _HEAD.size + len(data)
        self._spool.reserve(total)
        try:
            _write_all(self._file, self.size, (checksum + head, data), total)
        except OSError as error:
            os.ftruncate(self._file, self.size)
            self._spool.release(total)
            raise NfsError(Status.NOSPC, f"the spool cannot be written: {error.strerror}") from error
        place = self.size + _HEAD.size
        self.size += total
        return place

    def _record_at(self, position: int, end: int) -> Record | None:
        head = self.pread(position, _HEAD.size)
        if len(head) < _HEAD.size:
            return None
        checksum, kind, offset, length = _HEAD.unpack(head)
        place = position + _HEAD.size
        if place + length > end or kind not in _KINDS:
            return None
        if self._checksum(head[_SUM.size :], place, length) != checksum:
            return None
        return Record(RecordKind(kind), offset, place, length)

    def _checksum(self, head: bytes, place: int, length: int) -> int:
        return zlib.crc32(self.pread(place, length), zlib.crc32(head))


_KINDS = frozenset(RecordKind)


class Spool:
    """The directory of logs, and how many bytes they may have together.

    A free log is always at hand, so that an edit begins without waiting for the directory to be synced.
    """

    def __init__(self, directory: Path, quota_bytes: int) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._quota = quota_bytes
        self._used = 0
        self._lock = threading.Lock()
        self._free: list[SpoolLog] = []

    @property
    def quota_bytes(self) -> int:
        """How many bytes all logs may have together."""
        return self._quota

    @property
    def used_bytes(self) -> int:
        """How many bytes all logs have."""
        return self._used

    def take(self) -> SpoolLog:
        """Return an empty log whose name is already durable."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return self._made(secrets.token_hex(8), 0)

    def prepare(self) -> None:
        """Make a free log if there is none."""
        if not self._free:
            made = self._made(secrets.token_hex(8), 0)
            with self._lock:
                self._free.append(made)

    def take_back(self, log: SpoolLog, count: int) -> None:
        """Empty a log for the next edit; if there are enough, or the disk refuses, delete it."""
        made = None
        if len(self._free) < _MOST_FREE:
            with suppress(NfsError):
                made = self._made(log.id, count)
        if made is None:
            log.discard()
            return
        self.release(log.size)
        with self._lock:
            self._free.append(made)

    def existing(self) -> list[SpoolLog]:
        """Return the logs of an earlier server that are in use, oldest first; the others are free."""
        stats: list[tuple[int, int, Path]] = []
        for path in self._directory.iterdir():
            if path.suffix == _SUFFIX:
                stats.append((path.stat().st_mtime_ns, path.stat().st_size, path))
            elif path.suffix == _UNFINISHED:
                path.unlink()
        used: list[SpoolLog] = []
        for _, size, path in sorted(stats):
            log = SpoolLog(path, self, size)
            self._used += size
            is_used = log.open_again()
            if is_used is None:
                log.discard()
            elif is_used:
                used.append(log)
            else:
                self._free.append(log)
        return used

    def reserve(self, count: int) -> None:
        """Count bytes that are about to be written.

        Raises:
            NfsError: They are too many (NOSPC).
        """
        with self._lock:
            if self._used + count > self._quota:
                raise NfsError(Status.NOSPC, f"the spool may hold {self._quota} bytes and has {self._used}")
            self._used += count

    def release(self, count: int) -> None:
        """Count bytes that are gone."""
        with self._lock:
            self._used -= count

    def _made(self, name: str, count: int) -> SpoolLog:
        unfinished, path = self._directory / f"{name}{_UNFINISHED}", self._directory / f"{name}{_SUFFIX}"
        unfinished.unlink(missing_ok=True)
        log = SpoolLog(unfinished, self, count=count)
        log.note(RecordKind.FREE, count)
        log.sync()
        try:
            unfinished.replace(path)
            _sync_directory(self._directory)
        except OSError as error:
            raise NfsError(Status.NOSPC, f"the spool cannot be written: {error.strerror}") from error
        log.path = path
        return log


def _write_all(file: int, position: int, buffers: tuple[Buffer, Buffer], total: int) -> None:
    written = os.pwritev(file, buffers, position)
    if written == total:
        return
    rest = memoryview(b"".join(buffers))[written:]
    while rest:
        count = os.pwrite(file, rest, position + written)
        written, rest = written + count, rest[count:]


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
