"""The scratch files' bytes: one file on disk per inode number, sparse where the scratch file is."""

from __future__ import annotations

import errno
import os
import weakref
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.operations import NfsError, Status

# The block of ext4, XFS and APFS, and the page of most clients.
BLOCK = 4096
_OPEN_FILES = 64
# Freeing a large file takes long (ext4, 3 GB just written: 1.1 s): such files are unlinked beside the loop.
_LARGE = 64 << 20
_STATUS = {errno.ENOSPC: Status.NOSPC, errno.EDQUOT: Status.DQUOT, errno.EFBIG: Status.FBIG}


class BlobContent:
    """The bytes of a scratch file as they are now; a `Content`. Readable after the file is removed. Close it after use.

    While it is open, the file refuses to change (JUKEBOX: the client tries again), so these bytes stay as they are.
    """

    def __init__(self, descriptor: int | None, size: int) -> None:
        self._descriptor, self._size = descriptor, size
        self._closing = weakref.finalize(self, _close, descriptor)

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self._size

    @property
    def is_open(self) -> bool:
        """Whether it still keeps the file from changing."""
        return self._closing.alive

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return the bytes of a range, cut at the end."""
        if not self.is_open:
            raise ValueError("the content is closed")
        count = min(count, self._size - offset)
        if self._descriptor is None or count <= 0:
            return []
        with refusing():
            return [os.pread(self._descriptor, count, offset)]

    def close(self) -> None:
        """Let the file change again."""
        self._closing()

    def __enter__(self) -> BlobContent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ScratchData:
    """The files that hold the bytes. One thread at a time, except `sync`, which any thread may call.

    Attributes:
        total: Bytes on disk that all files take.
    """

    def __init__(self, directory: Path, background: Executor) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self.total = 0
        self._directory, self._background = directory, background
        self._used: dict[int, int] = {}
        self._open: OrderedDict[int, int] = OrderedDict()
        self._unflushed_names: set[int] = set()
        self._serial = count()

    def reconcile(self, sizes: Mapping[int, int]) -> None:
        """Bring the files into line with the sizes that the tree knows, after a stop at any point."""
        found = {entry.name: entry.stat() for entry in os.scandir(self._directory)}
        for name in found.keys() - {self._path(inode).name for inode in sizes}:
            (self._directory / name).unlink()
        for inode, size in sizes.items():
            held = found.get(self._path(inode).name)
            if held is not None and held.st_size == size:
                self._account(inode, held)
            elif held is not None or size:
                self.resize(inode, size)

    def used(self, inode: int) -> int:
        """Return how many bytes on disk a file takes."""
        return self._used.get(inode, 0)

    def read(self, inode: int, offset: int, count: int) -> bytes:
        """Return bytes of a file that has some."""
        with refusing():
            return os.pread(self._descriptor(inode), count, offset)

    def write(self, inode: int, offset: int, data: memoryview) -> None:
        """Write bytes at any place; what lies between the old end and the offset reads as NUL."""
        with refusing():
            descriptor = self._descriptor(inode)
            written = 0
            while written < len(data):
                written += os.pwrite(descriptor, data[written:], offset + written)
            self._account(inode, os.fstat(descriptor))

    def resize(self, inode: int, size: int) -> None:
        """Cut a file, or lengthen it by a hole."""
        if size == 0 and self.used(inode) > _LARGE:
            self.remove(inode)
        with refusing():
            descriptor = self._descriptor(inode)
            os.ftruncate(descriptor, size)
            self._account(inode, os.fstat(descriptor))

    def missing(self, inode: int, offset: int, count: int) -> int:
        """Return how many bytes on disk a write would newly take, in whole blocks."""
        start, stop = offset - offset % BLOCK, -(-(offset + count) // BLOCK) * BLOCK
        missing = 0
        with refusing():
            descriptor = self._descriptor(inode)
            while start < stop:
                held = min(_next_data(descriptor, start), stop)
                missing += held - start
                start = os.lseek(descriptor, held, os.SEEK_HOLE) if held < stop else stop
        return missing

    def remove(self, inode: int) -> None:
        """Delete a file's bytes."""
        _close(self._open.pop(inode, None))
        used = self._used.pop(inode, None)
        self._unflushed_names.discard(inode)
        if used is None:
            return
        self.total -= used
        path = self._path(inode)
        with refusing():
            if used <= _LARGE:
                path.unlink()
                return
            gone = path.with_suffix(f".{next(self._serial)}")
            path.rename(gone)
        self._background.submit(gone.unlink)

    def content(self, inode: int, size: int) -> BlobContent:
        """Return a file's bytes as they are now."""
        if inode not in self._used:
            return BlobContent(None, size)
        with refusing():
            return BlobContent(os.open(self._path(inode), os.O_RDONLY), size)

    def sync(self, inode: int) -> None:
        """Flush a file's bytes. Blocks."""
        with refusing():
            try:
                # Not the descriptor of `_open`: the loop's thread may close that meanwhile.
                flush(self._path(inode))
            except FileNotFoundError:
                return  # It has no bytes, or was removed meanwhile.
            if inode in self._unflushed_names:
                flush(self._directory)
                self._unflushed_names.discard(inode)

    def close(self) -> None:
        """Close all files."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def _path(self, inode: int) -> Path:
        return self._directory / f"{inode:016x}"

    def _descriptor(self, inode: int) -> int:
        descriptor = self._open.get(inode)
        if descriptor is not None:
            self._open.move_to_end(inode)
            return descriptor
        descriptor = os.open(self._path(inode), os.O_RDWR | os.O_CREAT, 0o600)
        if inode not in self._used:
            self._unflushed_names.add(inode)
            self._account(inode, os.fstat(descriptor))
        self._open[inode] = descriptor
        if len(self._open) > _OPEN_FILES:
            _close(self._open.popitem(last=False)[1])
        return descriptor

    def _account(self, inode: int, held: os.stat_result) -> None:
        used = held.st_blocks * 512
        self.total += used - self._used.get(inode, 0)
        self._used[inode] = used


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _next_data(descriptor: int, offset: int) -> int:
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return 1 << 63


def flush(path: Path) -> None:
    """Put a file or directory on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def refusing() -> Generator[None]:
    """Turn what the operating system refuses into what a client is told."""
    try:
        yield
    except OSError as error:
        raise NfsError(_STATUS.get(error.errno or 0, Status.IO), str(error)) from error
