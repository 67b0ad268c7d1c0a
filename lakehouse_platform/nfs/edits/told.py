"""What each client was last told and read of each table, so that its WRITEs are understood after a restart too."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

_LOG = logging.getLogger(__name__)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS told (
    mount BLOB NOT NULL, view BLOB NOT NULL, version INTEGER NOT NULL, told_at INTEGER NOT NULL,
    PRIMARY KEY (mount, view)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (
    mount BLOB NOT NULL, view BLOB NOT NULL, version INTEGER NOT NULL, seen_at INTEGER NOT NULL,
    PRIMARY KEY (mount, view)
) WITHOUT ROWID;
"""
# A client that has been away for longer has nothing cached: Linux writes dirty pages after 30 s at the latest.
_KEPT_NS = 7 * 24 * 3600 * 10**9


class ToldStore:
    """The newest version that each client was told, and the one that it read last, on disk.

    Nothing is synced: a killed process loses nothing, and after a power failure the newest version is assumed.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            directory / "told.sqlite", isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def put(self, mount: bytes, view: bytes, version: int, now_ns: int) -> None:
        """Note what a client is being told. If the disk refuses, it is known until the next restart only."""
        self._note("INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?)", (mount, view, version, now_ns))

    def put_read(self, mount: bytes, view: bytes, version: int, now_ns: int) -> None:
        """Note what a client reads, like `put`."""
        self._note("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", (mount, view, version, now_ns))

    def get(self, mount: bytes, view: bytes) -> int | None:
        """Return the version that a client was told last."""
        return self._version("SELECT version FROM told WHERE mount = ? AND view = ?", (mount, view))

    def get_read(self, mount: bytes, view: bytes) -> int | None:
        """Return the version that a client read last."""
        return self._version("SELECT version FROM seen WHERE mount = ? AND view = ?", (mount, view))

    def _note(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            _LOG.warning("what clients were told cannot be noted: %s", error)

    def _version(self, query: str, values: tuple[object, ...]) -> int | None:
        row = self._database.execute(query, values).fetchone()
        return row[0] if row else None

    def forget_old(self, now_ns: int) -> None:
        """Forget clients that were told nothing for a week."""
        self._database.execute("DELETE FROM told WHERE told_at < ?", (now_ns - _KEPT_NS,))
        self._database.execute("DELETE FROM seen WHERE seen_at < ?", (now_ns - _KEPT_NS,))
