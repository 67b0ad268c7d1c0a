"""What our store wrote, read by engines that know nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import LossyCastError
from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.interop.readers import READERS
from lakehouse_platform_tests.support.tables import PEOPLE, forget_history, in_order, people, rows

_Change = Callable[[DeltaStore], object]


def _transaction(store: DeltaStore) -> None:
    with store.transaction("people") as tx:
        tx.append(people(50, 51))
        tx.delete("id = 2")
        tx.update({"age": "7"}, "id = 3")


def _cleaned(store: DeltaStore) -> None:
    store.compact("people")
    store.vacuum("people", retention_hours=0)
    forget_history(store, "people")


CHANGES: dict[str, _Change] = {
    "append": lambda store: store.append("people", people(8, 9)),
    "overwrite": lambda store: store.overwrite("people", people(8, 9)),
    "overwrite_where": lambda store: store.overwrite_where("people", "id > 3", people(4, age=1)),
    "delete": lambda store: store.delete("people", "id = 2"),
    "update": lambda store: store.update("people", {"age": "age + 1"}, "id > 2"),
    "merge": lambda store: store.merge("people", people(1, 9, age=1), on=["id"]),
    "compact": lambda store: store.compact("people"),
    "z_order": lambda store: store.z_order("people", ["id", "age"]),
    "restore": lambda store: store.restore("people", 1),
    "constraint": lambda store: store.table("people").add_constraint("adult", "age >= 18"),
    "key": lambda store: store.table("people").set_primary_key(["id"]),
    "property": lambda store: store.table("people").set_properties({"delta.checkpointInterval": "5"}),
    "column": lambda store: store.append("people", [{"id": 9, "city": "Ulm"}], evolve=True),
    "checkpoint": lambda store: store.table("people").checkpoint(),
    "transaction": _transaction,
    "cleaned": _cleaned,
}


@pytest.fixture
def filled(store: DeltaStore) -> DeltaStore:
    """Rows 1 to 6 in two files."""
    store.create("people", PEOPLE)
    store.append("people", people(1, 2, 3))
    store.append("people", people(4, 5, 6))
    return store


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_ours_is_read_right(filled: DeltaStore, change: str, reader: str) -> None:
    CHANGES[change](filled)
    found = READERS[reader](_path(filled, "people"))
    assert in_order(found) == rows(filled, "people")


@pytest.mark.parametrize("reader", READERS)
def test_old_versions_are_read_right(filled: DeltaStore, reader: str) -> None:
    filled.delete("people", "id < 4")
    found = READERS[reader](_path(filled, "people"), version=1)
    assert sorted(row["id"] for row in found) == [1, 2, 3]


@pytest.mark.parametrize("reader", READERS)
def test_an_empty_table_is_read_right(store: DeltaStore, reader: str) -> None:
    store.create("people", PEOPLE)
    assert READERS[reader](_path(store, "people")) == []


_TYPES: dict[str, Any] = {
    "Int8": -128,
    "Int16": 32_767,
    "Int32": -(2**31),
    "Int64": 2**63 - 1,
    "Float32": 0.5,
    "Float64": 5e-324,
    "String": "ü🙂 'x' \n",
    "Boolean": True,
    "Date32": date(1582, 10, 20),
    "Timestamp": datetime(2026, 2, 1, 12, 0, 0, 1, tzinfo=UTC),
    "Binary": b"\x00\xff",
    "Decimal(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "List<Int32>": [1, None, 3],
    "Struct<a:Int32,b:List<String>>": {"a": 1, "b": ["x", None]},
}


@pytest.mark.parametrize("reader", READERS)
def test_every_type_is_read_right(store: DeltaStore, reader: str) -> None:
    store.create("t", Schema([Field(f"c{n}", text) for n, text in enumerate(_TYPES)]))
    full = {f"c{n}": value for n, value in enumerate(_TYPES.values())}
    empty = dict.fromkeys(full)
    store.append("t", [full, empty])
    assert in_order(READERS[reader](_path(store, "t"))) == in_order([full, empty])


@pytest.mark.parametrize("reader", READERS)
def test_times_without_a_zone_are_read_right(store: DeltaStore, reader: str) -> None:
    store.create("t", Schema([Field("at", "TimestampNtz")]))
    local = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 - a time that Berlin's clocks skip
    store.append("t", [{"at": local}])
    assert READERS[reader](_path(store, "t")) == [{"at": local}]


@pytest.mark.parametrize("reader", READERS)
def test_maps_are_read_right(store: DeltaStore, reader: str) -> None:
    store.create("t", Schema([Field("m", "Map<String,Int64>")]))
    store.append("t", pa.table({"m": pa.array([[("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int64()))}))
    (row,) = READERS[reader](_path(store, "t"))
    assert dict(row["m"]) == {"a": 1, "b": None}


@pytest.mark.parametrize("reader", READERS)
def test_partitions_are_read_right(store: DeltaStore, reader: str) -> None:
    store.create(
        "t",
        pa.schema([("id", pa.int64()), ("p", pa.string()), ("day", pa.date32())]),
        partition_by=["p", "day"],
    )
    values = ["a b", "ü/%=:", "2%3D", "NULL", "..", "it's", "🙂", None]
    data = [
        {"id": n, "p": value, "day": date(2026, 1, n + 1) if n else None} for n, value in enumerate(values)
    ]
    store.append("t", data)
    store.delete("t", "id = 3")
    store.compact("t")
    expected = [row for row in data if row["id"] != 3]
    assert sorted(READERS[reader](_path(store, "t")), key=lambda row: row["id"]) == expected


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_partition_value_that_others_read_as_null_is_refused(store: DeltaStore, value: str) -> None:
    store.create("t", pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_by=["p"])
    store.append("t", [{"id": 1, "p": "x"}])
    for write in (
        lambda: store.append("t", [{"id": 2, "p": value}]),
        lambda: store.overwrite("t", [{"id": 2, "p": value}]),
        lambda: store.overwrite_where("t", "id = 1", [{"id": 1, "p": value}]),
        lambda: store.merge("t", [{"id": 1, "p": value}], on=["id"]),
    ):
        with pytest.raises(LossyCastError, match="NULL"):
            write()
    assert rows(store, "t") == [{"id": 1, "p": "x"}]


def _path(store: DeltaStore, name: str) -> Path:
    return Path(store.table(name).location.uri)
