"""Merges over columns of any name and any type, and the rows that a source may leave out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakehouse_platform.errors import CommitConflictError, DuplicateKeyError, UnsupportedFeatureError
from lakehouse_platform.store.database import DatabaseOps
from lakehouse_platform.store.delta_store import DeltaStore

_ODD = [
    "s",
    "t",
    "source",
    "target",
    "a.b",
    'a"b',
    "a'b",
    "a b",
    "a`b",
    "data",
    "f",
    "ü",
    "select",
    "A",
    "__given_id",
]


@pytest.mark.parametrize("name", _ODD)
def test_columns_may_have_any_name(store: DeltaStore, name: str) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), (name, pa.string())]))
    table.append([{"id": 1, name: "x"}, {"id": 2, name: "y"}])
    quoted = '"' + name.replace('"', '""') + '"'
    done = table.merge([{"id": 1, name: "z"}, {"id": 2, "_op": "DELETE"}, {"id": 3, name: "w"}], on=["id"])
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (1, 1, 1)
    assert table.merge([{"id": 30, name: "w"}], on=[name]).rows_updated == 1
    assert table.update({name: f"{quoted} || '!'"}, f"{quoted} = 'z'").rows_updated == 1
    assert table.delete(f"{quoted} = 'w'").rows_deleted == 1
    assert table.scan().to_pylist() == [{"id": 1, name: "z!"}]


@pytest.mark.parametrize("write", ["merge", "json", "transaction"])
def test_a_table_with_a_column_that_names_operations_is_refused(store: DeltaStore, write: str) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), ("_op", pa.string())]))
    table.append([{"id": 1, "_op": "x"}])
    with pytest.raises(UnsupportedFeatureError, match="_op"):  # noqa: PT012
        if write == "merge":
            table.merge([{"id": 1, "_op": "DELETE"}], on=["id"])
        elif write == "json":
            DatabaseOps(table).merge_json('[{"id": 1, "_op": "DELETE"}]', "id")
        else:
            with table.transaction() as tx:
                tx.merge([{"id": 1, "_op": "DELETE"}], on=["id"])
    assert table.scan().to_pylist() == [{"id": 1, "_op": "x"}]


def test_no_rows_change_nothing(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    table.append([{"id": 1, "v": "x"}])
    assert table.merge([], on=["id"]).version == 1
    assert table.merge(pa.table({"id": pa.array([], pa.int64())}), on=["id"]).version == 1
    with table.transaction() as tx:
        assert tx.merge([], on=["id"]).rows_inserted == 0
    assert tx.version == 1


def test_a_new_column_comes_with_rows_as_dictionaries_too(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("id", pa.int64())]))
    table.append([{"id": 1}])
    table.merge([{"id": 1}, {"id": 2, "n": 5}], on=["id"], evolve=True)
    assert sorted(map(str, table.scan().to_pylist())) == ["{'id': 1, 'n': None}", "{'id': 2, 'n': 5}"]


def test_a_source_row_that_matches_twice_is_refused(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    table.append([{"id": 1, "v": "x"}])
    with pytest.raises(DuplicateKeyError):
        table.merge([{"id": 1, "v": "a"}, {"id": 1, "v": "b"}], on=["id"])


def test_a_merge_can_demand_the_version_that_it_rests_on(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), ("n", pa.int64())]), primary_key=["id"])
    assert table.merge([{"id": 1, "n": 1}], expected_version=0).version == 1
    with pytest.raises(CommitConflictError, match="at version 1, not at 0 any more"):
        table.merge([{"id": 1, "n": 2}], expected_version=0)
    assert (table.version(), table.scan().to_pylist()) == (1, [{"id": 1, "n": 1}])
    assert table.merge([{"id": 1, "_op": "DELETE"}], expected_version=1).rows_deleted == 1


def test_of_merges_that_rest_on_the_same_version_exactly_one_lands(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), ("n", pa.int64())]), primary_key=["id"])
    table.append([{"id": 1, "n": 0}])

    def attempt(number: int) -> bool:
        try:
            table.merge([{"id": 1, "n": number}], expected_version=1)
        except CommitConflictError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        landed = list(threads.map(attempt, range(1, 5)))
    assert landed.count(True) == 1
    assert table.version() == 2
    assert table.scan().to_pylist() == [{"id": 1, "n": 1 + landed.index(True)}]
