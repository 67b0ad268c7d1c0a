from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakehouse_platform.audit import heads
from lakehouse_platform.audit.chain import GENESIS, Head
from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.heads import RememberedHead, find_head, told_head
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.errors import StorageIoError
from lakehouse_platform.model.actions import ActionType


def head(sequence: int) -> Head:
    return Head(sequence, bytes([sequence]) * 32)


def test_nothing_is_remembered_at_first(tmp_path: Path) -> None:
    assert RememberedHead(tmp_path).read() is None


def test_what_is_remembered_only_moves_on(tmp_path: Path) -> None:
    remembered = RememberedHead(tmp_path)
    for sequence in (2, 1, 3, 2):
        remembered.keep(head(sequence))
    assert RememberedHead(tmp_path).read() == head(3)


def test_threads_that_remember_at_once_leave_the_latest(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: RememberedHead(tmp_path).keep(head(n)), range(1, 100)))
    assert RememberedHead(tmp_path).read() == head(99)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"sequence": 1, "hash": "xy"}'])
def test_a_damaged_file_is_told_and_not_taken_for_none(tmp_path: Path, text: str) -> None:
    remembered = RememberedHead(tmp_path)
    remembered.path.write_text(text)
    with pytest.raises(StorageIoError, match="damaged"):
        remembered.read()
    with pytest.raises(StorageIoError, match="damaged"):
        remembered.keep(head(1))


def test_the_end_is_told_by_the_newest_commit_that_tells_one(log: AuditLog) -> None:
    log.record(AuditEntry(action=ActionType.LOGIN, user_id="u"))
    log.flush()
    table = log.store.table("audit_log")
    expected = log.remembered.read()
    table.checkpoint()
    table.set_properties({"delta.checkpointInterval": "7"})
    assert told_head(table, table.version()) == find_head(table, table.version()) == expected
    assert find_head(table, 0) == GENESIS


def test_the_end_is_read_from_the_rows_when_too_many_commits_tell_nothing(log: AuditLog) -> None:
    log.record_all([AuditEntry(action=ActionType.LOGIN, user_id="u")] * 3)
    log.flush()
    table = log.store.table("audit_log")
    for number in range(heads._MOST_LOOKED_AT):
        table.set_properties({"delta.checkpointInterval": str(number + 1)})
    assert told_head(table, table.version()) is None
    assert find_head(table, table.version()) == log.remembered.read()


def test_what_was_lost_is_remembered_beside_what_comes_after(tmp_path: Path) -> None:
    remembered = RememberedHead(tmp_path)
    assert remembered.lost() == []
    remembered.keep(head(5))
    for sequence in (3, 5, 3):
        remembered.keep_lost(head(sequence))
    assert RememberedHead(tmp_path).lost() == [head(3), head(5)]
    assert remembered.read() == head(5)
    assert remembered.lost_path.stat().st_mode & 0o077 == 0
    with remembered.lost_path.open("a") as file:
        file.write('{"sequence": 7')
    assert remembered.lost() == [head(3), head(5)]
    with remembered.lost_path.open("a") as file:
        file.write("\n")
    with pytest.raises(StorageIoError, match="damaged"):
        remembered.lost()
