"""The key index's files: sorted hashes, written whole, checked when opened, deleted when nobody needs them."""

from __future__ import annotations

import struct
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from shutil import rmtree
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes: TypeAlias = npt.NDArray[np.uint64]

_DTYPE = np.dtype("<u8")
_MAGIC = b"LHKEYS01"
_HEADER = struct.Struct("<8sQQ")  # magic, number of hashes, their sum
# Up to here an entry is read into memory; larger ones are mapped, of which a process may have some 65 000.
_SMALL_BYTES = 1 << 20
_MEMORY_BYTES = 128 << 20
_MAPPINGS = 1_000
# Entries of files that are not live any more are looked for as often as so many new ones were made.
_SWEEP_EVERY = 64
# Entries of tables that nobody writes to any more, or that were dropped.
_UNUSED_S = 30 * 86_400


class Entries:
    """The entries of one directory that this process has open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._building: dict[Path, threading.Lock] = {}
        self._small = _Recent(_MEMORY_BYTES)
        self._mapped = _Recent(_MAPPINGS)
        self._unswept: Counter[Path] = Counter()
        self._swept: set[Path] = set()

    def get_all(
        self, folder: Path, names: Collection[str], build: Callable[[str], Hashes], threads: int
    ) -> dict[str, Hashes]:
        """Return entries by name: from memory, from disk, or built.

        Args:
            folder: Holds the entries of one table.
            names: Their file names.
            build: Makes the sorted hashes of an entry.
            threads: How many may be built at a time.
        """
        with self._lock:
            held = {name: self._recalled(f"{folder}/{name}") for name in names}
        missing = [name for name, hashes in held.items() if hashes is None]
        if missing:
            with ThreadPoolExecutor(threads) as pool:
                loaded = pool.map(lambda name: self._load(folder / name, partial(build, name)), missing)
                held.update(zip(missing, loaded, strict=True))
        return {name: hashes for name, hashes in held.items() if hashes is not None}

    def sweep(self, folder: Path, live: set[str]) -> None:
        """Delete entries of files that are not live, now and then."""
        with self._lock:
            new = self._unswept[folder]
            if not new or (folder in self._swept and new < _SWEEP_EVERY):
                return
            self._unswept[folder] = 0
            self._swept.add(folder)
        with suppress(OSError):
            _sweep(folder, live)

    def _load(self, path: Path, build: Callable[[], Hashes]) -> Hashes:
        with self._alone(path):
            with self._lock:
                found = self._recalled(str(path))
            if found is None:
                found = _read(path)
            if found is None:
                built = build()
                self._write(path, built)
                found = _read(path)
                if found is None:
                    return built
        with self._lock:
            self._remember(str(path), found)
        return found

    def _write(self, path: Path, hashes: Hashes) -> None:
        # An index that cannot be written costs time, no more.
        with suppress(OSError):
            _write(path, hashes)
            with self._lock:
                self._unswept[path.parent] += 1

    @contextmanager
    def _alone(self, path: Path) -> Generator[None]:
        """Keep other threads from building the same entry."""
        with self._lock:
            gate = self._building.setdefault(path, threading.Lock())
        with gate:
            yield
        with self._lock:
            self._building.pop(path, None)

    def _recalled(self, path: str) -> Hashes | None:
        found = self._small.get(path)
        return self._mapped.get(path) if found is None else found

    def _remember(self, path: str, hashes: Hashes) -> None:
        if hashes.nbytes <= _SMALL_BYTES:
            self._small.put(path, hashes, hashes.nbytes)
        else:
            self._mapped.put(path, hashes, 1)


class _Recent:
    """The entries used last, as many as fit a budget."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._used = 0
        self._entries: OrderedDict[str, tuple[Hashes, int]] = OrderedDict()

    def get(self, path: str) -> Hashes | None:
        found = self._entries.get(path)
        if found is None:
            return None
        self._entries.move_to_end(path)
        return found[0]

    def put(self, path: str, hashes: Hashes, cost: int) -> None:
        if path not in self._entries:
            self._used += cost
        self._entries[path] = (hashes, cost)
        while self._used > self._budget:
            _, (_, freed) = self._entries.popitem(last=False)
            self._used -= freed


@lru_cache(maxsize=8)
def entries_in(directory: Path) -> Entries:
    """Return the entries of a directory, the same object each time."""
    del directory
    return Entries()


def _read(path: Path) -> Hashes | None:
    """Return an entry's hashes; None if there is none or it is damaged."""
    with suppress(OSError, struct.error):
        data = _bytes(path)
        magic, count, total = _HEADER.unpack(data[: _HEADER.size])
        if magic != _MAGIC or len(data) != _HEADER.size + 8 * count:
            return None
        hashes = np.frombuffer(data, _DTYPE, offset=_HEADER.size)
        return hashes if _sum(hashes) == total else None
    return None


def _bytes(path: Path) -> memoryview:
    if path.stat().st_size <= _SMALL_BYTES:
        return memoryview(path.read_bytes())
    # Arrow keeps the mapping for as long as the bytes are used, and closes the file at once.
    with pa.memory_map(str(path)) as file:
        return memoryview(file.read_buffer())


def _write(path: Path, hashes: Hashes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_suffix(f".{uuid.uuid4().hex}")
    with unfinished.open("wb") as file:
        file.write(_HEADER.pack(_MAGIC, len(hashes), _sum(hashes)))
        file.write(hashes.astype(_DTYPE, copy=False).data)
    unfinished.replace(path)


def _sum(hashes: Hashes) -> int:
    return int(np.add.reduce(hashes, dtype=np.uint64))


def _sweep(folder: Path, live: set[str]) -> None:
    for entry in folder.iterdir():
        if entry.name not in live:
            entry.unlink(missing_ok=True)
    oldest = time.time() - _UNUSED_S
    for other in folder.parent.iterdir():
        if other != folder and other.stat().st_mtime < oldest:
            rmtree(other, ignore_errors=True)
