"""Rendered segments: each made once, measured for good, and its bytes kept within a budget for all tables."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from array import array
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse_platform.errors import StorageIoError
from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.render import RENDERER, rendered
from lakehouse_platform.nfs.tree.sizes import Measured, Placement, Sizes
from lakehouse_platform.nfs.tree.units import Units
from lakehouse_platform.store.files import FileReader
from lakehouse_platform.store.pinned import PinnedFile

# Smaller segments share files: one file and one mapping each would cost more than their bytes.
_SMALL = 1 << 16
# Files whose segments are likely to be small are rendered so many at a time, in order, which keeps neighbours together.
_SMALL_FILE, _GROUP = 1 << 16, 64
# A place inside a segment is remembered at least every so many rows, as far as batches allow.
_MARK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """What a segment is rendered from.

    Attributes:
        owner: Key of its table.
        form: In which form it is shown.
        reader: Reads its rows.
        file: The data file.
        key: Identity of its bytes.
    """

    owner: bytes
    form: Form
    reader: FileReader
    file: PinnedFile
    key: bytes = field(init=False)

    def __post_init__(self) -> None:
        parts = (RENDERER.encode(), self.form.encode(), self.reader.fingerprint, self.file.token)
        object.__setattr__(self, "key", hashlib.blake2b(b"\0".join(parts), digest_size=16).digest())


@dataclass(frozen=True, slots=True)
class Segment:
    """One data file's rows in one form.

    Attributes:
        source: What it is rendered from.
        measured: Size and the like.
    """

    source: Source
    measured: Measured


_Made = tuple[Measured, Placement]


class SegmentCache:
    """All tables' segments; safe to use from several threads."""

    def __init__(self, state_directory: Path, budget_bytes: int) -> None:
        """Open the cache.

        Args:
            state_directory: Holds `images.sqlite` and `segments/`; no other process may use them.
            budget_bytes: How many bytes to keep; more only while they are being read.
        """
        state_directory.mkdir(parents=True, exist_ok=True)
        self.sizes = Sizes(state_directory / "images.sqlite")
        self._units = Units(state_directory / "segments", self.sizes, budget_bytes)
        self._workers = os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="render")
        self._lock = threading.Lock()
        self._flights: dict[bytes, Future[_Made]] = {}
        self.rendered_files = 0

    def close(self) -> None:
        """Finish what is being rendered and close the files."""
        self._pool.shutdown(wait=True)
        self._units.close()
        self.sizes.close()

    @property
    def used_bytes(self) -> int:
        """Bytes in the cache."""
        return self._units.used_bytes

    def measured(self, sources: Sequence[Source]) -> list[tuple[Segment, Placement | None]]:
        """Return segments with their exact sizes, rendering those never seen before."""
        known = self.sizes.known([source.key for source in sources])
        missing = [source for source in sources if source.key not in known]
        made = self._all_made(missing)
        return [
            (Segment(source, measured), placement)
            for source in sources
            for measured, placement in (known.get(source.key) or made[source.key],)
        ]

    def placed(self, segments: Sequence[Segment]) -> list[Placement]:
        """Return where the bytes of segments are, rendering those that were evicted.

        Raises:
            StorageIoError: A data file does not say any more what it said before.
        """
        made = self._all_made([segment.source for segment in segments])
        for segment in segments:
            self._check(segment, made[segment.source.key][0])
        return [made[segment.source.key][1] for segment in segments]

    def has(self, unit: int) -> bool:
        """Tell whether the bytes of a placement are still there."""
        return self._units.has(unit)

    def view(self, unit: int, at: int, size: int) -> memoryview | None:
        """Return bytes of a placement without copying, or None if they were evicted."""
        return self._units.view(unit, at, size)

    def _check(self, segment: Segment, now: Measured) -> None:
        was = segment.measured
        if (was.size, was.rows, was.crc) == (now.size, now.rows, now.crc):
            return
        self.sizes.forget(segment.source.key)
        path = segment.source.file.path
        raise StorageIoError(
            f"Data file {path!r} has other rows than when it was first shown; data files never change. Restore it.",
            path=path,
        )

    def _all_made(self, sources: Sequence[Source]) -> dict[bytes, _Made]:
        """Return all segments' measures and places, each rendered by one thread only, however many ask."""
        futures: dict[bytes, Future[_Made]] = {}
        mine: dict[bytes, Source] = {}
        with self._lock:
            for source in sources:
                flight = self._flights.get(source.key)
                if flight is None:
                    flight = self._flights[source.key] = Future()
                    mine[source.key] = source
                futures[source.key] = flight
        self._start(mine)
        return {key: future.result() for key, future in futures.items()}

    def _start(self, mine: dict[bytes, Source]) -> None:
        try:
            known = self.sizes.known(list(mine))
        except BaseException as error:
            for key in mine:
                self._land(key, error)
            raise
        for key, (measured, placement) in known.items():
            if placement is not None and self._units.has(placement.unit):
                del mine[key]
                self._land(key, (measured, placement))
        groups = list(_groups(list(mine.values()), self._workers))
        if len(groups) == 1:
            self._make(groups[0])
            return
        for group in groups:
            self._pool.submit(self._make, group)

    def _land(self, key: bytes, outcome: _Made | BaseException) -> None:
        with self._lock:
            flight = self._flights.pop(key)
        if isinstance(outcome, BaseException):
            flight.set_exception(outcome)
        else:
            flight.set_result(outcome)

    def _make(self, group: Sequence[Source]) -> None:
        """Render files one after the other; what goes wrong with one does not touch the others."""
        outcomes: dict[bytes, _Made | BaseException] = {}
        small: list[tuple[bytes, Measured, bytes]] = []
        for source in group:
            try:
                measured, made = self._render(source)
                if isinstance(made, bytes):
                    small.append((source.key, measured, made))
                else:
                    outcomes[source.key] = measured, made
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits for it
                outcomes[source.key] = error
        try:
            outcomes.update(self._packed(group[0], small))
            made = [(key, *one) for key, one in outcomes.items() if not isinstance(one, BaseException)]
            self.sizes.record(group[0].owner, made)
        except BaseException as error:  # noqa: BLE001 - likewise
            outcomes = {source.key: error for source in group}
        for key, outcome in outcomes.items():
            self._land(key, outcome)

    def _render(self, source: Source) -> tuple[Measured, Placement | bytes]:
        """Render a file; a small segment's bytes are returned, so that neighbours can be put next to each other."""
        file = source.file
        meter = _Meter()
        pieces = meter.through(
            rendered(source.reader.read(file.path, file.partition, file.kept), source.form)
        )
        self.rendered_files += 1
        head: list[bytes] = []
        for piece in pieces:
            head.append(piece)
            if meter.size > _SMALL:
                return self._render_large(head, pieces, meter)
        return meter.measured(), b"".join(head)

    def _packed(
        self, source: Source, small: Sequence[tuple[bytes, Measured, bytes]]
    ) -> Iterator[tuple[bytes, _Made]]:
        if not small:
            return
        pack = f"{source.owner.hex()}.{source.form}"
        start = self._units.append(pack, b"".join([data for _, _, data in small]))
        at = start.at
        for key, measured, data in small:
            yield key, (measured, Placement(start.unit, at))
            at += len(data)

    def _render_large(
        self, head: list[bytes], rest: Iterator[bytes], meter: _Meter
    ) -> tuple[Measured, Placement]:
        with self._units.new_file() as (target, placements):
            for piece in head:
                target.write(piece)
            head.clear()
            for piece in rest:
                target.write(piece)
        return meter.measured(), placements[0]


class _Meter:
    """Measures bytes on their way."""

    def __init__(self) -> None:
        self.size = 0
        self._rows = 0
        self._crc = 0
        self._marks = array("q")
        self._marked = 0

    def through(self, pieces: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
        for rows, piece in pieces:
            if self.size - self._marked >= _MARK_BYTES:
                self._marks.extend((self._rows, self.size))
                self._marked = self.size
            self._rows += rows
            self.size += len(piece)
            self._crc = zlib.crc32(piece, self._crc)
            yield piece

    def measured(self) -> Measured:
        return Measured(self.size, self._rows, self._crc, self._marks)


def _groups(sources: Sequence[Source], workers: int) -> Iterator[list[Source]]:
    """Yield what one thread renders at a time: a large file, or neighbouring small ones."""
    most = max(1, min(_GROUP, -(-len(sources) // (4 * workers))))
    group: list[Source] = []
    for source in sources:
        if source.file.size > _SMALL_FILE:
            yield [source]
            continue
        group.append(source)
        if len(group) == most:
            yield group
            group = []
    if group:
        yield group
