"""Scratch files that have become a view, and names that hold an image of a view which was moved away.

A client goes on using the handle of a file that it renamed over a view, as Linux moves the file's inode to the new
name; and the handle must work after a restart, or the client would drop what it has not written yet. Both are therefore
kept on disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lakehouse_platform.nfs.tree.scratch_tree import Place

_MOST_FILES = 10_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (number INTEGER PRIMARY KEY, view_table BLOB NOT NULL, made INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS names (
    parent NOT NULL, name BLOB NOT NULL, view_table BLOB NOT NULL, mount BLOB NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (parent, name)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Moved:
    """A view that a client has moved to another name.

    Attributes:
        table: The view's table.
        mount: The client that moved it.
        version: The version that it shows for good.
    """

    table: bytes
    mount: bytes
    version: int


class Aliases:
    """The aliases of one server; every change is on disk before it is answered."""

    def __init__(self, directory: Path) -> None:
        self._database = sqlite3.connect(
            directory / "aliases.sqlite", isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.executescript(_SCHEMA)
        self._files = dict(self._database.execute("SELECT number, view_table FROM files ORDER BY made"))
        rows = self._database.execute("SELECT parent, name, view_table, mount, version FROM names")
        self._names = {(parent, name): Moved(*rest) for parent, name, *rest in rows}
        self._changed_ns: dict[Place, int] = {}
        self._owned = {(moved.mount, moved.table): moved for moved in self._names.values()}
        self._filled: dict[tuple[bytes, bytes], int] = {}

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # ── Scratch files that are a view ─────────────────────────────────────────────────────────────

    def table_of(self, number: int) -> bytes | None:
        """Return the table whose data.csv a scratch file has become."""
        return self._files.get(number)

    def filled(self, mount: bytes, table: bytes) -> int | None:
        """Return the file by which a client knows data.csv since it moved the view away; None if it did not."""
        return self._filled.get((mount, table))

    def become(self, number: int, mount: bytes, table: bytes, now_ns: int) -> None:
        """Make a scratch file's handle one of a table's data.csv; the oldest are forgotten beyond 10 000."""
        if self.of(mount, table) is not None:
            self._filled[mount, table] = number
        self._files[number] = table
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (number, table, now_ns))
        if len(self._files) > _MOST_FILES:
            oldest = next(iter(self._files))
            del self._files[oldest]
            self._database.execute("DELETE FROM files WHERE number = ?", (oldest,))

    # ── Names of moved views ──────────────────────────────────────────────────────────────────────

    def at(self, parent: Place, name: bytes) -> Moved | None:
        """Return the moved view that a name in a directory holds."""
        return self._names.get((parent, name))

    def within(self, parent: Place) -> Iterable[tuple[bytes, Moved]]:
        """Return the moved views in a directory."""
        return [(name, moved) for (where, name), moved in self._names.items() if where == parent]

    def of(self, mount: bytes, table: bytes) -> Moved | None:
        """Return where a client has moved a table's data.csv to."""
        return self._owned.get((mount, table))

    def changed_ns(self, parent: Place) -> int:
        """Return when names in a directory last changed in the life of this server; 0 if none did."""
        return self._changed_ns.get(parent, 0)

    def put(self, parent: Place, name: bytes, moved: Moved, now_ns: int) -> None:
        """Give a moved view a name."""
        self._names[parent, name] = self._owned[moved.mount, moved.table] = moved
        self._filled.pop((moved.mount, moved.table), None)
        self._changed_ns[parent] = now_ns
        self._database.execute(
            "INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?)",
            (parent, name, moved.table, moved.mount, moved.version),
        )

    def drop(self, parent: Place, name: bytes, now_ns: int) -> Moved | None:
        """Take a moved view's name away and return what it was."""
        moved = self._names.pop((parent, name), None)
        if moved is not None:
            self._changed_ns[parent] = now_ns
            self._disown(moved)
            self._database.execute("DELETE FROM names WHERE parent = ? AND name = ?", (parent, name))
        return moved

    def _disown(self, moved: Moved) -> None:
        """Forget that a client has moved its view if no name holds it any more."""
        key = moved.mount, moved.table
        left = [other for other in self._names.values() if (other.mount, other.table) == key]
        if left:
            self._owned[key] = left[-1]
        else:
            self._owned.pop(key, None)
            self._filled.pop(key, None)
