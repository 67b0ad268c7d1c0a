"""The write buffer: bounded in rows, bytes and time, and never a row lost. Nothing here sleeps."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.errors import ConstraintViolationError, InvalidRowsError, StorageUnavailableError
from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.buffer import WriteBuffer
from lakehouse_platform.store.database import DatabaseOps

_NEVER = 3_600.0
_SOON = 0.01
_PATIENCE = 30.0


class Sink:
    """What the buffer writes to: keeps rows, or fails as long as it is told to."""

    def __init__(self) -> None:
        self.commits: list[list[int]] = []
        self.failing = False
        self.written, self.failed = threading.Event(), threading.Event()

    def __call__(self, rows: pa.Table) -> int:
        if self.failing:
            self.failed.set()
            raise StorageUnavailableError("The storage does not answer.")
        self.commits.append(rows.column("id").to_pylist())
        self.written.set()
        return len(self.commits)


@pytest.fixture
def sink() -> Sink:
    return Sink()


def buffer(sink: Sink, *, rows: int = 1_000, mb: int = 64, seconds: float = _NEVER) -> WriteBuffer:
    return WriteBuffer(sink, max_rows=rows, max_mb=mb, max_seconds=seconds)


def some(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def test_rows_wait_until_they_are_many(sink: Sink) -> None:
    held = buffer(sink, rows=3)
    held.add(some(1))
    held.add(some(2))
    assert (held.pending_rows, sink.commits) == (2, [])
    held.add(some(3, 4))
    assert (held.pending_rows, sink.commits) == (0, [[1, 2, 3, 4]])


def test_rows_wait_until_they_are_large(sink: Sink) -> None:
    held = buffer(sink, mb=1)
    held.add(some(*range(125_001)))
    assert [len(commit) for commit in sink.commits] == [125_001]


def test_rows_wait_until_they_are_old(sink: Sink) -> None:
    held = buffer(sink, seconds=_SOON)
    held.add(some(1))
    assert sink.written.wait(_PATIENCE)
    assert held.flush() is None
    assert sink.commits == [[1]]


def test_flush_commits_all_and_tells_the_version(sink: Sink) -> None:
    held = buffer(sink)
    assert held.flush() is None
    held.add(some(1))
    held.add(some(2))
    assert (held.flush(), held.flush(), sink.commits) == (1, None, [[1, 2]])


def test_no_rows_start_no_clock(sink: Sink) -> None:
    held = buffer(sink, seconds=_SOON)
    held.add(some())
    assert held.flush() is None
    assert sink.commits == []


def test_a_failed_commit_keeps_its_rows(sink: Sink) -> None:
    held = buffer(sink, rows=2)
    sink.failing = True
    held.add(some(1))
    for _ in range(2):
        with pytest.raises(StorageUnavailableError):
            held.flush()
    with pytest.raises(StorageUnavailableError):
        held.add(some(2))
    sink.failing = False
    assert held.flush() == 1
    assert sink.commits == [[1, 2]]


def test_a_failure_in_the_background_is_raised_by_the_next_call(sink: Sink) -> None:
    sink.failing = True
    held = buffer(sink, seconds=_SOON)
    held.add(some(1))
    assert sink.failed.wait(_PATIENCE)
    with pytest.raises(StorageUnavailableError):
        held.flush()
    assert held.pending_rows == 1


def test_the_clock_tries_again_after_a_failure(sink: Sink) -> None:
    sink.failing = True
    held = buffer(sink, seconds=_SOON)
    held.add(some(1))
    assert sink.failed.wait(_PATIENCE)
    sink.failing = False
    assert sink.written.wait(_PATIENCE)
    assert sink.commits == [[1]]
    assert held.flush() is None


def test_columns_added_between_two_parts_are_null_in_the_first(sink: Sink) -> None:
    written: list[pa.Table] = []
    held = WriteBuffer(
        lambda rows: len(written) or written.append(rows) or 1, max_rows=9, max_mb=1, max_seconds=_NEVER
    )
    held.add(some(1))
    held.add(pa.table({"id": [2], "n": ["x"]}))
    held.flush()
    assert written[0].to_pylist() == [{"id": 1, "n": None}, {"id": 2, "n": "x"}]


def test_threads_lose_and_repeat_nothing(sink: Sink) -> None:
    held = buffer(sink, rows=7, seconds=_SOON)
    with held, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: held.add(some(number)), range(500)))
    assert sorted(number for commit in sink.commits for number in commit) == list(range(500))


def test_leaving_the_block_commits_even_after_an_error(sink: Sink) -> None:
    with pytest.raises(ZeroDivisionError), buffer(sink) as held:  # noqa: PT012
        held.add(some(1))
        _ = 1 // 0
    assert sink.commits == [[1]]


# ── Behind a database ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def database(tmp_path: Path) -> DatabaseOps:
    config = LakehouseConfig(
        base_path=str(tmp_path), durability="os", buffer_max_seconds=_NEVER, buffer_max_rows=3
    )
    return DatabaseOps.create(
        tmp_path / "db", Schema([Field("id", "Int64"), Field("v", "String")]), config=config
    )


def ids(database: DatabaseOps) -> list[int]:
    return sorted(row["id"] for row in database.table.scan().to_pylist())


def test_buffered_rows_are_there_after_close_and_the_object_lives_on(database: DatabaseOps) -> None:
    with database:
        assert database.insert_buffered_json('[{"id": 1}]') == 1
        assert ids(database) == []
    assert ids(database) == [1]
    assert database.insert_buffered_json('{"id": 2}') == 1
    database.close()
    database.close()
    assert ids(database) == [1, 2]


def test_a_full_buffer_commits_by_itself_in_one_version(database: DatabaseOps) -> None:
    waiting = [database.insert_buffered_json(f'{{"id": {number}}}') for number in range(3)]
    assert waiting == [1, 2, 0]
    assert (ids(database), database.table.version()) == ([0, 1, 2], 1)


def test_flushing_nothing_makes_no_version(database: DatabaseOps) -> None:
    assert database.flush_write_buffer() is None
    assert database.table.version() == 0


def test_rows_that_do_not_fit_never_enter_the_buffer(database: DatabaseOps) -> None:
    database.insert_buffered_json('{"id": 1}')
    with pytest.raises(InvalidRowsError):
        database.insert_buffered_json('{"id": "x"}')
    assert database.flush_write_buffer() == 1
    assert ids(database) == [1]


def test_a_refused_flush_keeps_the_rows_until_the_reason_is_gone(database: DatabaseOps) -> None:
    database.insert_buffered_json('{"id": -1}')
    database.table.add_constraint("positive", "id > 0")
    with pytest.raises(ConstraintViolationError, match="positive"):
        database.flush_write_buffer()
    database.table.drop_constraint("positive")
    database.close()
    assert ids(database) == [-1]


def test_a_column_added_while_rows_wait_is_null_in_them(database: DatabaseOps) -> None:
    database.insert_buffered_json('{"id": 1}')
    database.table.add_columns(Schema([Field("n", "Int64")]))
    database.insert_buffered_json('{"id": 2, "n": 5}')
    database.close()
    assert sorted(map(str, database.table.scan().to_pylist())) == [
        "{'id': 1, 'v': None, 'n': None}",
        "{'id': 2, 'v': None, 'n': 5}",
    ]
