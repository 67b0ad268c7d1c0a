"""Tables with deletion vectors: read right, changed right, and never vacuumed of vectors that are in use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import UnsupportedFeatureError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.interop.readers import with_duckdb, with_polars
from lakehouse_platform_tests.support.checkpoints import classic_checkpoint, forget_commits
from lakehouse_platform_tests.support.deletion_vectors import file_vector, inline_vector
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column, remove

_FIELDS = [column("id", pa.int64()), column("v", pa.string())]
_PROTOCOL = Protocol.with_features("deletionVectors")
_GONE = [0, 3, 9]
_LEFT = [1, 2, 4, 5, 6, 7, 8]
_KINDS: dict[str, Callable[[HandmadeTable], dict[str, Any]]] = {
    "inline": lambda table: inline_vector(_GONE),
    "file": lambda table: file_vector(table.path, _GONE),
    "file in a folder": lambda table: file_vector(table.path, _GONE, "ab"),
}


def numbered(count: int) -> pa.Table:
    return pa.table({"id": range(count), "v": [f"v{number}" for number in range(count)]})


@pytest.fixture
def foreign(tmp_path: Path) -> HandmadeTable:
    """A table without files that may have deletion vectors."""
    configuration = {"delta.enableDeletionVectors": "true"}
    table = HandmadeTable(tmp_path / "lake" / "t")
    return table.create(_FIELDS, protocol=_PROTOCOL, configuration=configuration)


@pytest.fixture(params=_KINDS)
def table(request: pytest.FixtureRequest, foreign: HandmadeTable, store: DeltaStore) -> Table:
    """Ten rows, three of them deleted by a vector of each kind."""
    vector = _KINDS[request.param](foreign)
    foreign.commit(1, foreign.add(numbered(10), deletion_vector=vector))
    return store.table("t")


def ids(table: Table, **scan: Any) -> list[int]:
    return sorted(row["id"] for row in table.scan(**scan).to_pylist())


def test_every_way_of_reading_leaves_deleted_rows_out(table: Table) -> None:
    assert ids(table) == _LEFT
    assert ids(table, predicate="id < 4") == [1, 2]
    assert ids(table, columns=["id"]) == _LEFT
    assert len(table.scan(limit=100).to_pylist()) == 7
    totals = "SELECT count(*) AS n, min(id) AS first, max(id) AS last, sum(id) AS total FROM data"
    assert table.sql(totals).to_pylist() == [{"n": 7, "first": 1, "last": 8, "total": sum(_LEFT)}]
    assert table.sql("SELECT count(*) AS n FROM data WHERE id = 3").to_pylist() == [{"n": 0}]


def test_others_read_the_same_rows(table: Table) -> None:
    for reader in (with_duckdb, with_polars):
        assert sorted(row["id"] for row in reader(table.location.path)) == _LEFT


def test_the_number_of_rows_is_right_or_not_told(table: Table) -> None:
    assert table.info().rows in (7, None)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda table: table.append([{"id": 20, "v": "v20"}]), [*_LEFT, 20]),
        (lambda table: table.delete("id = 1"), _LEFT[1:]),
        (lambda table: table.update({"v": "'new'"}, "id = 1"), _LEFT),
        (lambda table: table.merge([{"id": 3, "v": "back"}], on=["id"]), sorted([*_LEFT, 3])),
        (lambda table: table.overwrite_where("id = 1", [{"id": 1, "v": "new"}]), _LEFT),
        (lambda table: table.overwrite([{"id": 9, "v": "v9"}]), [9]),
        (lambda table: table.compact(), _LEFT),
        (lambda table: table.z_order(["id"]), _LEFT),
        (lambda table: table.checkpoint(), _LEFT),
        (lambda table: table.vacuum(retention_hours=0), _LEFT),
        (lambda table: (table.append([{"id": 20, "v": "x"}]), table.restore(1)), _LEFT),
    ],
    ids=["append", "delete", "update", "merge", "overwrite_where", "overwrite", "compact", "z_order",
         "checkpoint", "vacuum", "restore"],
)  # fmt: skip
def test_every_change_of_ours_is_right_for_us_and_for_others(
    table: Table, change: Callable[[Table], object], left: list[int]
) -> None:
    change(table)
    assert ids(table) == left
    assert sorted(row["id"] for row in with_duckdb(table.location.path)) == left


def test_vacuum_after_a_change_keeps_vectors_that_are_in_use(table: Table) -> None:
    table.append([{"id": 20, "v": "v20"}])
    table.vacuum(retention_hours=0)
    assert ids(table) == [*_LEFT, 20]


def test_vacuum_never_names_a_vector_that_is_in_use(table: Table) -> None:
    planned = table.vacuum(retention_hours=0, dry_run=True)
    assert [path for path in planned.files if "deletion_vector" in path] == []


def test_a_transaction_on_such_a_table_is_refused(table: Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="deletion vectors"), table.transaction():
        pass
    assert ids(table) == _LEFT


def test_a_difference_sees_rows_that_a_vector_deleted(foreign: HandmadeTable, store: DeltaStore) -> None:
    whole = foreign.add(numbered(10), name="data.parquet")
    marked = foreign.add(numbered(10), name="data.parquet", deletion_vector=inline_vector(_GONE))
    foreign.commit(1, whole).commit(2, remove(whole), marked, operation="DELETE")
    changes = store.diff("t", 1, 2).to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in changes) == [("delete", n) for n in _GONE]
    assert ids(store.table("t"), version=1) == list(range(10))


def test_vectors_behind_a_checkpoint_still_count(foreign: HandmadeTable, store: DeltaStore) -> None:
    foreign.commit(1, foreign.add(numbered(10), deletion_vector=file_vector(foreign.path, _GONE)))
    classic_checkpoint(foreign, 1)
    foreign.commit(2, foreign.add(pa.table({"id": [20], "v": ["v20"]})))
    forget_commits(foreign, 1)
    assert ids(store.table("t")) == [*_LEFT, 20]


def test_large_vectors_and_many_files(foreign: HandmadeTable, store: DeltaStore) -> None:
    """More than 4 096 rows of one container are stored as bits, and 200 000 rows need four containers."""
    gone = [row for row in range(200_000) if row % 3]
    vector = file_vector(foreign.path, gone)
    foreign.commit(1, foreign.add(numbered(200_000), deletion_vector=vector), foreign.add(numbered(5)))
    found = store.table("t").scan(columns=["id"]).to_arrow().column("id").to_pylist()
    assert sorted(found) == sorted([*range(0, 200_000, 3), *range(5)])
