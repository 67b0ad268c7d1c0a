"""The journal, on a real disk: full disks are real small filesystems or file size limits, not replaced functions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakehouse_platform.audit.journal import Journal
from lakehouse_platform.audit.writers import WriterLock, writers
from lakehouse_platform.errors import AuditWriteFailedError, StorageIoError
from lakehouse_platform_tests.support.full_disk import file_size_limit


def _journal(directory: Path, capacity: int = 2**20, patience: float = 30) -> Journal:
    return Journal(directory, capacity_bytes=capacity, room_timeout_s=patience, begin=lambda: 0)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = _journal(tmp_path)
    yield journal
    journal.close()


def _left_behind(directory: Path, writer: str) -> list[tuple[int, bytes]]:
    lock = WriterLock.take(directory, writer)
    assert lock is not None
    records = list(lock.records())
    lock.close()
    return records


def test_records_wait_with_their_numbers_until_they_landed(journal: Journal) -> None:
    journal.append([b"a", b"b"])
    journal.append([b"c"])
    assert journal.last == 3
    assert journal.waiting(2) == [(1, b"a"), (2, b"b")]
    journal.landed(2)
    assert journal.waiting(10) == [(3, b"c")]


def test_what_many_threads_append_is_all_there_in_the_order_of_each(journal: Journal) -> None:
    def write(thread: int) -> None:
        for number in range(50):
            journal.append([f"{thread} {number}".encode()])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    records = journal.waiting(1000)
    assert [number for number, _ in records] == list(range(1, 401))
    for thread in range(8):
        own = [payload for _, payload in records if payload.startswith(b"%d " % thread)]
        assert own == [f"{thread} {number}".encode() for number in range(50)]


def test_a_closed_journal_with_nothing_waiting_leaves_its_name_to_the_next_which_counts_on(
    tmp_path: Path,
) -> None:
    journal = _journal(tmp_path)
    journal.append([b"a", b"b"])
    journal.landed(2)
    journal.close()
    following = _journal(tmp_path)
    assert following.writer == journal.writer
    following.append([b"c"])
    assert following.waiting(5) == [(3, b"c")]
    following.close()
    assert _left_behind(tmp_path, journal.writer) == [(3, b"c")]


def test_a_count_begins_after_the_time_too(tmp_path: Path) -> None:
    """So it goes beyond what a table has even if the directory was put back from a backup."""
    journal = Journal(tmp_path, capacity_bytes=100, room_timeout_s=1, begin=lambda: 1000)
    journal.append([b"a"])
    assert journal.waiting(5) == [(1001, b"a")]


def test_a_name_is_one_journals_at_a_time_and_of_a_killed_one_never_again(tmp_path: Path) -> None:
    _journal(tmp_path).close()
    names = {_journal(tmp_path).writer for _ in range(3)}
    assert len(names) == 3


def test_a_name_that_left_records_is_not_taken_up(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.append([b"a"])
    journal.close()
    assert _journal(tmp_path).writer != journal.writer


def test_landed_records_leave_the_disk_at_once(journal: Journal, tmp_path: Path) -> None:
    journal.append([b"secret"])
    journal.landed(1)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_what_waits_when_the_journal_is_closed_is_left_for_the_next_writer(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.append([b"a", b"b"])
    journal.landed(1)
    journal.close()
    assert writers(tmp_path) == [journal.writer]
    assert _left_behind(tmp_path, journal.writer) == [(1, b"a"), (2, b"b")]


def test_a_living_writers_lock_is_held(journal: Journal, tmp_path: Path) -> None:
    assert WriterLock.take(tmp_path, journal.writer) is None


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.close()
    with pytest.raises(AuditWriteFailedError, match="closed"):
        journal.append([b"a"])


def test_a_caller_waits_for_room_and_goes_on_when_there_is_some(tmp_path: Path) -> None:
    journal = _journal(tmp_path, capacity=10)
    journal.append([b"12345678"])
    second = threading.Thread(target=journal.append, args=([b"12345678"],))
    second.start()
    assert journal.last == 1
    journal.landed(1)
    second.join(30)
    assert journal.waiting(5) == [(2, b"12345678")]
    journal.landed(2)
    journal.close()


def test_a_caller_is_refused_when_there_is_no_room_in_time(tmp_path: Path) -> None:
    journal = _journal(tmp_path, capacity=10, patience=0.01)
    journal.append([b"12345678"])
    with pytest.raises(AuditWriteFailedError, match="8 bytes of entries"):
        journal.append([b"12345678"])
    assert journal.waiting(5) == [(1, b"12345678")]


def test_one_batch_larger_than_all_room_gets_through_alone(tmp_path: Path) -> None:
    journal = _journal(tmp_path, capacity=4, patience=0.01)
    journal.append([b"12345678"])
    assert journal.last == 1


def test_a_full_disk_acknowledges_nothing_and_the_next_entry_is_taken_when_there_is_room(
    tmp_path: Path,
) -> None:
    journal = _journal(tmp_path)
    journal.append([b"before"])
    with file_size_limit(200), pytest.raises(AuditWriteFailedError, match="Check the disk"):
        journal.append([b"x" * 1000])
    assert (journal.last, journal.waiting(5)) == (1, [(1, b"before")])
    journal.append([b"after"])
    journal.close()
    assert _left_behind(tmp_path, journal.writer) == [(1, b"before"), (2, b"after")]


def test_a_disk_that_is_full_from_the_start_leaves_no_empty_segments(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    with file_size_limit(100):
        for _ in range(3):
            with pytest.raises(AuditWriteFailedError):
                journal.append([b"x" * 1000])
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_a_journal_ends_on_a_full_disk_too(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    with file_size_limit(0):
        with pytest.raises(AuditWriteFailedError):
            journal.append([b"x"])
        journal.close()
    again = _journal(tmp_path)
    again.append([b"y"])
    again.close()
    assert _left_behind(tmp_path, again.writer) == [(again.last, b"y")]


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageIoError, match="cannot be begun"):
        _journal(tmp_path / "absent")


def test_full_segments_are_followed_by_new_ones_and_deleted_one_by_one(
    journal: Journal, tmp_path: Path
) -> None:
    megabyte = b"x" * 2**18
    for _ in range(5):
        for _ in range(4):
            journal.landed(journal.last - 2)
            journal.append([megabyte])
    assert len(list(tmp_path.glob("*.journal"))) <= 3
    assert [number for number, _ in journal.waiting(50)] == [18, 19, 20]


def test_whether_a_record_could_be_written_is_tried_without_writing_one(
    journal: Journal, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    journal.check_writable()
    assert (journal.last, journal.waiting_count) == (0, 0)
    assert sorted(tmp_path.iterdir()) == before


def test_a_journal_that_could_not_take_a_record_says_so(tmp_path: Path) -> None:
    full, closed = _journal(tmp_path, capacity=2), _journal(tmp_path)
    full.append([b"ab"])
    closed.close()
    for journal in (full, closed):
        with pytest.raises(AuditWriteFailedError, match="closed, or full"):
            journal.check_writable()
    full.landed(full.last)
    full.check_writable()
    full.close()


def test_a_full_disk_is_noticed_before_a_record_is_refused(journal: Journal, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with file_size_limit(0), pytest.raises(AuditWriteFailedError):
        journal.check_writable()
    assert sorted(tmp_path.iterdir()) == before
    journal.check_writable()
