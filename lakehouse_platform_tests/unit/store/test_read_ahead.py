from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_platform.store.read_ahead import read_ahead


def batches(count: int, threads: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        if threads is not None:
            threads.append(threading.current_thread().name)
        yield pa.record_batch({"n": [number]})


@pytest.mark.parametrize("count", [0, 1, 4, 5, 100])
def test_all_batches_come_in_order(count: int) -> None:
    assert [batch.column("n")[0].as_py() for batch in read_ahead(batches(count))] == list(range(count))


def test_the_producer_runs_in_another_thread() -> None:
    threads: list[str] = []
    assert len(list(read_ahead(batches(3, threads)))) == 3
    assert set(threads) == {"read-ahead"}


def test_an_error_of_the_producer_is_raised_after_what_came_before() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(2)
        raise ValueError("broken source")

    seen = 0
    with pytest.raises(ValueError, match="broken source"):  # noqa: PT012 - the count shows what came before
        for _ in read_ahead(failing()):
            seen += 1
    assert seen == 2


def test_a_consumer_that_stops_early_ends_the_thread() -> None:
    reader = read_ahead(batches(1000))
    next(reader)
    reader.close()
    assert "read-ahead" not in {thread.name for thread in threading.enumerate()}


def test_the_producer_is_only_a_few_batches_ahead() -> None:
    made: list[str] = []
    reader = read_ahead(batches(1000, made))
    next(reader)
    assert len(made) <= 10
    reader.close()
