from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    InvalidNameError,
    InvalidPropertyError,
    InvalidSchemaTextError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import TableSpec
from lakehouse_platform_tests.support.tables import PEOPLE, ids, people, refused, rows


def test_an_empty_store_lists_no_table(store: DeltaStore) -> None:
    assert store.tables() == []


def test_created_tables_are_listed_in_order_of_their_names(store: DeltaStore) -> None:
    for name in ("b", "a.2", "A", "a"):
        store.create(name, PEOPLE)
    assert store.tables() == sorted(["b", "a.2", "A", "a"])


def test_a_new_table_has_version_0_no_rows_and_the_schema_it_was_given(store: DeltaStore) -> None:
    table = store.create("people", PEOPLE)
    assert (table.version(), rows(store, "people"), table.arrow_schema()) == (0, [], PEOPLE)


def test_a_table_is_created_from_our_own_schema_with_its_key(store: DeltaStore) -> None:
    schema = Schema([Field("id", "Int64", nullable=False), Field("tags", "List<String>")], primary_key=["id"])
    table = store.create("t", schema)
    assert table.primary_key() == ("id",)
    assert table.arrow_schema().field("id").nullable is False
    assert table.arrow_schema().field("tags").type == pa.list_(pa.string())


def test_describe_tells_what_a_table_is(store: DeltaStore) -> None:
    store.create(
        "events",
        pa.schema([("id", pa.int64()), ("day", pa.date32())]),
        partition_by=["day"],
        properties={"delta.appendOnly": "true"},
        description="What happened",
    )
    info = store.describe("events")
    assert (info.name, info.version, info.rows, info.files) == ("events", 0, 0, 0)
    assert (info.partition_columns, info.description) == (("day",), "What happened")
    assert info.properties["delta.appendOnly"] == "true"
    assert [column.name for column in info.columns] == ["id", "day"]


def test_describe_counts_rows_files_and_bytes(filled: DeltaStore) -> None:
    filled.append("people", people(6))
    info = filled.describe("people")
    assert (info.rows, info.files, info.version) == (6, 2, 2)
    assert info.bytes == sum(file.size for file in filled.table("people").data_files())


def test_describe_never_shows_credentials(filled: DeltaStore) -> None:
    secrets = [value for key, value in filled.config.plain_storage_options.items() if "KEY" in key]
    shown = str(filled.describe("people").to_dict()) + repr(filled.table("people")) + repr(filled)
    assert not [secret for secret in secrets if secret in shown]


def test_open_returns_a_table_that_exists(filled: DeltaStore) -> None:
    assert filled.open("people").version() == 1


@pytest.mark.parametrize("name", ["absent", "people2", "PEOPLE"])
def test_an_unknown_table_is_named_in_the_error(filled: DeltaStore, name: str) -> None:
    for operation in (
        lambda: filled.open(name),
        lambda: filled.describe(name),
        lambda: filled.append(name, people(1)),
        lambda: filled.delete(name, "id = 1"),
        lambda: filled.scan(name).to_pylist(),
        lambda: filled.history(name),
        lambda: filled.drop(name),
    ):
        with pytest.raises(TableNotFoundError, match=name):
            operation()
    assert filled.tables() == ["people"]


def test_creating_a_table_twice_is_refused(filled: DeltaStore) -> None:
    with refused(filled, "people", TableExistsError, "people"):
        filled.create("people", PEOPLE)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ü", "a%20b", "-a", "a.", "x" * 129, "a\n"])
def test_a_name_that_readers_break_on_is_refused(store: DeltaStore, name: str) -> None:
    with pytest.raises(InvalidNameError):
        store.create(name, PEOPLE)
    assert store.tables() == []


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (pa.schema([]), SchemaMismatchError),
        (pa.schema([("a", pa.int64()), ("A", pa.int64())]), SchemaMismatchError),
        (pa.schema([("a", pa.duration("us"))]), InvalidSchemaTextError),
        (pa.schema([("a", pa.float16())]), InvalidSchemaTextError),
        (pa.schema([("a", pa.list_(pa.time64("us")))]), InvalidSchemaTextError),
        (Schema([Field("a", "Strin")]), InvalidSchemaTextError),
        (Schema([Field("a", "String")], primary_key=["b"]), InvalidSchemaTextError),
    ],
)
def test_a_bad_schema_creates_nothing(store: DeltaStore, schema: pa.Schema, error: type[Exception]) -> None:
    with pytest.raises(error):
        store.create("t", schema)
    assert store.tables() == []


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableDeletionVectors": "true"},
        {"delta.feature.identityColumns": "supported"},
        {"delta.logRetentionDuration": "rubbish"},
        {"delta.appendOnly": "maybe"},
        {"delta.noSuchProperty": "1"},
    ],
)
def test_a_property_that_would_break_the_table_creates_nothing(
    store: DeltaStore, properties: dict[str, str]
) -> None:
    with pytest.raises(InvalidPropertyError):
        store.create("t", PEOPLE, properties=properties)
    assert store.tables() == []


@pytest.mark.parametrize("columns", [["nope"], ["id", "id"], ["id", "name", "age"]])
def test_partition_columns_must_be_some_of_the_columns(store: DeltaStore, columns: list[str]) -> None:
    with pytest.raises(SchemaMismatchError):
        store.create("t", PEOPLE, partition_by=columns)
    assert store.tables() == []


def test_a_dropped_table_is_gone_and_its_name_is_free(filled: DeltaStore) -> None:
    filled.drop("people")
    assert filled.tables() == []
    with pytest.raises(TableNotFoundError):
        filled.open("people")
    filled.create("people", PEOPLE)
    assert rows(filled, "people") == []


def test_dropping_one_table_leaves_the_others(filled: DeltaStore) -> None:
    filled.create("people2", PEOPLE)
    filled.append("people2", people(7))
    filled.drop("people")
    assert (filled.tables(), ids(filled, "people2")) == (["people2"], [7])


def test_ensure_creates_once_and_then_finds(store: DeltaStore) -> None:
    spec = TableSpec(name="t", description="", schema=PEOPLE, primary_key=("id",))
    store.ensure(spec)
    store.append("t", people(1))
    assert store.ensure(spec).version() == 1
    assert ids(store, "t") == [1]


def test_a_table_anywhere_is_reached_with_the_same_settings(filled: DeltaStore) -> None:
    table = filled.at(filled.table("people").location.uri)
    assert table.version() == 1
    assert len(table.scan().to_pylist()) == 5
