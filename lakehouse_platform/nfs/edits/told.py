"""What each client was last told about each table, so that its WRITEs are understood after a restart too."""

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
"""
# A client that has been away for longer has nothing cached: Linux writes dirty pages after 30 s at the latest.
_KEPT_NS = 7 * 24 * 3600 * 10**9


class ToldStore:
    """The newest version that each client was told, on disk.

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
        try:
            self._database.execute(
                "INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?)", (mount, view, version, now_ns)
            )
        except sqlite3.Error as error:
            _LOG.warning("what clients were told cannot be noted: %s", error)

    def get(self, mount: bytes, view: bytes) -> int | None:
        """Return the version that a client was told last."""
        row = self._database.execute(
            "SELECT version FROM told WHERE mount = ? AND view = ?", (mount, view)
        ).fetchone()
        return row[0] if row else None

    def forget_old(self, now_ns: int) -> None:
        """Forget clients that were told nothing for a week."""
        self._database.execute("DELETE FROM told WHERE told_at < ?", (now_ns - _KEPT_NS,))
