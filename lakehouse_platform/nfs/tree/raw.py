"""Files as they are on disk or in an object store, as contents."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from lakehouse_platform.errors import DataFilesMissingError, StorageIoError
from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.tree.blocks import Blocks
from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.pinned import open_raw

# Two clients that each stream with the kernel's default read-ahead have 32 blocks under way.
_BLOCK_BUDGET = 64 << 20
# Opening an object took 6 ms of the 16 ms that a block takes (SeaweedFS on the same machine); so many stay open.
_MOST_OPEN = 32

_FileKey: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file of the local disk that does not change; a `Content`. Reading blocks.

    Mapped files were no faster (0.10 ms per MiB either way, 2 cores, loopback): the socket's copy is what counts. And
    a mapping ends the whole server (SIGBUS) when somebody cuts the file short or the disk cannot read it.

    Attributes:
        path: Where it is.
        size: How many bytes it has.
    """

    path: Path
    size: int

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return the bytes of a range, cut at the end.

        Raises:
            DataFilesMissingError: It is gone.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise DataFilesMissingError(f"The file {self.path.name} is gone.", path=self.path.name) from error
        try:
            return [os.pread(descriptor, max(0, min(count, self.size - offset)), offset)]
        finally:
            os.close(descriptor)


class RawFiles:
    """Data files as contents, with what was last read of those in object stores. Safe to use from several threads."""

    def __init__(self, budget_bytes: int = _BLOCK_BUDGET) -> None:
        self.blocks = Blocks(budget_bytes)
        self._lock = threading.Lock()
        self._idle: deque[tuple[_FileKey, pa.NativeFile]] = deque()

    def content(self, location: Location, path: str, size: int) -> FileContent | StoredFile:
        """Return the bytes of a data file.

        Args:
            location: Its table.
            path: As the table's log writes it.
            size: How many bytes it has.
        """
        if location.is_local and "://" not in path:
            return FileContent(location.path / unquote(path), size)
        return StoredFile(self, location, path, size)

    def fetched(self, file: StoredFile, offset: int, count: int) -> bytes:
        """Read bytes of an object; each of its readers under way has it open for itself.

        Raises:
            DataFilesMissingError: It is gone.
            StorageIoError: It is shorter than the log says.
        """
        with translated(file.location):
            source = self._taken(file.key) or open_raw(file.location, file.path)
            data = source.read_at(count, offset)
        if len(data) != count:
            raise StorageIoError(f"Data file {file.path!r} is shorter than the log says.", path=file.path)
        self._give_back(file.key, source)
        return data

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            while self._idle:
                self._idle.popleft()[1].close()

    def _taken(self, key: _FileKey) -> pa.NativeFile | None:
        with self._lock:
            found = next((number for number, (owner, _) in enumerate(self._idle) if owner == key), None)
            if found is None:
                return None
            _, source = self._idle[found]
            del self._idle[found]
            return source

    def _give_back(self, key: _FileKey, source: pa.NativeFile) -> None:
        with self._lock:
            self._idle.append((key, source))
            oldest = self._idle.popleft()[1] if len(self._idle) > _MOST_OPEN else None
        if oldest is not None:
            oldest.close()


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file in an object store; a `Content`. Reading blocks.

    Attributes:
        files: Keeps what was read of it.
        location: Its table.
        path: As the table's log writes it.
        size: How many bytes it has.
    """

    files: RawFiles
    location: Location
    path: str
    size: int

    @property
    def key(self) -> _FileKey:
        """What tells its bytes from those of others."""
        return self.location.uri, self.path, self.size

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return the bytes of a range, cut at the end."""
        stop = min(offset + count, self.size)
        if stop <= offset:  # an object store refuses to look behind the end
            return []
        return self.files.blocks.read(self.key, self.size, offset, stop, partial(self.files.fetched, self))
