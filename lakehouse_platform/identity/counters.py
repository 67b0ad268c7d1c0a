"""A small SQLite file in the state directory: counters that outlive a process and are exact across several."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lakehouse_platform.errors import StorageIoError, StorageUnavailableError
from lakehouse_platform.identity.closing import Closing
from lakehouse_platform.private_files import private_directory, reported

# How long a transaction waits for those of other processes, each of which takes well under a millisecond.
_BUSY_SECONDS = 5.0


class CounterFile(Closing):
    """An open file of counters. Safe to share between threads; never to be taken through a fork."""

    def __init__(self, path: Path, schema: str) -> None:
        """Open the file, made for its owner alone if it is missing.

        Args:
            path: Where it is; its directory is made if it is missing.
            schema: The statements that make its tables, each of which does nothing if they are there.

        Raises:
            StoragePermissionError, StorageIoError, StorageUnavailableError: It cannot be used.
        """
        self._path = path
        self._lock = threading.Lock()
        private_directory(path.parent)
        # Going over to a write-ahead log fails at once, without waiting, if two connections do it at the same time
        # (2 of 480 did in a test): one after another.
        with reported(path), _alone(path.with_name(f"{path.name}.lock")), self._explained():
            # SQLite gives the files beside it the same rights. Never a file that is there: closing it would end the
            # locks of this process's other connections (sqlite.org/howtocorrupt, "POSIX advisory locks").
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            self._connection = _connected(path, schema)

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Give out the connection in a transaction that no other thread or process writes beside.

        What the block raises undoes all of it.

        Raises:
            StorageUnavailableError: Another process holds the file for longer than 5 s.
            StorageIoError: The file is damaged, or the disk fails or is full.
        """
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk may have ended it already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StorageUnavailableError(
                    f"Another process holds {self._path} for too long: try again.", path=str(self._path)
                ) from error
            raise self._failed(error) from error
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> StorageIoError:
        return StorageIoError(
            f"The counters in {self._path} cannot be used ({error}): free space on the disk, or remove the file, which "
            "sets all counters to zero.",
            path=str(self._path),
        )


def _connected(path: Path, schema: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        # A crash of the machine may cost the last counts; one of a process costs none (sqlite.org/pragma).
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        for statement in filter(str.strip, schema.split(";")):
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _alone(path: Path) -> Generator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
