from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.audit.segments import Segment, encode_record
from lakehouse_platform.audit.writers import WriterLock, writers
from lakehouse_platform.errors import StorageIoError


def _write(directory: Path, first: int, *payloads: bytes) -> Path:
    segment = Segment(directory, "w", first)
    for payload in payloads:
        segment.append(encode_record(payload), 1)
    segment.close()
    return segment.path


def _lock(directory: Path) -> WriterLock:
    lock = WriterLock.take(directory, "w")
    assert lock is not None
    return lock


def test_records_go_on_over_segments(tmp_path: Path) -> None:
    _write(tmp_path, 1, b"a", b"b")
    _write(tmp_path, 3, b"c")
    assert list(_lock(tmp_path).records()) == [(1, b"a"), (2, b"b"), (3, b"c")]


def test_a_writer_without_segments_has_no_records(tmp_path: Path) -> None:
    assert list(_lock(tmp_path).records()) == []


def test_a_record_whose_number_was_given_anew_counts_as_refused(tmp_path: Path) -> None:
    _write(tmp_path, 1, b"a", b"refused")
    _write(tmp_path, 2, b"b")
    assert list(_lock(tmp_path).records()) == [(1, b"a"), (2, b"b")]


def test_a_hole_between_segments_is_no_crash_but_damage(tmp_path: Path) -> None:
    path = _write(tmp_path, 1, b"a", b"b")
    _write(tmp_path, 3, b"c")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageIoError, match="records 2 to 2 cannot be read"):
        list(_lock(tmp_path).records())


def test_a_lock_is_one_writers_at_a_time(tmp_path: Path) -> None:
    lock = _lock(tmp_path)
    assert WriterLock.take(tmp_path, "w") is None
    lock.close()
    _lock(tmp_path).close()


def test_a_writer_that_ended_in_order_says_how_far_it_counted(tmp_path: Path) -> None:
    lock = _lock(tmp_path)
    _write(tmp_path, 1, b"a")
    assert (lock.count(), WriterLock.take_free(tmp_path)) == (None, None)
    lock.set_free(2**40)
    lock.close()
    assert [path.name for path in tmp_path.iterdir()] == ["w.lock"]
    taken = WriterLock.take_free(tmp_path)
    assert taken is not None
    assert (taken[0].writer, taken[1], taken[0].count()) == ("w", 2**40, None)
    assert WriterLock.take_free(tmp_path) is None


def test_a_damaged_count_is_none(tmp_path: Path) -> None:
    lock = _lock(tmp_path)
    lock.set_free(7)
    lock.close()
    path = tmp_path / "w.lock"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert WriterLock.take_free(tmp_path) is None


def test_a_discarded_writer_leaves_nothing(tmp_path: Path) -> None:
    lock = _lock(tmp_path)
    _write(tmp_path, 1, b"a")
    assert writers(tmp_path) == ["w"]
    lock.discard()
    assert list(tmp_path.iterdir()) == []


def test_files_are_for_this_user_alone(tmp_path: Path) -> None:
    lock = _lock(tmp_path)
    _write(tmp_path, 1, b"a")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    lock.close()
