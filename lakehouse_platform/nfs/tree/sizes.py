"""What is remembered about rendered segments when their bytes are gone, and about the times that views have shown.

One SQLite database, so that it survives the process. A kill loses nothing; what a power cut loses is rendered again.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakehouse_platform.errors import StorageIoError

# SQLite takes at least 999 variables in one statement in every build (sqlite.org/limits.html, no. 9).
_KEYS_AT_ONCE = 900
# Rows of segments that nobody may ever ask for again: 150 bytes each, forgotten oldest first at the next start.
_MOST_REMEMBERED = 2_000_000

_TABLES = """
CREATE TABLE IF NOT EXISTS segments (
    key BLOB PRIMARY KEY, owner BLOB NOT NULL, size INTEGER NOT NULL, rows INTEGER NOT NULL, crc INTEGER NOT NULL,
    marks BLOB NOT NULL, unit INTEGER, at INTEGER);
CREATE INDEX IF NOT EXISTS segments_of_unit ON segments (unit) WHERE unit IS NOT NULL;
CREATE TABLE IF NOT EXISTS units (unit INTEGER PRIMARY KEY, pack TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS told (
    owner BLOB PRIMARY KEY, table_id TEXT NOT NULL, version INTEGER NOT NULL, changed_ns INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS moved (
    owner BLOB NOT NULL, table_id TEXT NOT NULL, version INTEGER NOT NULL, changed_ns INTEGER NOT NULL,
    PRIMARY KEY (owner, table_id, version));
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a rendered segment is like.

    Attributes:
        size: Bytes.
        rows: Rows.
        crc: CRC-32 of the bytes.
        marks: Row number and byte offset of places inside where a row begins, alternating, ascending.
    """

    size: int
    rows: int
    crc: int
    marks: array[int]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a segment's bytes are.

    Attributes:
        unit: Number of the cache file; in one process never used again for another one.
        at: Offset in it.
    """

    unit: int
    at: int


class Sizes:
    """The database; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._named_errors():
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(_TABLES)
        self._forget_oldest()

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def fact(self, name: str, value: str) -> bool:
        """Remember a fact and tell whether it was already remembered with the same value."""
        with self._transaction():
            row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
            self._database.execute("REPLACE INTO facts VALUES (?, ?)", (name, value))
            return row is not None and row[0] == value

    # ── Segments ──────────────────────────────────────────────────────────────────────────────────

    def known(self, keys: Sequence[bytes]) -> dict[bytes, tuple[Measured, Placement | None]]:
        """Return what is known of those segments that have been rendered before."""
        return {key: known for part in _parts(keys) for key, known in self._known(part)}

    def _known(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, tuple[Measured, Placement | None]]]:
        marks = ",".join("?" * len(keys))
        text = f"SELECT key, size, rows, crc, marks, unit, at FROM segments WHERE key IN ({marks})"  # noqa: S608
        with self._transaction():
            found = self._database.execute(text, list(keys)).fetchall()
        for key, size, rows, crc, marks_bytes, unit, at in found:
            measured = Measured(size, rows, crc, array("q", marks_bytes))
            yield key, (measured, None if unit is None else Placement(unit, at))

    def record(self, owner: bytes, segments: Sequence[tuple[bytes, Measured, Placement]]) -> None:
        """Remember rendered segments."""
        rows = [
            (key, owner, one.size, one.rows, one.crc, one.marks.tobytes(), place.unit, place.at)
            for key, one, place in segments
        ]
        with self._transaction():
            self._database.executemany("REPLACE INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def forget(self, key: bytes) -> None:
        """Forget a segment that turned out to be another one."""
        with self._transaction():
            self._database.execute("DELETE FROM segments WHERE key = ?", (key,))

    # ── Units ─────────────────────────────────────────────────────────────────────────────────────

    def add_unit(self, unit: int, pack: str) -> None:
        """Remember a cache file; `pack` says whose small segments it collects, empty for a segment's own file."""
        with self._transaction():
            self._database.execute("INSERT INTO units VALUES (?, ?)", (unit, pack))

    def drop_unit(self, unit: int) -> None:
        """Forget a cache file; what was in it is evicted."""
        with self._transaction():
            self._database.execute("UPDATE segments SET unit = NULL, at = NULL WHERE unit = ?", (unit,))
            self._database.execute("DELETE FROM units WHERE unit = ?", (unit,))

    def forget_lost_places(self) -> None:
        """Forget places in cache files that are gone: one evicted before its segments were recorded leaves such.

        The next process may give the number of such a file to another one.
        """
        with self._transaction():
            self._database.execute(
                "UPDATE segments SET unit = NULL, at = NULL WHERE unit NOT IN (SELECT unit FROM units)"
            )

    def units(self) -> list[tuple[int, str, int]]:
        """Return number, pack and used bytes of all cache files, oldest first."""
        text = (
            "SELECT u.unit, u.pack, coalesce(max(s.at + s.size), 0) FROM units u "
            "LEFT JOIN segments s ON s.unit = u.unit GROUP BY u.unit ORDER BY u.unit"
        )
        with self._transaction():
            return self._database.execute(text).fetchall()

    # ── Times that views have shown ───────────────────────────────────────────────────────────────

    def changed(self, owner: bytes, table_id: str, version: int, committed_ns: int) -> int:
        """Return when a view that now shows a version says that it changed: later than all it said before."""
        with self._transaction():
            row = self._database.execute(
                "SELECT table_id, version, changed_ns FROM told WHERE owner = ?", (owner,)
            ).fetchone()
            if row is not None and row[:2] == (table_id, version):
                return int(row[2])
            told = committed_ns if row is None else max(committed_ns, int(row[2]) + 1)
            self._database.execute("REPLACE INTO told VALUES (?, ?, ?, ?)", (owner, table_id, version, told))
            if told != committed_ns:
                self._database.execute(
                    "REPLACE INTO moved VALUES (?, ?, ?, ?)", (owner, table_id, version, told)
                )
            return told

    def changed_before(self, owner: bytes, table_id: str, version: int, committed_ns: int) -> int:
        """Return what `changed` returned for a version, or when it was committed if no view showed it."""
        text = "SELECT changed_ns FROM moved WHERE (owner, table_id, version) = (?, ?, ?)"
        with self._transaction():
            row = self._database.execute(text, (owner, table_id, version)).fetchone()
        return committed_ns if row is None else int(row[0])

    def _forget_oldest(self) -> None:
        text = "DELETE FROM segments WHERE unit IS NULL AND rowid <= (SELECT max(rowid) FROM segments) - ?"
        with self._transaction():
            self._database.execute(text, (_MOST_REMEMBERED,))

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """Hold the database and change all or nothing in it."""
        with self._lock, self._named_errors():
            self._database.execute("BEGIN")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _named_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageIoError(
                f"The cache's database {self._path} failed: {error}. Make room on its disk, "
                "or remove it if it is damaged."
            ) from error


def _parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        yield keys[start : start + _KEYS_AT_ONCE]
