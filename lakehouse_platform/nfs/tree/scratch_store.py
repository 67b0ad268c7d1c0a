"""The scratch files' tree on disk: every change is in SQLite before it is answered.

In WAL mode with `synchronous=NORMAL` a commit is a write without a flush: the kill of this process loses nothing, a
power cut may lose the newest changes. `sync` flushes them, for what a client was told is durable.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse_platform.nfs.operations import FileType, NfsError, Status
from lakehouse_platform.nfs.tree.calls import carrying_out, current_call
from lakehouse_platform.nfs.tree.scratch_data import flush, refusing
from lakehouse_platform.nfs.tree.scratch_tree import Node

_SCHEMA = """
CREATE TABLE IF NOT EXISTS node (
    inode INTEGER PRIMARY KEY, parent BLOB NOT NULL, name BLOB NOT NULL, cookie INTEGER NOT NULL, type INTEGER NOT NULL,
    mode INTEGER NOT NULL, size INTEGER NOT NULL,
    atime INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, target BLOB NOT NULL, verifier BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS root (id BLOB PRIMARY KEY, changed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS serial (id INTEGER PRIMARY KEY CHECK (id = 1), reserved INTEGER NOT NULL);
INSERT OR IGNORE INTO serial VALUES (1, 1);
CREATE TABLE IF NOT EXISTS done (number INTEGER PRIMARY KEY, call BLOB NOT NULL);
DELETE FROM root WHERE id NOT IN (SELECT parent FROM node);
"""
_PUT_NODE = "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Numbers are reserved in blocks, so that making a file does not write the counter too.
_BLOCK = 1024
# A checkpoint flushes: it runs beside the loop every so many commits. SQLite's own, on the loop, only stands behind it.
_COMMITS_PER_CHECKPOINT = 500
_BACKSTOP_PAGES = 16_384
# A client sends again what it has under way: at most its slot table (Linux: 65 536, sunrpc's tcp_max_slot_table).
_REMEMBERED_CALLS = 65_536


@dataclass(frozen=True, slots=True)
class Change:
    """What one operation changes, all or nothing.

    Attributes:
        put: Nodes that are new or changed.
        gone: Numbers of nodes that are removed.
        roots: New change times of the file tree's own directories.
    """

    put: tuple[Node, ...] = ()
    gone: tuple[int, ...] = ()
    roots: Mapping[bytes, int] = field(default_factory=dict[bytes, int])


class ScratchStore:
    """The database of the scratch files. One thread at a time, except `sync`, which any thread may call."""

    def __init__(self, path: Path, background: Executor) -> None:
        """Open the database, or make it; raises `sqlite3.Error` if it is damaged."""
        self._path, self._background = path, background
        self._commits = 0
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {_BACKSTOP_PAGES}")
        self._connection.executescript(_SCHEMA)
        (self._next,) = self._connection.execute("SELECT reserved FROM serial").fetchone()
        self._reserved: int = self._next
        self.calls_before = self._earlier_calls()
        self._last_done = b""

    def nodes(self) -> Iterator[Node]:
        """Yield every node, in the order of the cookies."""
        for inode, parent, name, cookie, kind, *rest in self._connection.execute(
            "SELECT * FROM node ORDER BY cookie"
        ):
            yield Node(inode, parent, name, cookie, FileType(kind), *rest)

    def changed_ns(self) -> dict[bytes, int]:
        """Return when the entries of each of the file tree's own directories last changed."""
        return dict(self._connection.execute("SELECT id, changed FROM root"))

    def serial(self) -> int:
        """Return a number that was never returned before, in any life of the server."""
        if self._next == self._reserved:
            with _refusing():
                self._connection.execute("UPDATE serial SET reserved = ?", (self._reserved + _BLOCK,))
            self._reserved += _BLOCK
        self._next += 1
        return self._next - 1

    def save(self, change: Change) -> None:
        """Write one change.

        Raises:
            NfsError: NOSPC or IO; then nothing of it is written.
        """
        call = current_call()
        with _refusing(), self._transaction() as connection:
            connection.executemany("DELETE FROM node WHERE inode = ?", ((inode,) for inode in change.gone))
            connection.executemany(_PUT_NODE, map(_row, change.put))
            if change.roots:
                connection.executemany("INSERT OR REPLACE INTO root VALUES (?, ?)", change.roots.items())
            if call:
                connection.execute("INSERT INTO done (call) VALUES (?)", (call,))
        self._last_done = call
        self._commits += 1
        if self._commits % _COMMITS_PER_CHECKPOINT == 0:
            self._background.submit(self._checkpoint)

    def note_done(self, call: bytes) -> None:
        """Note that a call is carried out, unless its effect was stored together with that."""
        if call and call != self._last_done:
            with carrying_out(call):
                self.save(Change())

    def _earlier_calls(self) -> frozenset[bytes]:
        """Return the newest calls that earlier servers carried out, and forget the older ones."""
        self._connection.execute(
            "DELETE FROM done WHERE number <= (SELECT max(number) FROM done) - ?", (_REMEMBERED_CALLS,)
        )
        return frozenset(call for (call,) in self._connection.execute("SELECT call FROM done"))

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _checkpoint(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def sync(self) -> None:
        """Flush what was saved. Blocks, but not those who save meanwhile."""
        # What is no longer in the log was flushed into the database before the log was begun anew.
        with refusing():
            flush(Path(f"{self._path}-wal"))

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _row(node: Node) -> tuple[object, ...]:
    return (
        node.inode, node.parent, node.name, node.cookie, node.type, node.mode, node.size,
        node.atime_ns, node.mtime_ns, node.ctime_ns, node.target, node.verifier,
    )  # fmt: skip


@contextmanager
def _refusing() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise NfsError(Status.NOSPC if full else Status.IO, str(error)) from error
