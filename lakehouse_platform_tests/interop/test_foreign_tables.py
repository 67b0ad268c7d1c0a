"""Tables written by hand from the protocol's text: our store reads them right, and goes on writing them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_platform.errors import (
    ConstraintViolationError,
    NotADeltaTableError,
    StorageError,
    UnsupportedFeatureError,
)
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.checkpoints import (
    classic_checkpoint,
    compacted_log,
    forget_commits,
    v2_checkpoint,
)
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column, mapped, remove

ID, V = column("id", pa.int64()), column("v", pa.string())
_INT, _TEXT = pa.int64(), pa.string()


def numbered(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, _INT), "v": [f"v{number}" for number in ids]})


@pytest.fixture
def foreign(tmp_path: Path) -> HandmadeTable:
    """A directory to write a table into by hand."""
    return HandmadeTable(tmp_path / "lake" / "t")


@pytest.fixture
def table(store: DeltaStore) -> Table:
    """The same table through our store."""
    return store.table("t")


def ids(table: Table, version: int | None = None) -> list[int]:
    return sorted(row["id"] for row in table.scan(version=version).to_pylist())


def test_the_plainest_table(foreign: HandmadeTable, table: Table) -> None:
    foreign.create([ID, V]).commit(1, foreign.add(numbered(1, 2)))
    assert table.scan().to_arrow().to_pylist() == numbered(1, 2).to_pylist()
    assert table.append([{"id": 3, "v": "v3"}]) == 2
    assert table.delete("id = 1").rows_deleted == 1
    assert ids(table) == [2, 3]


def test_partition_values_come_from_the_log_whatever_the_path_says(
    foreign: HandmadeTable, table: Table
) -> None:
    foreign.create([ID, V, column("p", pa.int32())], partition_by=["p"]).commit(
        1,
        foreign.add(numbered(1), name="bare.parquet", partition_values={"p": "7"}),
        foreign.add(numbered(2), name="p=1/lies.parquet", partition_values={"p": "9"}),
        foreign.add(numbered(3), partition_values={"p": None}),
        foreign.add(numbered(4), partition_values={"p": ""}),
    )
    assert {row["id"]: row["p"] for row in table.scan().to_pylist()} == {1: 7, 2: 9, 3: None, 4: None}
    assert [row["id"] for row in table.query("p = 9").to_pylist()] == [2]
    assert sorted(row["id"] for row in table.query("p IS NULL").to_pylist()) == [3, 4]


def test_partition_values_with_odd_letters(foreign: HandmadeTable, table: Table) -> None:
    values = ["a b", "ü/%=:", "2%3D", "NULL", "..", "it's", "x\ny", "🙂", None]
    foreign.create([ID, V, column("p", _TEXT)], partition_by=["p"])
    names = [
        f"p={quote(value or '__HIVE_DEFAULT_PARTITION__', safe='')}/{n}.parquet"
        for n, value in enumerate(values)
    ]
    foreign.commit(
        1,
        *(
            foreign.add(
                numbered(n), name=names[n], log_path=quote(names[n], safe="/="), partition_values={"p": value}
            )
            for n, value in enumerate(values)
        ),
    )
    assert [row["p"] for row in sorted(table.scan().to_pylist(), key=lambda row: row["id"])] == values
    table.delete("p = 'it''s'")
    table.compact()
    assert ids(table) == [0, 1, 2, 3, 4, 6, 7, 8]


def test_columns_in_another_order_missing_or_too_many(foreign: HandmadeTable, table: Table) -> None:
    foreign.create([ID, V, column("n", _INT)]).commit(
        1, foreign.add(pa.table({"extra": [0], "n": [1], "v": ["v1"], "id": [1]})), foreign.add(numbered(2))
    )
    expected = [{"id": 1, "v": "v1", "n": 1}, {"id": 2, "v": "v2", "n": None}]
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == expected
    assert [row["id"] for row in table.query("n IS NULL").to_pylist()] == [2]


def test_files_without_statistics_or_with_only_some(foreign: HandmadeTable, table: Table) -> None:
    bare = foreign.add(numbered(1, 2))
    del bare["add"]["stats"]
    some = foreign.add(numbered(3), stats={"numRecords": 1, "nullCount": {"id": 0}})
    foreign.create([ID, V]).commit(1, bare, some)
    assert ids(table) == [1, 2, 3]
    assert [row["id"] for row in table.query("id >= 2").to_pylist()] in ([2, 3], [3, 2])
    assert table.sql("SELECT count(*) AS n, min(id) AS first FROM data").to_pylist() == [{"n": 3, "first": 1}]


def test_times_and_decimals_as_spark_writes_them(foreign: HandmadeTable, table: Table) -> None:
    at, price = datetime(2024, 1, 1, 12, tzinfo=UTC), Decimal("1.25")
    utc = pa.timestamp("us", "UTC")
    data = pa.table({"at": pa.array([at], utc), "price": pa.array([price], pa.decimal128(10, 2))})
    foreign.create([column("at", utc), column("price", pa.decimal128(10, 2))]).commit(
        1, foreign.add(data, use_deprecated_int96_timestamps=True, store_decimal_as_integer=True)
    )
    assert table.scan().to_pylist() == [{"at": at, "price": price}]
    assert table.query("at = '2024-01-01T12:00:00Z'").to_pylist() == [{"at": at, "price": price}]


def test_times_without_a_zone(foreign: HandmadeTable, table: Table) -> None:
    at = datetime(2024, 3, 31, 2, 30)  # noqa: DTZ001 - a time that Berlin's clocks skip
    foreign.create([column("at", pa.timestamp("us"))], protocol=Protocol.with_features("timestampNtz"))
    foreign.commit(1, foreign.add(pa.table({"at": pa.array([at], pa.timestamp("us"))})))
    assert table.scan().to_pylist() == [{"at": at}]
    table.append([{"at": at}])
    assert table.scan().to_pylist() == [{"at": at}] * 2


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize(
    "protocol", [Protocol(2, 5), Protocol.with_features("columnMapping")], ids=["2,5", "3,7"]
)
def test_mapped_columns_are_read_under_their_logical_names(
    foreign: HandmadeTable, table: Table, mode: str, protocol: Protocol
) -> None:
    _mapped_table(foreign, mode, protocol)
    expected = [{"id": n, "v": f"v{n}", "p": "x"} for n in (1, 2)]
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == expected
    assert [row["id"] for row in table.query("v = 'v2' AND p = 'x'").to_pylist()] == [2]
    assert table.sql("SELECT v FROM data WHERE id = 1").to_pylist() == [{"v": "v1"}]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda table: table.append([{"id": 3, "v": "v3", "p": "y"}]), [1, 2, 3]),
        (lambda table: table.delete("id = 1"), [2]),
        (lambda table: table.update({"v": "'new'"}, "id = 1"), [1, 2]),
        (lambda table: table.merge([{"id": 2, "v": "new", "p": "x"}], on=["id"]), [1, 2]),
        (lambda table: table.overwrite([{"id": 9, "v": "v9", "p": "z"}]), [9]),
        (lambda table: table.add_constraint("c", "id > 0"), [1, 2]),
    ],
    ids=["append", "delete", "update", "merge", "overwrite", "constraint"],
)
def test_a_change_of_a_mapped_table_keeps_to_the_physical_names(
    foreign: HandmadeTable, table: Table, change: Callable[[Table], object], left: list[int]
) -> None:
    """Files or partition values under logical names would be read as NULL by everybody else."""
    _mapped_table(foreign, "name", Protocol(2, 5))
    change(table)
    found = table.scan().to_pylist()
    assert sorted(row["id"] for row in found) == left
    assert all(None not in row.values() for row in found)
    _assert_physical_names_only(foreign, table)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.overwrite_where("id = 1", [{"id": 1, "v": "new", "p": "x"}]),
        lambda table: table.compact(),
        lambda table: table.z_order(["id"]),
    ],
    ids=["overwrite_where", "compact", "z_order"],
)
def test_what_the_engine_cannot_do_on_a_mapped_table_is_refused(
    foreign: HandmadeTable, table: Table, change: Callable[[Table], object]
) -> None:
    _mapped_table(foreign, "name", Protocol(2, 5))
    with pytest.raises(UnsupportedFeatureError, match="columnMapping"):
        change(table)
    assert (table.version(), ids(table)) == (1, [1, 2])


def test_every_checkpoint_layout(foreign: HandmadeTable, table: Table) -> None:
    _six_versions(foreign)
    classic_checkpoint(foreign, 5)
    forget_commits(foreign, 5)
    assert (table.version(), ids(table)) == (6, [0, 2, 3, 4, 5])


def test_a_checkpoint_in_several_parts(foreign: HandmadeTable, table: Table) -> None:
    _six_versions(foreign)
    classic_checkpoint(foreign, 5, parts=3)
    forget_commits(foreign, 5)
    assert (table.version(), ids(table)) == (6, [0, 2, 3, 4, 5])
    table.append([{"id": 6, "v": "v6"}])
    table.checkpoint()
    assert ids(table) == [0, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("sidecars", [0, 2])
@pytest.mark.parametrize("manifest", ["json", "parquet"])
def test_a_v2_checkpoint(foreign: HandmadeTable, table: Table, manifest: str, sidecars: int) -> None:
    _six_versions(foreign, Protocol.with_features("v2Checkpoint"))
    v2_checkpoint(foreign, 5, manifest=manifest, sidecars=sidecars)
    forget_commits(foreign, 5)
    assert (table.version(), ids(table)) == (6, [0, 2, 3, 4, 5])
    table.append([{"id": 6, "v": "v6"}])
    table.delete("id = 0")
    table.set_properties({"delta.logRetentionDuration": "interval 0 hours"})
    table.checkpoint()
    table.clean_up_log()
    assert ids(table) == [2, 3, 4, 5, 6]


def test_a_compacted_log(foreign: HandmadeTable, table: Table) -> None:
    _six_versions(foreign)
    compacted_log(foreign, 1, 5)
    assert ids(table) == [0, 2, 3, 4, 5]
    assert ids(table, version=3) == [0, 1, 2]
    assert [entry.version for entry in table.history()] == [6, 5, 4, 3, 2, 1, 0]


def test_a_hole_in_the_log_is_an_error_that_says_so(foreign: HandmadeTable, table: Table) -> None:
    _six_versions(foreign)
    (foreign.log / f"{3:020}.json").unlink()
    with pytest.raises(NotADeltaTableError, match="_delta_log"):
        table.scan().to_pylist()


def test_a_change_feed_written_by_another(foreign: HandmadeTable, table: Table) -> None:
    configuration = {"delta.enableChangeDataFeed": "true"}
    foreign.create([ID, V], protocol=Protocol(1, 4), configuration=configuration)
    old, new = foreign.add(numbered(1, 2)), foreign.add(numbered(1))
    gone = numbered(2).append_column("_change_type", pa.array(["delete"]))
    written = foreign.add(gone, name="_change_data/cdc-1.parquet")["add"]
    cdc = {key: written[key] for key in ("path", "partitionValues", "size")} | {"dataChange": False}
    foreign.commit(1, old).commit(2, remove(old), new, {"cdc": cdc}, operation="DELETE")
    assert ids(table) == [1]
    feed = table.change_feed(1, 2).to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in feed)
    assert told == [(1, "insert", 1), (1, "insert", 2), (2, "delete", 2)]


def test_a_generated_column(foreign: HandmadeTable, table: Table) -> None:
    double = column("twice", _INT, delta__generationExpression="id * 2")
    foreign.create([ID, double], protocol=Protocol(1, 4))
    foreign.commit(1, foreign.add(pa.table({"id": [1], "twice": [2]})))
    assert table.scan().to_pylist() == [{"id": 1, "twice": 2}]
    for wrong in (
        lambda: table.append([{"id": 2, "twice": 5}]),
        lambda: table.update({"id": "id + 10"}, "id = 1"),
        lambda: table.merge([{"id": 1, "twice": 9}], on=["id"]),
    ):
        with pytest.raises(ConstraintViolationError):
            wrong()
    table.append([{"id": 2, "twice": 4}])
    table.merge([{"id": 1}, {"id": 3}], on=["id"])
    assert {row["id"]: row["twice"] for row in table.scan().to_pylist()} == {1: 2, 2: 4, 3: 6}


def test_an_invariant_holds(foreign: HandmadeTable, table: Table) -> None:
    """Protocol, "Column Invariants": an expression in the field's metadata."""
    positive = column("id", _INT, delta__invariants='{"expression": {"expression": "id > 0"}}')
    foreign.create([positive, V]).commit(1, foreign.add(numbered(1)))
    with pytest.raises(StorageError):
        table.append([{"id": -1, "v": "x"}])
    assert ids(table) == [1]


def test_an_append_only_table_written_by_another(foreign: HandmadeTable, table: Table) -> None:
    foreign.create([ID, V], configuration={"delta.appendOnly": "true"}).commit(1, foreign.add(numbered(1)))
    with pytest.raises(StorageError, match="append-only"):
        table.delete("id = 1")
    assert ids(table) == [1]


def test_a_shallow_clone_reads_files_of_another_table(
    foreign: HandmadeTable, table: Table, tmp_path: Path
) -> None:
    origin = HandmadeTable(tmp_path / "origin")
    action = origin.add(numbered(1, 2), name="data.parquet")
    action["add"]["path"] = (origin.path / "data.parquet").as_uri()
    foreign.create([ID, V]).commit(1, action)
    assert ids(table) == [1, 2]
    table.vacuum(retention_hours=0)
    assert (origin.path / "data.parquet").exists()


def _six_versions(foreign: HandmadeTable, protocol: Protocol | None = None) -> None:
    """Add ids 0 to 5 in versions 1 to 6; version 5 removes id 1."""
    foreign.create([ID, V], protocol=protocol)
    adds = [foreign.add(numbered(number)) for number in range(6)]
    for number, add in enumerate(adds):
        foreign.commit(number + 1, add, *([remove(adds[1])] if number == 4 else []))


def _mapped_table(foreign: HandmadeTable, mode: str, protocol: Protocol) -> None:
    fields = [mapped("id", _INT, 1, "col-a"), mapped("v", _TEXT, 2, "col-b"), mapped("p", _TEXT, 3, "col-p")]
    configuration = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "3"}
    physical = pa.schema([_with_id("col-a", _INT, 1), _with_id("col-b", _TEXT, 2)])
    data = numbered(1, 2).rename_columns(["col-a", "col-b"]).cast(physical)
    foreign.create(fields, protocol=protocol, partition_by=["p"], configuration=configuration)
    foreign.commit(1, foreign.add(data, partition_values={"col-p": "x"}))


def _with_id(name: str, data_type: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, data_type, metadata={"PARQUET:field_id": str(number)})


def _assert_physical_names_only(foreign: HandmadeTable, table: Table) -> None:
    for action in foreign.actions(range(2, table.version() + 1)):
        if "add" in action:
            assert set(action["add"]["partitionValues"]) == {"col-p"}
            names = set(pq.read_schema(foreign.path / action["add"]["path"]).names)
            assert names == {"col-a", "col-b"}
