"""Constraints, properties, keys and schema evolution: what a table lets in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    ConstraintViolationError,
    DuplicateKeyError,
    InvalidNameError,
    InvalidPredicateError,
    InvalidPropertyError,
    InvalidRowsError,
    LossyCastError,
    SchemaMismatchError,
)
from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE, ids, people, refused, rows


def test_a_constraint_holds_for_append_update_merge_and_overwrite(filled: DeltaStore) -> None:
    table = filled.table("people")
    table.add_constraint("adult", "age >= 18")
    assert filled.describe("people").constraints == {"adult": "age >= 18"}
    for write in (
        lambda: table.append(people(6, age=17)),
        lambda: table.update({"age": "17"}, "id = 1"),
        lambda: table.merge(people(1, 6, age=17), on=["id"]),
        lambda: table.overwrite(people(1, age=17)),
    ):
        with refused(filled, "people", ConstraintViolationError):
            write()
    table.append(people(6, age=18))
    assert 6 in ids(filled, "people")


def test_a_constraint_that_rows_already_break_is_refused(filled: DeltaStore) -> None:
    with refused(filled, "people", ConstraintViolationError):
        filled.table("people").add_constraint("old", "age > 60")


@pytest.mark.parametrize("predicate", ["age < 100 AMD id < 0", "nope > 1", "age", "count(*) > 1"])
def test_a_constraint_is_read_whole_or_refused(filled: DeltaStore, predicate: str) -> None:
    with refused(filled, "people", InvalidPredicateError):
        filled.table("people").add_constraint("c", predicate)


def test_a_dropped_constraint_no_longer_holds(filled: DeltaStore) -> None:
    table = filled.table("people")
    table.add_constraint("adult", "age >= 18")
    table.drop_constraint("adult")
    table.append(people(6, age=1))
    assert filled.describe("people").constraints == {}


def test_dropping_a_constraint_that_is_not_there_is_refused(filled: DeltaStore) -> None:
    with refused(filled, "people", InvalidNameError, "nope"):
        filled.table("people").drop_constraint("nope")


def test_not_null_holds(store: DeltaStore) -> None:
    store.create("t", pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]))
    store.append("t", [{"id": 1, "name": "x"}])
    for write, error in (
        (lambda: store.append("t", [{"id": None, "name": "x"}]), InvalidRowsError),
        (lambda: store.append("t", [{"name": "x"}]), InvalidRowsError),
        (lambda: store.append("t", pa.table({"id": pa.array([None], pa.int64())})), ConstraintViolationError),
        (lambda: store.append("t", pa.table({"name": ["x"]})), SchemaMismatchError),
        (lambda: store.update("t", {"id": "NULL"}, None), ConstraintViolationError),
    ):
        with refused(store, "t", error, "id"):
            write()


def test_an_append_only_table_refuses_to_lose_rows(store: DeltaStore) -> None:
    store.create("log", PEOPLE, properties={"delta.appendOnly": "true"})
    store.append("log", people(1))
    for write in (
        lambda: store.delete("log", "id = 1"),
        lambda: store.update("log", {"age": "1"}, "id = 1"),
        lambda: store.overwrite("log", people(2)),
    ):
        with refused(store, "log", ConstraintViolationError):
            write()
    store.append("log", people(2))
    store.compact("log")
    assert ids(store, "log") == [1, 2]


def test_properties_are_set_and_shown(filled: DeltaStore) -> None:
    filled.table("people").set_properties({"delta.checkpointInterval": "20"})
    assert filled.describe("people").properties["delta.checkpointInterval"] == "20"


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.checkpointInterval": "often"},
        {"delta.logRetentionDuration": "rubbish"},
        {"delta.enableDeletionVectors": "true"},
        {"delta.columnMapping.mode": "name"},
        {"delta.feature.rowTracking": "supported"},
        {"delta.made.up": "1"},
    ],
)
def test_a_property_that_is_unknown_or_harmful_is_refused(
    filled: DeltaStore, properties: dict[str, str]
) -> None:
    with refused(filled, "people", InvalidPropertyError):
        filled.table("people").set_properties(properties)


@pytest.fixture
def keyed(store: DeltaStore) -> DeltaStore:
    """A table whose key is (id, part), with three rows."""
    schema = Schema([Field("id", "Int64"), Field("part", "String"), Field("x", "Int32")], ("id", "part"))
    store.create("t", schema)
    store.append(
        "t", [{"id": 1, "part": "a", "x": 1}, {"id": 1, "part": "b", "x": 1}, {"id": 2, "part": "a", "x": 1}]
    )
    return store


def test_a_declared_key_holds_for_every_write(keyed: DeltaStore) -> None:
    known, fresh = {"id": 1, "part": "b", "x": 2}, {"id": 3, "part": "a", "x": 2}
    for write in (
        lambda: keyed.append("t", [fresh, known]),
        lambda: keyed.append("t", [fresh, fresh]),
        lambda: keyed.overwrite("t", [fresh, fresh]),
        lambda: keyed.overwrite_where(
            "t", "id = 2", [{"id": 2, "part": "z", "x": 1}, {"id": 2, "part": "z", "x": 2}]
        ),
        lambda: keyed.merge("t", [fresh, fresh]),
    ):
        with refused(keyed, "t", DuplicateKeyError):
            write()
    keyed.append("t", [fresh])
    assert len(rows(keyed, "t")) == 4


def test_a_key_is_never_null(keyed: DeltaStore) -> None:
    for write in (keyed.append, keyed.overwrite, keyed.merge):
        with refused(keyed, "t", InvalidRowsError, "id"):
            write("t", [{"id": None, "part": "a", "x": 1}])


def test_a_key_is_never_updated(keyed: DeltaStore) -> None:
    with refused(keyed, "t", SchemaMismatchError, "part"):
        keyed.update("t", {"part": "'same'"}, "id = 1")


def test_a_deleted_key_may_come_back(keyed: DeltaStore) -> None:
    keyed.delete("t", "id = 2")
    keyed.append("t", [{"id": 2, "part": "a", "x": 5}])
    assert len(rows(keyed, "t")) == 3


def test_a_key_survives_compaction_and_restore(keyed: DeltaStore) -> None:
    keyed.append("t", [{"id": 9, "part": "a", "x": 1}])
    keyed.compact("t")
    with refused(keyed, "t", DuplicateKeyError):
        keyed.append("t", [{"id": 9, "part": "a", "x": 1}])
    keyed.restore("t", 1)
    keyed.append("t", [{"id": 9, "part": "a", "x": 1}])
    assert keyed.table("t").primary_key() == ("id", "part")


def test_a_key_can_be_declared_later_if_it_is_one(filled: DeltaStore) -> None:
    filled.table("people").set_primary_key(["id"])
    assert filled.table("people").primary_key() == ("id",)
    with refused(filled, "people", DuplicateKeyError):
        filled.append("people", people(5))


def test_columns_that_repeat_or_are_not_there_cannot_become_the_key(filled: DeltaStore) -> None:
    with refused(filled, "people", DuplicateKeyError):
        filled.table("people").set_primary_key(["age"])
    with refused(filled, "people", SchemaMismatchError):
        filled.table("people").set_primary_key(["nope"])


def test_new_columns_come_only_when_asked_for(filled: DeltaStore) -> None:
    wider = [{"id": 6, "name": "n6", "age": 1, "city": "Ulm"}]
    with refused(filled, "people", InvalidRowsError, "city"):
        filled.append("people", wider)
    with refused(filled, "people", SchemaMismatchError, "city"):
        filled.append("people", pa.Table.from_pylist(wider))
    filled.append("people", wider, evolve=True)
    assert filled.table("people").arrow_schema() == PEOPLE.append(pa.field("city", pa.string()))
    assert rows(filled, "people", predicate="id <= 1")[0]["city"] is None


def test_merge_and_overwrite_evolve_when_asked(filled: DeltaStore) -> None:
    filled.merge("people", [{"id": 1, "name": "n1", "age": 1, "city": "Ulm"}], on=["id"], evolve=True)
    assert rows(filled, "people", predicate="id = 1")[0]["city"] == "Ulm"
    filled.overwrite("people", [{"id": 1, "name": "n1", "age": 1, "city": "Ulm", "zip": 1}], evolve=True)
    assert filled.table("people").arrow_schema().names == ["id", "name", "age", "city", "zip"]


def test_a_new_column_may_stand_in_any_row(filled: DeltaStore) -> None:
    data = [{"id": 6}, {"id": 7, "city": "Ulm"}, {"id": 8, "zip": 89073}]
    filled.append("people", data, evolve=True)
    found = rows(filled, "people", columns=["id", "city", "zip"], predicate="id > 5")
    assert found == [
        {"id": 6, "city": None, "zip": None},
        {"id": 7, "city": "Ulm", "zip": None},
        {"id": 8, "city": None, "zip": 89_073},
    ]


@pytest.mark.parametrize("value", ["text", 1.5])
def test_evolving_never_changes_a_type(filled: DeltaStore, value: object) -> None:
    row = {"id": value, "name": "x", "age": 1}
    with refused(filled, "people", InvalidRowsError):
        filled.append("people", [row], evolve=True)
    with refused(filled, "people", SchemaMismatchError if value == "text" else LossyCastError):
        filled.append("people", pa.Table.from_pylist([row]), evolve=True)


def test_evolving_refuses_a_column_that_differs_only_in_case(filled: DeltaStore) -> None:
    with refused(filled, "people", SchemaMismatchError):
        filled.append("people", [{"id": 6, "NAME": "x"}], evolve=True)


def test_columns_can_be_added_without_rows(filled: DeltaStore) -> None:
    filled.table("people").add_columns(Schema([Field("city", "String")]))
    assert filled.table("people").arrow_schema().names == ["id", "name", "age", "city"]
    assert rows(filled, "people")[0]["city"] is None


@pytest.mark.parametrize(
    "field", [Field("id", "Int64"), Field("NAME", "String"), Field("n", "Int64", nullable=False)]
)
def test_a_column_that_exists_or_would_lock_the_table_is_refused(filled: DeltaStore, field: Field) -> None:
    with refused(filled, "people", SchemaMismatchError):
        filled.table("people").add_columns(Schema([field]))
