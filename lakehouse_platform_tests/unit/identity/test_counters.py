"""The file of counters: private, undone as a whole, and its troubles are told."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakehouse_platform.errors import (
    InvalidArgumentError,
    StorageIoError,
    StoragePermissionError,
    StorageUnavailableError,
)
from lakehouse_platform.identity import counters
from lakehouse_platform.identity.counters import CounterFile

SCHEMA = "CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY)"


def test_the_file_and_those_beside_it_are_for_the_owner_only(tmp_path: Path) -> None:
    with CounterFile(tmp_path / "state" / "c", SCHEMA) as file:
        with file.transaction() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == {"c": 0o600, "c-wal": 0o600, "c-shm": 0o600, "c.lock": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_what_fails_is_undone_and_the_next_transaction_works(tmp_path: Path) -> None:
    with CounterFile(tmp_path / "c", SCHEMA) as file:
        with pytest.raises(InvalidArgumentError):
            _insert_and_fail(file)
        with file.transaction() as connection:
            assert connection.execute("SELECT * FROM t").fetchall() == []
            connection.execute("INSERT INTO t VALUES (2)")
    with CounterFile(tmp_path / "c", SCHEMA) as again, again.transaction() as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(2,)]


def _insert_and_fail(file: CounterFile) -> None:
    with file.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        raise InvalidArgumentError("no")


def test_many_may_open_a_new_file_at_once_and_each_counts(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def count(path: Path) -> None:
        together.wait(30)
        with CounterFile(path, SCHEMA) as file, file.transaction() as connection:
            connection.execute("INSERT INTO t SELECT coalesce(max(n), 0) + 1 FROM t")

    with ThreadPoolExecutor(8) as threads:
        for turn in range(10):
            list(threads.map(count, [tmp_path / f"c{turn}"] * 8))
            with CounterFile(tmp_path / f"c{turn}", SCHEMA) as file, file.transaction() as connection:
                assert connection.execute("SELECT max(n) FROM t").fetchone() == (8,)


def test_opening_the_file_again_does_not_end_a_transaction_of_this_process(tmp_path: Path) -> None:
    """Closing any descriptor of a file ends the POSIX locks that a process has on it."""
    code = (
        "import sqlite3, sys\n"
        "try: sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError as error: print(error)\n"
    )
    with CounterFile(tmp_path / "c", SCHEMA) as file, file.transaction():
        CounterFile(tmp_path / "c", "SELECT 1").close()
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "c"], capture_output=True, text=True, check=True
        )
    assert done.stdout == "database is locked\n"


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"no database" * 100)
    with pytest.raises(StorageIoError, match="remove the file"):
        CounterFile(tmp_path / "c", SCHEMA)


def test_a_file_that_is_held_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_BUSY_SECONDS", 0.01)
    holder = sqlite3.connect(tmp_path / "c", isolation_level=None)
    with CounterFile(tmp_path / "c", SCHEMA) as file:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailableError, match="try again"), file.transaction():
            pass
        holder.execute("ROLLBACK")
        with file.transaction() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
    holder.close()


def test_a_directory_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o722)
    with pytest.raises(StoragePermissionError, match="Others can change"):
        CounterFile(tmp_path / "state" / "c", SCHEMA)
