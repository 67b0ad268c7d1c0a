"""SQL reads the newest version however often it is asked, on disk and on S3, though tables are kept open."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakehouse_platform.errors import TableNotFoundError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.log_marks import LogMark
from lakehouse_platform_tests.support.tables import PEOPLE, people

_COUNT = "SELECT count(*) AS n FROM people"


def counted(store: DeltaStore) -> int:
    return store.sql(_COUNT).to_arrow().column("n")[0].as_py()


def test_every_commit_is_seen_by_the_next_query(filled: DeltaStore) -> None:
    other = DeltaStore(filled.config)
    for n in range(6, 12):
        assert [counted(filled) for _ in range(3)] == [n - 1] * 3
        other.append("people", people(n))
    other.delete("people", "id > 5")
    assert counted(filled) == 5


def test_a_query_reads_a_table_that_took_the_place_of_another(filled: DeltaStore) -> None:
    assert [counted(filled) for _ in range(3)] == [5] * 3
    other = DeltaStore(filled.config)
    other.drop("people")
    with pytest.raises(TableNotFoundError):
        filled.sql(_COUNT)
    other.create("people", PEOPLE)
    other.append("people", people(1))  # as many versions as before
    assert [counted(filled) for _ in range(3)] == [1] * 3


def test_a_result_keeps_its_version_though_the_table_goes_on(filled: DeltaStore) -> None:
    results = [filled.sql("SELECT id FROM people") for _ in range(3)]
    filled.append("people", people(6))
    newer = filled.sql("SELECT id FROM people")
    assert [result.to_arrow().num_rows for result in (*results, newer)] == [5, 5, 5, 6]
    assert [result.to_arrow().num_rows for result in (*results, newer)] == [5, 5, 5, 6]


def test_a_stream_that_is_under_way_keeps_its_version(store: DeltaStore) -> None:
    numbers = pa.table({"id": pa.array(range(100_000), pa.int64())})
    store.create("numbers", numbers.schema)
    for _ in range(5):
        store.append("numbers", numbers)
    stream = store.sql("SELECT id FROM numbers").reader()
    rows = stream.read_next_batch().num_rows
    store.overwrite("numbers", numbers.slice(0, 1))
    assert store.sql("SELECT id FROM numbers").to_arrow().num_rows == 1
    assert rows + stream.read_all().num_rows == 500_000


def test_a_kept_table_is_still_the_same_after_a_query_that_needs_a_view(filled: DeltaStore) -> None:
    floats = pa.table({"x": pa.array([1.0, float("nan"), None], pa.float64())})
    filled.create("floats", floats.schema)
    filled.append("floats", floats)
    for _ in range(3):
        assert filled.sql("SELECT count(*) AS n FROM floats WHERE x > 0").to_arrow()["n"][0].as_py() == 2
        assert filled.sql("SELECT x FROM floats").to_arrow().num_rows == 3


def test_many_threads_read_what_was_committed_before_they_asked(filled: DeltaStore) -> None:
    def ask(_: int) -> bool:
        before = filled.table("people").version()
        return counted(filled) >= 5 + before - 1

    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(ask, range(40))
        for n in range(6, 16):
            filled.append("people", people(n))
        assert all(asked)
    assert counted(filled) == 15


def test_a_mark_ends_with_the_next_commit_and_a_table_with_its_log(filled: DeltaStore) -> None:
    mark = LogMark.of(filled.table("people").location, 1)
    assert mark.is_newest()
    assert mark.is_there()
    filled.append("people", people(6))
    assert not mark.is_newest()
    assert mark.is_there()
    filled.drop("people")
    assert not mark.is_newest()
    filled.create("people", PEOPLE)
    filled.append("people", people(7, 8, 9))
    assert not mark.is_newest()
