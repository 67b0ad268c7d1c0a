"""Splices: what the files and the log look like afterwards, what is refused, and what may happen beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_platform.errors import (
    CommitConflictError,
    ConstraintViolationError,
    DuplicateKeyError,
    InvalidArgumentError,
    LakehouseError,
    LossyCastError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.log import read_commit
from lakehouse_platform.store.snapshot import add_actions
from lakehouse_platform.store.splice import Cut, FileSplices, SpliceCounts
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.interop.readers import READERS
from lakehouse_platform_tests.support.deletion_vectors import inline_vector
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column
from lakehouse_platform_tests.support.layout import cut, in_file, in_order, layout, paths, typed

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64())])


def row(number: int, p: str | None = "a", v: float | None = 1.0) -> dict[str, Any]:
    return {"id": number, "p": p, "v": v}


def ids(table: Table) -> list[int]:
    return [found["id"] for found in in_order(table)]


@pytest.fixture
def table(store: DeltaStore) -> Table:
    """Files with rows 0 to 3, 10 to 13 and 20 to 23."""
    made = store.create("t", SCHEMA)
    for first in (0, 10, 20):
        made.append([row(first + number) for number in range(4)])
    return made


def entries(table: Table) -> set[str]:
    return {path.name for path in table.location.path.iterdir() if path.name != "_delta_log"}


# ── What it makes ─────────────────────────────────────────────────────────────────────────────────


def test_rows_are_replaced_removed_and_inserted_in_place(table: Table) -> None:
    cuts = cut(table, 0, 1, row(100), row(101)), cut(table, 2, 3), cut(table, 4, 4, row(102))
    done = table.splice(3, [in_file(table, 1, *cuts)], typed(table, [row(200), row(201)]))
    assert ids(table) == [0, 1, 2, 3, 100, 101, 11, 13, 102, 20, 21, 22, 23, 200, 201]
    assert (done.version, done.rows_inserted, done.rows_updated, done.rows_deleted) == (4, 4, 1, 1)


def test_only_touched_files_change_and_they_keep_their_place(table: Table) -> None:
    old = paths(table)
    stamps = add_actions(open_table(table.location)).select(["path", "modification_time"]).to_pylist()
    table.splice(3, [in_file(table, 1, cut(table, 0, 1))])
    new = paths(table)
    assert (new[0], new[2]) == (old[0], old[2])
    assert new[1] not in old
    after = add_actions(open_table(table.location)).select(["path", "modification_time"]).to_pylist()
    assert sorted(s["modification_time"] for s in after) == sorted(s["modification_time"] for s in stamps)


def test_files_of_one_moment_keep_their_order(table: Table) -> None:
    moment = 1_700_000_000_000
    home = HandmadeTable(table.location.path.parent / "h").create([column("id", pa.int64())])
    for version in range(1, 4):
        add = home.add(pa.table({"id": [version]}))
        add["add"]["modificationTime"] = moment
        home.commit(version, add)
    other = Table(_place(home), table.config, table.origin)
    before = ids(other)
    for number in range(3):
        for value in (100, 200):
            other.splice(0, [in_file(other, number, cut(other, 0, 1, {"id": value + number}))])
    assert len(before) == 3
    assert ids(other) == [200, 201, 202]
    assert all(len(path) < 120 for path in paths(other))


def _place(home: HandmadeTable) -> Any:
    from lakehouse_platform.store.location import Location

    return Location(str(home.path), {})


def test_rows_at_the_end_stand_behind_files_that_claim_to_come_from_the_future(table: Table) -> None:
    home = HandmadeTable(table.location.path.parent / "h").create([column("id", pa.int64())])
    add = home.add(pa.table({"id": [1]}))
    add["add"]["modificationTime"] = 9_000_000_000_000
    home.commit(1, add)
    other = Table(_place(home), table.config, table.origin)
    other.splice(1, [], typed(other, [{"id": 2}]))
    assert ids(other) == [1, 2]


def test_a_file_without_rows_left_is_only_removed(table: Table) -> None:
    table.splice(
        3, [in_file(table, 0, cut(table, 0, 4)), in_file(table, 2, cut(table, 0, 2), cut(table, 2, 4))]
    )
    assert ids(table) == [10, 11, 12, 13]
    assert len(paths(table)) == 1


def test_nothing_to_do_makes_no_version(table: Table) -> None:
    for appended in (None, typed(table, [])):
        done = table.splice(3, [in_file(table, 0, cut(table, 1, 1))], appended)
        assert (done.version, done.rows_inserted) == (3, 0)
    assert table.version() == 3


def test_the_history_tells_what_happened(table: Table) -> None:
    done = table.splice(
        3,
        [in_file(table, 0, cut(table, 0, 2, row(5)))],
        counts=SpliceCounts(inserted=0, updated=1, deleted=1),
    )
    entry = table.history(1)[0]
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 1, 1)
    assert entry.operation == "WRITE"
    assert entry.metrics == {
        "num_target_rows_inserted": 0, "num_target_rows_updated": 1, "num_target_rows_deleted": 1,
        "num_target_files_added": 1, "num_target_files_removed": 1,
    }  # fmt: skip


def test_many_cuts_of_a_large_file_are_one_stream(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA)
    count = 200_000
    table.append(pa.table({"id": range(count), "p": ["a"] * count, "v": [1.0] * count}, schema=SCHEMA))
    assert ids(table) == list(range(count))
    cuts = [cut(table, start, start + 1, row(-start)) for start in range(0, count, 500)]
    table.splice(1, [in_file(table, 0, *cuts)])
    assert ids(table) == [-number if number % 500 == 0 else number for number in range(count)]


def test_other_readers_see_the_same_rows(table: Table) -> None:
    table.splice(
        3, [in_file(table, 0, cut(table, 0, 2, row(7, None, math.inf)))], typed(table, [row(8, "ü/%")])
    )
    for name, read in READERS.items():
        found = sorted(read(table.location.path), key=lambda found: found["id"])
        assert found == sorted(in_order(table), key=lambda found: found["id"]), name


EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("s", pa.string()), ("v", pa.float64()), ("f", pa.float32()), ("i", pa.int8()), ("b", pa.bool_()),
        ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")), ("x", pa.binary()),
        ("c", pa.decimal128(9, 2)), ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32())),
        ("r", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)  # fmt: skip


def every_value(number: int) -> dict[str, Any]:
    moment = datetime(2026, 1, 1 + number, 1, 2, 3, 456_789, tzinfo=UTC)
    return {
        "id": number, "s": "é" * number * 40, "v": [1.5, math.nan, math.inf][number % 3], "f": 0.5, "i": number,
        "b": number % 2 == 0, "d": date(2026, 1, 1 + number), "t": moment, "n": moment.replace(tzinfo=None),
        "x": b"\xff", "c": Decimal("1.25"), "l": [number, None], "m": [("k", number)], "r": {"a": number, "b": None},
    }  # fmt: skip


@pytest.mark.parametrize("columns", [EVERY_TYPE.names, EVERY_TYPE.names[:-3]], ids=["all", "flat"])
def test_every_type_and_its_statistics_are_as_the_engine_writes_them(
    store: DeltaStore, columns: list[str]
) -> None:
    def every(number: int) -> dict[str, Any]:
        return {name: value for name, value in every_value(number).items() if name in columns}

    table = store.create("t", pa.schema([EVERY_TYPE.field(name) for name in columns]))
    table.append([every(0), every(1)])
    table.splice(1, [in_file(table, 0, cut(table, 1, 1, every(2)))])
    expected = typed(table, [every(0), every(2), every(1)]).to_pylist()
    assert list(map(repr, in_order(table))) == list(map(repr, expected))
    ours = _statistics(table, 2)
    table.overwrite([every(0), every(2), every(1)])
    engines = _statistics(table, 3)
    # The engine's cut text is a bound too; ours leaves the greatest out.
    assert engines["maxValues"].pop("s") > "é" * 31
    del ours["minValues"]["s"], engines["minValues"]["s"]
    for stats in (ours, engines):
        stats["maxValues"] = {name: value for name, value in stats["maxValues"].items() if value is not None}
    assert ours == engines
    assert (
        len(table.query("s = ''").to_pylist())
        == len(table.query("t >= '2026-01-03T00:00:00Z'").to_pylist())
        == 1
    )


def _statistics(table: Table, version: int) -> dict[str, Any]:
    adds = [action["add"] for action in read_commit(table.location, version) if "add" in action]
    return json.loads(adds[0]["stats"])


def test_long_texts_stay_out_of_the_log(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("s", pa.string()), ("r", pa.struct([("s", pa.string())]))]))
    secret = {"s": "x" * 3_000, "r": {"s": "x" * 3_000}}
    table.append([secret])
    table.splice(1, [in_file(table, 0, cut(table, 0, 0, secret))])
    assert "x" * 65 not in str(read_commit(table.location, 2))
    assert len(table.query(f"s = '{'x' * 3_000}'").to_pylist()) == 2


def test_columns_kept_out_of_statistics_stay_out(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA, properties={"delta.dataSkippingStatsColumns": "`id`"})
    table.append([row(1), row(2)])
    table.splice(1, [in_file(table, 0, cut(table, 0, 1))], typed(table, [row(3)]))
    adds = [json.loads(a["add"]["stats"]) for a in read_commit(table.location, 2) if "add" in a]
    assert [set(stats["minValues"]) for stats in adds] == [{"id"}, {"id"}]


def test_the_file_says_what_its_columns_must_be(store: DeltaStore) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    table = store.create("t", schema)
    table.append([{"id": 1, "v": "x"}])
    table.splice(1, [in_file(table, 0, cut(table, 1, 1, {"id": 2, "v": None}))])
    file = pq.ParquetFile(table.location.path / paths(table)[0])
    assert file.schema_arrow == schema
    assert b"ARROW:schema" not in (file.metadata.metadata or {})


def test_files_from_before_a_column_was_added_are_spliced_too(table: Table) -> None:
    table.add_columns(pa.schema([("n", pa.int32())]))
    table.splice(4, [in_file(table, 0, cut(table, 0, 1, {**row(9), "n": 7}))])
    assert [found["n"] for found in layout(table)[paths(table)[0]]] == [7, None, None, None]


# ── Partitions ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", ["a", "ü/%=: ", "2%3D", None])
def test_a_file_stays_in_its_partition_and_rows_that_leave_it_go_to_the_end(
    store: DeltaStore, value: str | None
) -> None:
    table = store.create("t", SCHEMA, partition_by=["p"])
    table.append([row(number, value) for number in range(3)])
    table.append([row(number, "z") for number in range(3, 5)])
    table.splice(2, [in_file(table, 0, cut(table, 0, 2, row(10, "z"), row(11, value)))])
    assert in_order(table) == [row(11, value), row(2, value), row(3, "z"), row(4, "z"), row(10, "z")]
    for name, read in READERS.items():
        assert len(read(table.location.path)) == 5, name
    table.splice(3, [in_file(table, 0, cut(table, 0, 2))])
    table.vacuum(retention_hours=0)
    assert in_order(table) == [row(3, "z"), row(4, "z"), row(10, "z")]


def test_new_rows_of_several_partitions_are_all_there(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA, partition_by=["p"])
    rows = [row(number, p) for number, p in enumerate(["b", None, "a", "b"])]
    table.splice(0, [], typed(table, rows))
    assert sorted(in_order(table), key=lambda found: found["id"]) == rows


def test_a_text_that_would_be_read_as_null_is_refused(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA, partition_by=["p"])
    table.append([row(1)])
    _refused(table, LossyCastError, [in_file(table, 0, cut(table, 0, 1, row(1, "")))])


# ── What is refused ───────────────────────────────────────────────────────────────────────────────


def _refused(
    table: Table, error: type[LakehouseError], files: list[FileSplices], appended: pa.Table | None = None
) -> LakehouseError:
    """Expect exactly this error, the table as it was, and nothing left behind."""
    before = table.version(), in_order(table), entries(table)
    with pytest.raises(error) as caught:
        table.splice(table.version(), files, appended)
    assert type(caught.value) is error
    assert (table.version(), in_order(table), entries(table)) == before
    return caught.value


def test_rows_that_break_a_constraint_are_refused_wherever_they_go(table: Table) -> None:
    table.add_constraint("small", "v < 10")
    bad = row(1, v=11.0)
    found = _refused(table, ConstraintViolationError, [in_file(table, 0, cut(table, 0, 1, row(5), bad))])
    assert "Row 2 breaks constraint 'small'" in found.message
    _refused(table, ConstraintViolationError, [in_file(table, 0, cut(table, 0, 1))], typed(table, [bad]))
    table.splice(4, [in_file(table, 0, cut(table, 0, 1, row(5)))], typed(table, [row(6)]))
    assert ids(table) == [5, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 6]


def test_rows_that_do_not_fit_the_columns_are_refused(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    table.append([{"id": 1}])
    file = paths(table)[0]
    for rows, error in (
        (pa.table({"id": [1.5]}), LossyCastError),
        (pa.table({"id": ["x"]}), SchemaMismatchError),
        (pa.table({"id": [1], "more": [2]}), SchemaMismatchError),
        (pa.table({"id": pa.array([None], pa.int64())}), ConstraintViolationError),
    ):
        _refused(table, error, [FileSplices(file, (Cut(0, 1, rows),))])


def test_cuts_beyond_the_file_are_refused(table: Table) -> None:
    _refused(table, InvalidArgumentError, [in_file(table, 0, cut(table, 3, 5))])


def test_an_append_only_table_takes_appended_rows_only(table: Table) -> None:
    table.set_properties({"delta.appendOnly": "true"})
    _refused(table, ConstraintViolationError, [in_file(table, 0, cut(table, 0, 0, row(5)))])
    table.splice(4, [], typed(table, [row(30)]))
    assert ids(table)[-1] == 30


def test_a_file_with_a_deletion_vector_is_refused_and_its_neighbours_are_not(store: DeltaStore) -> None:
    home = HandmadeTable(Path(store.config.base_path) / "h").create(
        [column("id", pa.int64())], protocol=Protocol.with_features("deletionVectors")
    )
    hidden = home.add(pa.table({"id": [1, 2, 3]}), deletion_vector=inline_vector([1]))
    home.commit(1, hidden, home.add(pa.table({"id": [4, 5]})))
    table = store.table("h")
    path = hidden["add"]["path"]
    (other,) = set(paths(table)) - {path}
    with pytest.raises(UnsupportedFeatureError, match="deletion vector"):
        table.splice(1, [FileSplices(path, (cut(table, 0, 1),))])
    table.splice(1, [FileSplices(other, (cut(table, 0, 1),))])
    assert sorted(found["id"] for found in table.scan().to_pylist()) == [1, 3, 5]


def test_a_table_with_column_mapping_is_refused(store: DeltaStore) -> None:
    from deltalake import DeltaTable

    place = str(Path(store.config.base_path) / "m")
    DeltaTable.create(place, SCHEMA, configuration={"delta.columnMapping.mode": "name"})
    table = store.table("m")
    table.append([row(1)])
    with pytest.raises(UnsupportedFeatureError, match="column mapping"):
        table.splice(1, [FileSplices(paths(table)[0], (cut(table, 0, 1),))])


# ── Keys ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["index", "no index"])
def keyed(request: pytest.FixtureRequest, config: LakehouseConfig, tmp_path: Path) -> Table:
    """Keys 0 to 3 and 10 to 13 in two files."""
    index = {"key_index_path": str(tmp_path / "keys")} if request.param == "index" else {}
    table = DeltaStore(config.model_copy(update=index)).create("k", SCHEMA, primary_key=["id"])
    table.append([row(number) for number in range(4)])
    table.append([row(number) for number in range(10, 14)])
    return table


def test_a_key_may_stay_move_and_come_back(keyed: Table) -> None:
    keyed.splice(
        2,
        [
            in_file(keyed, 0, cut(keyed, 0, 1, row(0, v=9.0)), cut(keyed, 1, 2)),
            in_file(keyed, 1, cut(keyed, 0, 1), cut(keyed, 2, 2, row(1))),
        ],
        typed(keyed, [row(10)]),
    )
    assert ids(keyed) == [0, 2, 3, 11, 1, 12, 13, 10]
    _refused(keyed, DuplicateKeyError, [], typed(keyed, [row(1)]))
    keyed.splice(3, [], typed(keyed, [row(14)]))


@pytest.mark.parametrize("taken", [2, 12])
def test_a_key_of_a_row_that_stays_is_refused(keyed: Table, taken: int) -> None:
    _refused(keyed, DuplicateKeyError, [in_file(keyed, 0, cut(keyed, 0, 1, row(taken)))])
    _refused(keyed, DuplicateKeyError, [in_file(keyed, 0, cut(keyed, 0, 1))], typed(keyed, [row(taken)]))


def test_a_key_given_twice_is_refused(keyed: Table) -> None:
    _refused(keyed, DuplicateKeyError, [in_file(keyed, 0, cut(keyed, 0, 1, row(7), row(7)))])
    _refused(keyed, DuplicateKeyError, [in_file(keyed, 0, cut(keyed, 0, 1, row(7)))], typed(keyed, [row(7)]))


def test_a_key_that_somebody_appended_meanwhile_is_refused(keyed: Table) -> None:
    files = [in_file(keyed, 0, cut(keyed, 0, 1, row(50)))]
    keyed.append([row(50)])
    _refused(keyed, DuplicateKeyError, files)


# ── Beside others ─────────────────────────────────────────────────────────────────────────────────


def test_what_others_append_stays_beside_the_changes(table: Table) -> None:
    files = [in_file(table, 1, cut(table, 0, 4, row(5)))]
    table.append([row(30)])
    table.splice(3, files, typed(table, [row(40)]))
    assert ids(table) == [0, 1, 2, 3, 5, 20, 21, 22, 23, 30, 40]


def test_what_others_change_in_other_files_stays(table: Table) -> None:
    files = [in_file(table, 1, cut(table, 0, 4, row(5)))]
    table.splice(3, [in_file(table, 0, cut(table, 0, 4))])
    table.delete("id = 20")
    table.splice(3, files)
    assert sorted(ids(table)) == [5, 21, 22, 23]


@pytest.mark.parametrize(
    "rival",
    [
        lambda table: table.delete("id = 10"),
        lambda table: table.compact(),
        lambda table: table.overwrite([row(1)]),
        lambda table: table.restore(1),
        lambda table: table.delete_all(),
        lambda table: table.splice(3, [in_file(table, 1, cut(table, 3, 4))]),
    ],
    ids=["delete", "compact", "overwrite", "restore", "delete all", "splice"],
)
def test_a_touched_file_that_is_gone_is_a_conflict(table: Table, rival: Callable[[Table], object]) -> None:
    files = [in_file(table, 1, cut(table, 0, 1, row(5)))]
    rival(table)
    _refused(table, CommitConflictError, files, typed(table, [row(9)]))


def test_an_application_transaction_splices_once(table: Table) -> None:
    once = AppTransaction("edit", 1)
    files = [in_file(table, 0, cut(table, 0, 1, row(5)))]
    first = table.splice(3, files, typed(table, [row(6)]), transaction=once)
    again = table.splice(3, files, typed(table, [row(6)]), transaction=once)
    assert (first.version, again.version) == (4, 4)
    assert ids(table).count(6) == 1


def test_old_versions_and_vacuum_are_as_ever(table: Table) -> None:
    before = in_order(table)
    table.splice(3, [in_file(table, 0, cut(table, 0, 1))])
    assert sorted(map(repr, table.scan(version=3).to_pylist())) == sorted(map(repr, before))
    assert len(table.vacuum(retention_hours=0).files) == 1
    assert ids(table) == [found["id"] for found in before][1:]
    table.compact()
    assert sorted(ids(table)) == [found["id"] for found in before][1:]


def test_a_change_feed_tells_whole_files(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA, properties={"delta.enableChangeDataFeed": "true"})
    table.append([row(1), row(2)])
    table.splice(1, [in_file(table, 0, cut(table, 0, 1, row(3)))])
    told = sorted((change["_change_type"], change["id"]) for change in table.change_feed(2).to_pylist())
    assert told == [("delete", 1), ("delete", 2), ("insert", 2), ("insert", 3)]


# ── Deleting everything ───────────────────────────────────────────────────────────────────────────


def test_deleting_all_rows_rewrites_nothing_and_happens_once(table: Table) -> None:
    before = entries(table)
    done = table.delete_all(transaction=AppTransaction("edit", 1))
    assert (done.version, done.rows_deleted) == (4, 12)
    assert entries(table) == before
    assert in_order(table) == []
    table.append([row(1)])
    assert table.delete_all(transaction=AppTransaction("edit", 1)).version == 5
    assert ids(table) == [1]
