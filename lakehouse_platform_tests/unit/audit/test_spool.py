"""What short-lived processes leave in the journal, and that it comes into the audit log once."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.spool import Spool
from lakehouse_platform.audit.verify import verify
from lakehouse_platform.errors import StorageIoError, StoragePermissionError
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.store.delta_store import DeltaStore


def entry(number: int) -> AuditEntry:
    return AuditEntry(action=ActionType.DATA_READ, user_id="owner", row_count=number)


def left_by(store: DeltaStore, directory: Path, *numbers: int, most_left: int = 1000) -> list[str]:
    spool = Spool(store, directory, most_left=most_left)
    ids = [spool.record(entry(number)) for number in numbers]
    spool.close()
    return ids


def counts(store: DeltaStore) -> list[int]:
    return sorted(row["row_count"] for row in store.scan("audit_log", ["row_count"]).to_pylist())


def test_without_an_entry_nothing_is_made(store: DeltaStore, tmp_path: Path) -> None:
    Spool(store, tmp_path / "audit").close()
    assert not (tmp_path / "audit").exists()
    assert store.tables() == []


def test_entries_are_left_in_the_journal_and_moved_by_the_next_audit_log(
    store: DeltaStore, tmp_path: Path
) -> None:
    ids = left_by(store, tmp_path, 1, 2) + left_by(store, tmp_path, 3)
    assert store.tables() == []
    AuditLog(store, tmp_path).close()
    assert {row["audit_id"] for row in store.scan("audit_log").to_pylist()} == set(ids)
    assert verify(store.table("audit_log"), None).is_whole
    AuditLog(store, tmp_path).close()
    assert counts(store) == [1, 2, 3]


def test_names_are_taken_again_because_a_table_remembers_each(store: DeltaStore, tmp_path: Path) -> None:
    for number in range(5):
        left_by(store, tmp_path, number)
        AuditLog(store, tmp_path).close()
    assert len(list(tmp_path.glob("*.lock"))) <= 2
    assert counts(store) == [0, 1, 2, 3, 4]


def test_many_that_are_left_are_moved(store: DeltaStore, tmp_path: Path) -> None:
    for number in range(4):
        left_by(store, tmp_path, number, most_left=4)
    assert counts(store) == [0, 1, 2, 3]
    assert list(tmp_path.glob("*.journal")) == []


def test_what_cannot_be_moved_is_kept_and_told_to_the_log(
    store: DeltaStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = store.base.path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("no directory")
    with caplog.at_level(logging.WARNING):
        left_by(store, tmp_path / "audit", 7, most_left=1)
    assert "wait in the journal" in caplog.text
    place.unlink()
    AuditLog(store, tmp_path / "audit").close()
    assert counts(store) == [7]


def test_an_entry_that_cannot_be_written_is_refused(store: DeltaStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises((StorageIoError, StoragePermissionError)):
        Spool(store, tmp_path / "file" / "audit").record(entry(1))


def test_processes_at_the_same_time_lose_nothing(store: DeltaStore, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from lakehouse_platform.store.delta_store import DeltaStore\n"
        "from lakehouse_platform_tests.unit.audit.test_spool import left_by\n"
        "for number in range(5):\n"
        "    left_by(DeltaStore(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) * 5 + number, most_left=4)\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, store.base.uri, str(tmp_path / "audit"), str(number)],
            env=os.environ,
        )
        for number in range(3)
    ]
    assert [one.wait() for one in running] == [0, 0, 0]
    AuditLog(store, tmp_path / "audit").close()
    assert counts(store) == list(range(15))
    assert verify(store.table("audit_log"), None).is_whole
