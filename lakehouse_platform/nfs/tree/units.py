"""Cache files: one for each large segment, and packs that collect small ones; the longest unused go first.

A file is complete before it gets its name and before the database knows it, so that a kill leaves nothing half. After a
restart of the machine none is trusted: they are not flushed to disk, because their bytes can be rendered again.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lakehouse_platform.errors import StorageIoError
from lakehouse_platform.nfs.tree.sizes import Placement, Sizes

# A pack holds at least 256 of the largest segments that go into one. Its file is sparse: only what is used takes room.
PACK_BYTES = 1 << 24
# Each mapping holds a descriptor (CPython before 3.13), and 1 024 is a usual limit of a process.
_MOST_MAPPED = 256
# Pages of mapped files count as the process's memory once they are read. They are given back after so many bytes;
# reading them again costs a soft page fault for every 64 KiB (7 % of a warm read).
_RESIDENT_BYTES = 512 << 20
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class _Unit:
    path: Path
    pack: str
    used: int
    map: mmap.mmap | None = None


class Units:
    """The cache directory; safe to use from several threads."""

    def __init__(
        self, directory: Path, sizes: Sizes, budget_bytes: int, *, resident_bytes: int = _RESIDENT_BYTES
    ) -> None:
        """Open the cache and drop what a killed process, or another boot, left in it."""
        self._directory = directory
        self._sizes = sizes
        self._budget = budget_bytes
        self._lock = threading.RLock()
        self._units: OrderedDict[int, _Unit] = OrderedDict()
        self._mapped: OrderedDict[int, None] = OrderedDict()
        self._packs: dict[str, int] = {}
        self._used = 0
        self._most_resident = resident_bytes
        self._resident = 0
        self._evicted: list[Path] = []
        self._next = 1
        directory.mkdir(parents=True, exist_ok=True)
        self._load()

    @property
    def used_bytes(self) -> int:
        """Bytes in the cache."""
        return self._used

    def has(self, unit: int) -> bool:
        """Tell whether a cache file is still there; if so, it is not the next to go."""
        with self._lock:
            if unit in self._units:
                self._units.move_to_end(unit)
                return True
            return False

    def view(self, unit: int, at: int, size: int) -> memoryview | None:
        """Return bytes of a cache file, or None if it is evicted. While the view lives, the file stays."""
        with self._lock:
            found = self._units.get(unit)
            if found is None:
                return None
            if found.map is None and not self._map(unit, found):
                return None
            self._units.move_to_end(unit)
            self._mapped.move_to_end(unit)
            assert found.map is not None  # noqa: S101
            self._count_resident(size)
            return memoryview(found.map)[at : at + size]

    @contextmanager
    def new_file(self) -> Generator[tuple[BinaryIO, list[Placement]]]:
        """Write a segment's own file; it gets its name when the block ends, and its placement is put into the list."""
        with self._lock:
            unit, self._next = self._next, self._next + 1
        path, placements = self._path(unit, ""), list[Placement]()
        temporary = path.with_suffix(".tmp")
        try:
            with _writing(path), temporary.open("xb") as file:
                yield file, placements
            size = temporary.stat().st_size
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        self._add(unit, _Unit(path, "", size))
        self._sweep()
        placements.append(Placement(unit, 0))

    def append(self, pack: str, data: bytes) -> Placement:
        """Put bytes behind those that a pack already has."""
        with self._lock:
            unit = self._packs.get(pack)
            if unit is None or self._units[unit].used + len(data) > PACK_BYTES:
                unit = self._new_pack(pack)
            found = self._units[unit]
            with _writing(found.path):
                _write_at(found.path, data, found.used)
            placement = Placement(unit, found.used)
            found.used += len(data)
            self._used += len(data)
            self._units.move_to_end(unit)
            self._shrink(unit)
        self._sweep()
        return placement

    def close(self) -> None:
        """Unmap what nobody reads any more."""
        with self._lock:
            for unit in self._units:
                self._unmap(unit)

    def _new_pack(self, pack: str) -> int:
        unit, self._next = self._next, self._next + 1
        path = self._path(unit, pack)
        with _writing(path), path.open("xb") as file:
            file.truncate(PACK_BYTES)
        self._add(unit, _Unit(path, pack, 0))
        self._packs[pack] = unit
        return unit

    def _add(self, unit: int, made: _Unit) -> None:
        with self._lock:
            self._sizes.add_unit(unit, made.pack)
            self._units[unit] = made
            self._used += made.used
            self._shrink(unit)

    def _map(self, unit: int, found: _Unit) -> bool:
        try:
            with found.path.open("rb") as file:
                found.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:  # somebody tidied up
            self._drop(unit)
            return False
        self._mapped[unit] = None
        for other in list(self._mapped)[: max(0, len(self._mapped) - _MOST_MAPPED)]:
            self._unmap(other)
        return True

    def _count_resident(self, size: int) -> None:
        """Give back the memory that mapped files take once it is too much; their bytes stay readable."""
        self._resident += size
        if self._resident <= self._most_resident:
            return
        self._resident = size
        for unit in self._mapped:
            if (mapped := self._units[unit].map) is not None:
                mapped.madvise(mmap.MADV_DONTNEED)

    def _unmap(self, unit: int) -> bool:
        """Unmap a file and tell whether that went, which it does if nobody holds a view of it."""
        found = self._units[unit]
        if found.map is None:
            return True
        try:
            found.map.close()
        except BufferError:
            return False
        found.map = None
        del self._mapped[unit]
        return True

    def _shrink(self, newest: int) -> None:
        """Evict until the budget holds, never what is being read and never the newest."""
        for unit in list(self._units) if self._used > self._budget else []:
            if unit != newest and self._unmap(unit):
                self._drop(unit)
            if self._used <= self._budget:
                return

    def _drop(self, unit: int) -> None:
        found = self._units.pop(unit)
        if self._packs.get(found.pack) == unit:
            del self._packs[found.pack]
        self._used -= found.used
        self._sizes.drop_unit(unit)
        self._evicted.append(found.path)

    def _sweep(self) -> None:
        """Delete evicted files, without the lock: that of a large one takes the disk a while."""
        while self._evicted:
            with self._lock:
                paths, self._evicted = self._evicted, []
            for path in paths:
                path.unlink(missing_ok=True)

    def _path(self, unit: int, pack: str) -> Path:
        return self._directory / f"{unit}.{'pack' if pack else 'segment'}"

    def _load(self) -> None:
        trusted = self._sizes.fact("boot", _boot_id()) and _BOOT_ID.exists()
        self._sizes.forget_lost_places()
        for unit, pack, used in self._sizes.units():
            self._next = unit + 1
            path = self._path(unit, pack)
            if not trusted or not used or not path.is_file() or path.stat().st_size < used:
                self._sizes.drop_unit(unit)
                continue
            self._units[unit] = _Unit(path, pack, used)
            self._used += used
            if pack:
                self._packs[pack] = unit
        known = {unit.path for unit in self._units.values()}
        for path in self._directory.iterdir():
            if path not in known and path.suffix in {".tmp", ".pack", ".segment"}:
                path.unlink(missing_ok=True)
        if self._units:
            self._shrink(next(reversed(self._units)))
            self._sweep()


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


def _write_at(path: Path, data: bytes, offset: int) -> None:
    # Not through the mapping: where the disk is full, that would end the process (SIGBUS).
    descriptor = os.open(path, os.O_WRONLY)
    try:
        done = 0
        while done < len(data):
            done += os.pwrite(descriptor, data[done:], offset + done)
    finally:
        os.close(descriptor)


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageIoError(
            f"Writing the cache {path.parent} failed: {error}. Make room there, or set a smaller cache."
        ) from error
