"""A log keeps what was acknowledged, and nothing that was cut off."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.spool import RecordKind, Spool
from lakehouse_platform.nfs.operations import NfsError, Status


def test_records_are_read_back_by_the_next_server(tmp_path: Path) -> None:
    log = Spool(tmp_path, 1000).take()
    log.note(RecordKind.OPEN, facts={"version": 3})
    log.write(7, b"hello")
    log.note(RecordKind.TRUNCATE, 9)
    (again,) = Spool(tmp_path, 1000).existing()
    records = list(again.records())
    assert [(record.kind, record.offset) for record in records] == [
        (RecordKind.FREE, 0),
        (RecordKind.OPEN, 0),
        (RecordKind.WRITE, 7),
        (RecordKind.TRUNCATE, 9),
    ]
    assert again.facts(records[1]) == {"version": 3}
    assert again.pread(records[2].place, records[2].length) == b"hello"


@given(st.data())
def test_a_log_that_was_cut_or_damaged_anywhere_holds_the_records_before(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("spool")
    log = Spool(directory, 10_000).take()
    first = log.size
    ends: list[int] = []
    for number in range(4):
        log.write(number, bytes([number]) * (number + 1))
        ends.append(log.size)
    at = data.draw(st.integers(first, log.size - 1))
    content = bytearray(log.path.read_bytes())
    if data.draw(st.booleans()):
        del content[at:]
    else:
        content[at] ^= 0xFF
    log.path.write_bytes(content)
    left = sum(end <= at for end in ends)
    found = Spool(directory, 10_000).existing()
    assert len(found) == (left > 0)
    for again in found:
        assert [record.offset for record in again.records()][1:] == list(range(left))
        again.write(9, b"more")
        (third,) = Spool(directory, 10_000).existing()
        assert list(third.records())[-1].offset == 9


def test_a_full_spool_refuses_and_takes_again_when_a_log_is_gone(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 300)
    first, second = spool.take(), spool.take()
    first.write(0, bytes(200))
    with pytest.raises(NfsError) as caught:
        second.write(0, bytes(200))
    assert caught.value.status is Status.NOSPC
    assert second.size < 50
    first.drop()
    second.write(0, bytes(200))
    assert spool.used_bytes < 300


def test_a_dropped_log_can_be_read_on_and_its_name_goes_on_counting(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 300)
    log = spool.take()
    place = log.write(0, b"abc")
    log.drop(7)
    assert log.pread(place, 3) == b"abc"
    again = spool.take()
    assert (again.id, again.count) == (log.id, 7)
    again.drop()
    after = Spool(tmp_path, 300)
    assert after.existing() == []
    third = after.take()
    assert (third.id, third.count) == (log.id, 7)


def test_a_log_whose_count_is_lost_is_never_used_again(tmp_path: Path) -> None:
    log = Spool(tmp_path, 300).take()
    log.path.write_bytes(b"")
    after = Spool(tmp_path, 300)
    assert after.existing() == []
    assert after.take().id != log.id


def test_a_free_log_is_there_before_it_is_needed(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 300)
    spool.prepare()
    spool.prepare()
    (free,) = tmp_path.iterdir()
    assert spool.take().path == free


def test_writers_that_sync_at_once_are_all_served(tmp_path: Path) -> None:
    log = Spool(tmp_path, 1 << 20).take()
    log.write(0, bytes(1000))
    threads = [threading.Thread(target=log.sync) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.is_synced
