"""Transactions: what may happen beside them, what fails in them, and where they work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    CommitConflictError,
    ConstraintViolationError,
    LakehouseError,
    LossyCastError,
    TransactionClosedError,
    UnsupportedFeatureError,
)
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.transaction import Transaction
from lakehouse_platform_tests.interop.readers import READERS
from lakehouse_platform_tests.support.s3_server import S3Server

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64()), ("l", pa.list_(pa.int32()))])
Row = dict[str, Any]
PARTITIONS = ["a", "x y", "ü/%=:", "it's", "2%3D", None]


def row(number: int, p: str | None = "a", v: float | None = 1.0) -> Row:
    return {"id": number, "p": p, "v": v, "l": [number, None]}


def texts(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.fixture(params=["flat", "partitioned"])
def table(request: pytest.FixtureRequest, store: DeltaStore) -> Table:
    """Six rows in two files, or in one file for each odd partition value and commit."""
    partition_by = ["p"] if request.param == "partitioned" else []
    made = store.create("t", SCHEMA, partition_by=partition_by)
    made.append([row(number, PARTITIONS[number]) for number in range(3)])
    made.append([row(number, PARTITIONS[number], math.nan) for number in range(3, 6)])
    return made


def ids(table: Table | Transaction) -> list[int]:
    return sorted(found["id"] for found in table.scan().to_pylist())


def entries(table: Table) -> set[str]:
    return {path.name for path in table.location.path.iterdir()}


# ── Beside others ─────────────────────────────────────────────────────────────────────────────────

_RIVALS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("id = 5"),
    "update": lambda table: table.update({"v": "7.0"}, "id = 5"),
    "merge": lambda table: table.merge([row(5, "a")], on=["id"]),
    "overwrite": lambda table: table.overwrite([row(9)]),
    "compact": lambda table: (table.append([row(8, "a")]), table.compact()),
    "z_order": lambda table: table.z_order(["id"]),
    "restore": lambda table: table.restore(1),
    "set_properties": lambda table: table.set_properties({"delta.appendOnly": "false"}),
    "add_columns": lambda table: table.add_columns(pa.schema([("n", pa.int64())])),
    "transaction": lambda table: _delete_in_transaction(table, "id = 5"),
}


def _delete_in_transaction(table: Table, predicate: str) -> None:
    with table.transaction() as tx:
        tx.delete(predicate)


@pytest.mark.parametrize("rival", _RIVALS)
@pytest.mark.parametrize("mine", ["append", "delete"])
def test_a_transaction_conflicts_with_every_change_that_is_no_append(
    table: Table, rival: str, mine: str
) -> None:
    with pytest.raises(CommitConflictError), table.transaction() as tx:  # noqa: PT012
        tx.append([row(100)]) if mine == "append" else tx.delete("id = 1")
        _RIVALS[rival](table)
        after_rival = texts(table.scan().to_pylist())
        version = table.version()
    assert texts(table.scan().to_pylist()) == after_rival
    assert table.version() == version
    assert not [name for name in entries(table) if name.startswith("tx-")] or rival == "transaction"


def test_an_append_meanwhile_stays_beside_the_changes(table: Table) -> None:
    with table.transaction() as tx:
        tx.delete("id < 3")
        table.append([row(50), row(1)])
        assert ids(tx) == [3, 4, 5]
        tx.append([row(60)])
    assert ids(table) == [1, 3, 4, 5, 50, 60]
    assert tx.version == table.version()


def test_a_vacuum_meanwhile_takes_nothing_that_is_needed(table: Table) -> None:
    table.delete("id = 0")
    with table.transaction() as tx:
        tx.update({"v": "9.0"}, "id = 1")
        table.vacuum(retention_hours=0)
        tx.delete("id = 2")
    assert ids(table) == [1, 3, 4, 5]


def test_a_keyed_table_admits_no_other_write_meanwhile(store: DeltaStore) -> None:
    keyed = store.create("k", SCHEMA, primary_key=["id"])
    keyed.append([row(1)])
    with pytest.raises(CommitConflictError), keyed.transaction() as tx:  # noqa: PT012
        tx.append([row(2)])
        keyed.append([row(2)])
    assert ids(keyed) == [1, 2]


def test_the_commit_is_stamped_numbered_and_durable(table: Table) -> None:
    with table.transaction() as tx:
        tx.append([row(6)])
    newest = table.history(1)[0]
    assert (newest.version, newest.actor) == (tx.version, "owner") == (3, "owner")


# ── What fails, and what is left ──────────────────────────────────────────────────────────────────


def _failing_steps() -> Iterator[tuple[str, Callable[[Transaction], object], type[Exception]]]:
    yield "python", lambda tx: 1 // 0, ZeroDivisionError
    yield "interrupt", lambda tx: _raise(KeyboardInterrupt()), KeyboardInterrupt
    yield "predicate", lambda tx: tx.delete("nope = 1"), LakehouseError
    yield "check", lambda tx: tx.append([row(7, v=-1.0)]), ConstraintViolationError
    yield "check by update", lambda tx: tx.update({"v": "-2.0"}), ConstraintViolationError
    yield "check by merge", lambda tx: tx.merge([row(1, v=-3.0)], on=["id"]), ConstraintViolationError
    yield "null by update", lambda tx: tx.update({"id": "NULL"}), ConstraintViolationError
    yield "null by merge", lambda tx: tx.merge([{"id": None, "p": "a"}], on=["p"]), LakehouseError
    yield "lossy", lambda tx: tx.update({"id": "v + 0.5"}), LakehouseError


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("step", list(_failing_steps()), ids=lambda step: step[0])
@pytest.mark.parametrize("partitioned", [False, True])
def test_whatever_fails_inside_leaves_table_and_directory_as_they_were(
    store: DeltaStore,
    step: tuple[str, Callable[[Transaction], object], type[BaseException]],
    partitioned: bool,
) -> None:
    schema = SCHEMA.set(0, pa.field("id", pa.int64(), nullable=False))
    table = store.create("t", schema, partition_by=["p"] if partitioned else [])
    table.append([row(1), row(2, "x y")])
    table.add_constraint("positive", "v >= 0")
    before, files = texts(table.scan().to_pylist()), entries(table)
    with pytest.raises(step[2]), table.transaction() as tx:  # noqa: PT012
        tx.append([row(3, "new")])
        tx.delete("id = 1")
        step[1](tx)
    assert texts(table.scan().to_pylist()) == before
    assert entries(table) == files
    assert table.version() == 2


def test_a_violation_inside_names_the_constraint_and_the_row_but_no_value(table: Table) -> None:
    table.set_properties({"delta.appendOnly": "false"})
    table.delete("v <> v")
    table.add_constraint("positive", "v >= 0")
    with pytest.raises(ConstraintViolationError, match="Row 2 breaks constraint 'positive'") as caught:  # noqa: SIM117
        with table.transaction() as tx:
            tx.append([row(7, "secret"), row(8, "secret", v=-1.0)])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda tx: tx.append([row(1)]),
        lambda tx: tx.delete("TRUE"),
        lambda tx: tx.scan(),
        lambda tx: tx.sql("SELECT 1"),
        lambda tx: tx.commit(),
        lambda tx: tx.rollback(),
        lambda tx: tx.__enter__(),
    ],
)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_is_used_once(table: Table, use: Callable[[Transaction], object], end: str) -> None:
    with table.transaction() as tx:
        tx.append([row(6)])
        if end == "rollback":
            tx.rollback()
    with pytest.raises(TransactionClosedError):
        use(tx)


def test_a_transaction_is_not_entered_twice_at_once(table: Table) -> None:
    with table.transaction() as tx:
        with pytest.raises(TransactionClosedError):
            tx.__enter__()
        tx.append([row(6)])
    assert ids(table) == [0, 1, 2, 3, 4, 5, 6]


def test_a_transaction_that_was_not_begun_refuses_everything(table: Table) -> None:
    with pytest.raises(TransactionClosedError):
        table.transaction().append([row(6)])
    with pytest.raises(TransactionClosedError):
        _ = table.transaction().version


def test_an_append_only_table_keeps_its_rows(store: DeltaStore) -> None:
    log = store.create("log", SCHEMA, properties={"delta.appendOnly": "true"})
    log.append([row(1), row(2)])
    for step in (
        lambda tx: tx.delete("id = 1"),
        lambda tx: tx.overwrite([]),
        lambda tx: tx.update({"v": "0.0"}),
    ):
        with pytest.raises(ConstraintViolationError, match="append-only"), log.transaction() as tx:
            step(tx)
    with log.transaction() as tx:
        tx.append([row(3)])
    assert ids(log) == [1, 2, 3]


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_would_become_null_in_the_partition_is_refused(store: DeltaStore, text: str) -> None:
    table = store.create("t", SCHEMA, partition_by=["p"])
    with pytest.raises(LossyCastError, match="NULL"), table.transaction() as tx:
        tx.append([row(1, text)])


# ── Many steps, odd tables ────────────────────────────────────────────────────────────────────────


def test_a_table_that_checkpoints_and_forgets_at_once_loses_no_step(store: DeltaStore) -> None:
    """The copy inherits the table's properties: it must not clean up the log that its changes are read from."""
    hasty = {"delta.checkpointInterval": "1", "delta.logRetentionDuration": "interval 0 seconds"}
    table = store.create("t", SCHEMA, properties=hasty)
    with table.transaction() as tx:
        for number in range(6):
            tx.append([row(number)])
    assert ids(table) == list(range(6))


def test_more_steps_than_a_checkpoint_interval(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA, properties={"delta.checkpointInterval": "3"})
    with table.transaction() as tx:
        for number in range(8):
            tx.append([row(number)])
            tx.delete(f"id = {number - 2}")
    assert ids(table) == [6, 7]


def test_every_reader_reads_what_a_transaction_wrote(table: Table) -> None:
    with table.transaction() as tx:
        tx.delete("id = 0")
        tx.update({"v": "5.0"}, "id = 3")
        tx.append([row(7, "new ü")])
    path = str(table.location.path)
    wanted = [1, 2, 3, 4, 5, 7]
    assert sorted(pl.read_delta(path)["id"].to_list()) == wanted
    found = READERS["duckdb"](table.location.path)
    assert sorted(read["id"] for read in found) == wanted
    assert {read["p"] for read in found} == {*PARTITIONS[1:], "new ü"}


def test_the_change_feed_tells_a_transactions_net_change(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA, properties={"delta.enableChangeDataFeed": "true"})
    table.append([row(1), row(2)])
    with table.transaction() as tx:
        tx.append([row(3)])
        tx.delete("id = 3")
        tx.delete("id = 1")
    changes = table.change_feed(2).to_pylist()
    net = [(c["_change_type"], c["id"]) for c in changes]
    assert sorted(net) in ([("delete", 1)], [("delete", 1), ("delete", 2), ("insert", 2)])


@pytest.mark.parametrize("base", ["a b", "ü🙂", "it's", "a~b+c&d"])
def test_directories_with_odd_names(tmp_path: Path, base: str) -> None:
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path / base)))
    table = store.create("t", SCHEMA, partition_by=["p"])
    table.append([row(number, PARTITIONS[number]) for number in range(6)])
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.update({"v": "3.0"}, "id = 2")
        assert tx.merge([row(3, "q"), {"id": 5, "_op": "DELETE"}], on=["id"]).rows_updated == 1
        tx.append([row(9, "b c%20d")])
    assert ids(table) == [0, 2, 3, 4, 9]
    table.compact()
    table.vacuum(retention_hours=0)
    assert ids(table) == [0, 2, 3, 4, 9]


@pytest.mark.parametrize(
    "name", ["_op", "s", "t", "source", "row", "0", "a.b", 'a"b', "a'b", "a b", "a`b", "f", "data"]
)
def test_columns_with_odd_names(store: DeltaStore, name: str) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), (name, pa.string())]))
    table.append([{"id": 1, name: "x"}, {"id": 2, name: "y"}])
    quoted = '"' + name.replace('"', '""') + '"'
    with table.transaction() as tx:
        assert tx.update({name: "'u'"}, f"{quoted} = 'x'").rows_updated == 1
        assert tx.delete(f"{quoted} = 'y'").rows_deleted == 1
        tx.append([{"id": 3, name: "z"}])
        if name == "_op":
            with pytest.raises(UnsupportedFeatureError, match="_op"):
                tx.merge([{"id": 3, name: "w"}], on=["id"])
        else:
            tx.merge([{"id": 30, name: "z"}], on=[name])
    wanted = {1: "u", 3: "z"} if name == "_op" else {1: "u", 30: "z"}
    assert {found["id"]: found[name] for found in table.scan().to_pylist()} == wanted


def test_files_without_statistics_are_counted_right(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA, properties={"delta.dataSkippingNumIndexedCols": "0"})
    table.append([row(1), row(2)])
    with table.transaction() as tx:
        assert tx.delete("id = 1").rows_deleted == 1
        assert tx.update({"v": "2.0"}).rows_updated == 1


@pytest.mark.object_store
def test_transactions_work_on_an_object_store(s3: S3Server) -> None:
    store = DeltaStore(LakehouseConfig(base_path=s3.fresh_uri(), storage_options=dict(s3.options)))
    table = store.create("t", SCHEMA, partition_by=["p"])
    table.append([row(number, PARTITIONS[number]) for number in range(6)])
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.update({"v": "3.0"}, "id = 2")
        assert tx.merge([row(3, "q"), {"id": 5, "_op": "DELETE"}], on=["id"]).rows_deleted == 1
        tx.append([row(9, "b c%20d")])
        assert ids(tx) == [0, 2, 3, 4, 9]
    assert tx.version == 2
    with pytest.raises(ZeroDivisionError), table.transaction() as tx:  # noqa: PT012
        tx.append([row(10)])
        _ = 1 // 0
    assert ids(table) == [0, 2, 3, 4, 9]
    assert _left_over(table.location) == {1}
    table.compact()
    table.vacuum(retention_hours=0)
    assert ids(table) == [0, 2, 3, 4, 9]


def _left_over(location: Location) -> set[int]:
    """Return the number of transaction directories that still hold files."""
    everything = location.filesystem().get_file_info(pa.fs.FileSelector("", recursive=True))
    # SeaweedFS keeps a key without content for a directory that was emptied.
    files = [info.path for info in everything if info.size]
    return {len({path.split("/")[0] for path in files if path.startswith("tx-")})}
