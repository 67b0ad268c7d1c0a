"""One opened version: its files in order, their rows as every feature of Delta leaves them, and what follows it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_platform.errors import DataFilesMissingError, LakehouseError, TableNotFoundError
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.model.times import to_epoch_ms
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.deletion_vectors import file_vector, inline_vector
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column, mapped, remove
from lakehouse_platform_tests.support.tables import PEOPLE, forget_history, people

_NUMBER = [column("id", pa.int64())]


@pytest.fixture
def foreign(tmp_path: Path) -> HandmadeTable:
    table = HandmadeTable(tmp_path / "lake" / "t")
    table.path.mkdir(parents=True)
    return table


@pytest.fixture
def table(store: DeltaStore) -> Table:
    return store.table("t")


def numbers(*values: int, name: str = "id") -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64())})


def rows(pinned: Pinned, path: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of one file, or of all in their order."""
    paths = [path] if path else [file.path for file in pinned.files]
    batches = [batch for one in paths for batch in pinned.read_rows(one)]
    return pa.Table.from_batches(batches, pinned.schema).to_pylist()


def ids(pinned: Pinned) -> list[int]:
    return [row["id"] for row in rows(pinned)]


def assert_same(stepped: Pinned, table: Table) -> None:
    """The version made from the log's entries is the one that the engine opens."""
    opened = Pinned.open(table)
    assert stepped == opened
    assert [file.path for file in stepped.files] == [file.path for file in opened.files]
    assert [(file.size, file.rows) for file in stepped.files] == [
        (file.size, file.rows) for file in opened.files
    ]
    assert [dict(file.partition) for file in stepped.files] == [dict(file.partition) for file in opened.files]
    assert rows(stepped) == rows(opened)


# ── Rows ──────────────────────────────────────────────────────────────────────────────────────────────


def test_files_come_in_the_order_of_their_time_and_then_their_path(
    foreign: HandmadeTable, table: Table
) -> None:
    adds = [
        foreign.add(numbers(number), name=name)
        for number, name in ((1, "b"), (2, "a"), (3, "late"), (4, "z"))
    ]
    adds[2]["add"]["modificationTime"] += 1
    foreign.create(_NUMBER, *adds)
    assert ids(Pinned.open(table)) == [2, 1, 4, 3]


@pytest.mark.parametrize("kind", ["inline", "file"])
def test_rows_of_a_deletion_vector_are_left_out(foreign: HandmadeTable, table: Table, kind: str) -> None:
    gone = [0, 3, 9]
    vector = inline_vector(gone) if kind == "inline" else file_vector(foreign.path, gone)
    add = foreign.add(numbers(*range(10)), name="p x/ü.parquet", log_path="p%20x/%C3%BC.parquet")
    marked = {"add": {**add["add"], "deletionVector": vector}}
    foreign.create(_NUMBER, add, protocol=Protocol.with_features("deletionVectors"))
    before = Pinned.open(table)
    foreign.commit(1, remove(add), marked)
    after = before.newer()
    assert (ids(before), before.files[0].rows) == (list(range(10)), 10)
    assert (ids(after), after.files[0].rows) == ([1, 2, 4, 5, 6, 7, 8], 7)
    assert before.files[0].token != after.files[0].token


def test_a_vector_over_several_batches_hits_the_right_rows(foreign: HandmadeTable, table: Table) -> None:
    count = 200_000
    gone = [0, 65_535, 65_536, 131_071, 199_999]
    add = foreign.add(numbers(*range(count)), deletion_vector=inline_vector(gone), row_group_size=50_000)
    foreign.create(_NUMBER, add, protocol=Protocol.with_features("deletionVectors"))
    assert ids(Pinned.open(table)) == [number for number in range(count) if number not in gone]


def test_columns_have_their_own_names_in_files_with_column_mapping_at_any_depth(
    foreign: HandmadeTable, table: Table
) -> None:
    inner = pa.struct([("x", pa.int64()), ("new", pa.string())])
    fields = [
        mapped("id", pa.int64(), 1, "col-a"),
        mapped("s", inner, 2, "col-s"),
        mapped("l", pa.list_(inner), 3, "col-l"),
        mapped("p", pa.string(), 4, "col-p"),
        mapped("later", pa.float64(), 5, "col-later"),
    ]
    for start, part in ((0, fields[1]["type"]), (5, fields[2]["type"]["elementType"])):
        for number, field in enumerate(part["fields"]):
            field["metadata"] = {
                "delta.columnMapping.physicalName": f"in-{number}",
                "delta.columnMapping.id": 10 + start + number,
            }
    stored = pa.struct([("in-0", pa.int32())])
    data = pa.table(
        {
            "col-dropped": [7, 7, 7],
            "col-a": [1, 2, 3],
            "col-s": pa.array([{"in-0": 1}, None, {"in-0": None}], stored),
            "col-l": pa.array([[{"in-0": 5}, None], None, []], pa.list_(stored)),
        }
    )
    add = foreign.add(data, partition_values={"col-p": "v"})
    foreign.create(
        fields,
        add,
        protocol=Protocol.with_features("columnMapping"),
        partition_by=["p"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    common = {"p": "v", "later": None}
    assert rows(Pinned.open(table)) == [
        {"id": 1, "s": {"x": 1, "new": None}, "l": [{"x": 5, "new": None}, None], **common},
        {"id": 2, "s": None, "l": None, **common},
        {"id": 3, "s": {"x": None, "new": None}, "l": [], **common},
    ]


def test_partition_values_of_every_type_are_put_into_the_rows(store: DeltaStore) -> None:
    row = {
        "n": 1,
        "text": "a b/ü",
        "whole": -5,
        "flag": True,
        "day": date(2026, 2, 1),
        "time": datetime(2026, 2, 1, 12, 0, 0, 5, UTC),
        "money": Decimal("1.50"),
        "real": 0.5,
    }
    kinds = {
        "n": pa.int64(), "text": pa.string(), "whole": pa.int32(), "flag": pa.bool_(), "day": pa.date32(),
        "time": pa.timestamp("us", "UTC"), "money": pa.decimal128(10, 2), "real": pa.float64(),
    }  # fmt: skip
    table = store.create("t", pa.schema(list(kinds.items())), partition_by=list(kinds)[1:])
    pinned = Pinned.open(table)
    table.append([row])
    table.append([{"n": 2}])
    assert rows(pinned.newer()) == [row, dict.fromkeys(kinds) | {"n": 2}]
    assert_same(pinned.newer(), table)


def test_a_table_of_partition_columns_only_has_its_rows(foreign: HandmadeTable, table: Table) -> None:
    data = pa.table({"other": [1, 2, 3]})
    foreign.create(
        [column("p", pa.string())], foreign.add(data, partition_values={"p": "x"}), partition_by=["p"]
    )
    assert rows(Pinned.open(table)) == [{"p": "x"}] * 3


def test_columns_that_came_later_are_null_in_older_files(store: DeltaStore) -> None:
    table = store.create("t", PEOPLE)
    table.append(people(1))
    table.add_columns(pa.schema([("note", pa.string())]))
    table.append([{"id": 2, "note": "x"}])
    assert [(row["id"], row["note"]) for row in rows(Pinned.open(table))] == [(1, None), (2, "x")]


def test_values_come_in_the_tables_type_whatever_the_file_has(foreign: HandmadeTable, table: Table) -> None:
    fields = [column("id", pa.int64()), column("v", pa.string()), column("t", pa.timestamp("us", "UTC"))]
    data = pa.table(
        {
            "id": pa.array([1], pa.int16()),
            "v": pa.array(["x"]).dictionary_encode(),
            "t": pa.array([10**9], pa.timestamp("ns", "UTC")),
        }
    )
    foreign.create(fields, foreign.add(data))
    pinned = Pinned.open(table)
    (batch,) = pinned.read_rows(pinned.files[0].path)
    assert batch.schema.types == pinned.schema.types
    assert batch.to_pylist() == [{"id": 1, "v": "x", "t": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}]


def test_wide_rows_come_in_small_batches(foreign: HandmadeTable, table: Table) -> None:
    data = pa.table({"v": [f"{number:06}" * 50_000 for number in range(100)]})
    foreign.create([column("v", pa.string())], foreign.add(data, compression="none", use_dictionary=False))
    pinned = Pinned.open(table)
    sizes = [batch.nbytes for batch in pinned.read_rows(pinned.files[0].path)]
    assert sum(sizes) > 30_000_000
    assert max(sizes) < 20_000_000


def test_files_of_a_shallow_clone_are_read_where_they_are(
    foreign: HandmadeTable, table: Table, tmp_path: Path
) -> None:
    origin = HandmadeTable(tmp_path / "origin")
    origin.path.mkdir()
    add = origin.add(numbers(1, 2), name="data.parquet")
    add["add"]["path"] = (origin.path / "data.parquet").as_uri()
    foreign.create(_NUMBER, add)
    assert ids(Pinned.open(table)) == [1, 2]


def test_a_missing_file_is_an_error(foreign: HandmadeTable, table: Table) -> None:
    foreign.create(_NUMBER, foreign.add(numbers(1), name="a.parquet"))
    pinned = Pinned.open(table)
    (foreign.path / "a.parquet").unlink()
    with pytest.raises(DataFilesMissingError):
        list(pinned.read_rows("a.parquet"))
    with pytest.raises(DataFilesMissingError):
        pinned.file("b.parquet")


# ── The next version ──────────────────────────────────────────────────────────────────────────────────


def test_each_kind_of_commit_leads_to_the_version_that_the_engine_opens(store: DeltaStore) -> None:
    table = store.create("t", PEOPLE, primary_key=["id"])
    steps = [
        lambda: table.append(people(1, 2)),
        lambda: table.append(people(3)),
        lambda: table.delete("id = 1"),
        lambda: table.update({"age": "5"}, "id = 2"),
        lambda: table.merge(people(3, 4), on=["id"]),
        table.compact,
        lambda: table.set_properties({"delta.appendOnly": "false"}),
        lambda: table.add_columns(pa.schema([("note", pa.string())])),
        lambda: table.add_constraint("positive", "id > 0"),
        lambda: table.overwrite(people(9)),
        lambda: table.restore(3),
        table.checkpoint,
    ]
    pinned = Pinned.open(table)
    for step in steps:
        step()
        pinned = pinned.newer()
        assert pinned.is_newest()
        assert_same(pinned, table)


def test_many_commits_at_once_are_caught_up_with(store: DeltaStore) -> None:
    table = store.create("t", PEOPLE)
    pinned = Pinned.open(table)
    for number in range(40):
        table.append(people(number))
    assert_same(pinned.newer(), table)


@pytest.mark.parametrize("directory", ["p=a%20b", "p=ü", "p=%c3%bc", "p=%25"])
def test_paths_are_those_of_the_log_however_they_are_written(
    foreign: HandmadeTable, table: Table, directory: str
) -> None:
    foreign.create(_NUMBER)
    pinned = Pinned.open(table)
    add = foreign.add(numbers(1), name=f"{unquote(directory)}/a.parquet", log_path=f"{directory}/a.parquet")
    foreign.commit(1, add)
    assert_same(pinned.newer(), table)
    foreign.commit(2, remove(add))
    assert_same(pinned.newer().newer(), table)


def test_an_unchanged_table_keeps_its_object(store: DeltaStore) -> None:
    table = store.create("t", PEOPLE)
    pinned = Pinned.open(table)
    assert pinned.newer() is pinned


def test_a_table_made_anew_is_another_one(store: DeltaStore) -> None:
    table = store.create("t", PEOPLE)
    pinned = Pinned.open(table)
    table.drop()
    assert not pinned.is_newest()
    with pytest.raises(TableNotFoundError):
        pinned.newer()
    store.create("t", PEOPLE)
    again = pinned.newer()
    assert (again.version, again.table_id != pinned.table_id) == (pinned.version, True)
    assert again.reader.fingerprint != pinned.reader.fingerprint


def test_a_version_without_its_log_entry_still_knows_when_it_is_gone(store: DeltaStore) -> None:
    table = store.create("t", PEOPLE)
    table.append(people(1))
    forget_history(store, "t")
    (table.location.path / "_delta_log" / f"{table.version():020}.json").unlink()
    pinned = Pinned.open(table)
    assert (pinned.is_newest(), ids(pinned)) == (True, [1])
    assert pinned.committed_ns == pinned.files[0].modified_ms * 1_000_000
    table.drop()
    assert not pinned.is_newest()


def test_an_old_version_can_be_opened(store: DeltaStore) -> None:
    table = store.create("t", PEOPLE)
    table.append(people(1))
    table.append(people(2))
    pinned = Pinned.open(table, 1)
    assert (pinned.version, ids(pinned), pinned.is_newest()) == (1, [1], False)
    assert pinned.committed_ns == to_epoch_ms(table.history()[1].timestamp) * 1_000_000


def test_it_works_at_every_place(place: Location, config: LakehouseConfig) -> None:
    table = Table(place, config, Origin())
    table.create(PEOPLE, partition_by=["age"])
    pinned = Pinned.open(table)
    assert pinned.is_newest()
    table.append(people(1, 2))
    assert not pinned.is_newest()
    assert_same(pinned.newer(), table)
    newest = pinned.newer()
    raw = newest.raw(newest.files[0].path)
    data = raw.read_bytes() if isinstance(raw, Path) else raw.read()
    assert pq.read_table(pa.BufferReader(data)).num_rows == 2
    table.drop()
    assert not newest.is_newest()
    with pytest.raises(LakehouseError):
        newest.newer()
