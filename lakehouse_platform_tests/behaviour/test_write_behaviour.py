from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    DuplicateKeyError,
    InvalidPredicateError,
    InvalidRowsError,
    LossyCastError,
    SchemaMismatchError,
)
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE, ids, in_order, people, refused, rows

ARROW = pa.Table.from_pylist(people(7, 8), schema=PEOPLE)


@pytest.mark.parametrize(
    "data",
    [
        people(7, 8),
        ARROW,
        ARROW.to_batches()[0],
        ARROW.to_reader(),
        pl.from_arrow(ARROW),
        pd.DataFrame({"id": [7, 8], "name": ["n7", "n8"], "age": [30, 30]}),
        (row for row in people(7, 8)),
    ],
    ids=["rows", "table", "batch", "reader", "polars", "pandas", "generator"],
)
def test_every_kind_of_data_can_be_appended(place: Any, store: DeltaStore, data: Any) -> None:
    if isinstance(data, pa.RecordBatchReader):
        data = ARROW.to_reader()
    elif not hasattr(data, "__len__"):
        data = (row for row in people(7, 8))
    store.create("people", PEOPLE)
    assert store.append("people", data) == 1
    assert rows(store, "people") == in_order(people(7, 8))


@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_table_streams_into_another(filled: DeltaStore, key: tuple[str, ...]) -> None:
    filled.create("copy", Schema.from_arrow(PEOPLE, primary_key=key))
    for write in (filled.append, filled.overwrite):
        write("copy", filled.scan("people").reader())
        assert rows(filled, "copy") == rows(filled, "people")


def test_a_stream_into_a_keyed_table_is_checked_whole(filled: DeltaStore) -> None:
    filled.table("people").set_primary_key(["id"])
    for new in ([7, 7], [8, 5]):
        with refused(filled, "people", DuplicateKeyError):
            filled.append("people", pa.Table.from_pylist(people(*new), schema=PEOPLE).to_reader())


def test_each_append_makes_one_version(filled: DeltaStore) -> None:
    assert [filled.append("people", people(n)) for n in (6, 7, 8)] == [2, 3, 4]


def test_appending_nothing_makes_no_version(filled: DeltaStore) -> None:
    assert filled.append("people", []) == 1
    assert filled.append("people", ARROW.slice(0, 0)) == 1


def test_columns_are_matched_by_name_and_missing_nullable_ones_are_null(filled: DeltaStore) -> None:
    filled.append("people", [{"name": "x", "id": 9}])
    assert rows(filled, "people", predicate="id = 9") == [{"id": 9, "name": "x", "age": None}]


def test_five_thousand_rows_in_one_call_all_arrive(filled: DeltaStore) -> None:
    filled.append("people", people(*range(1_000, 6_000)))
    assert ids(filled, "people", predicate="id >= 1000") == list(range(1_000, 6_000))


def test_the_same_application_transaction_is_written_once(filled: DeltaStore) -> None:
    table = filled.table("people")
    first = table.append(people(6), transaction=AppTransaction("loader", 1))
    again = table.append(people(6), transaction=AppTransaction("loader", 1))
    assert again == first
    table.append(people(7), transaction=AppTransaction("loader", 2))
    assert ids(filled, "people") == [1, 2, 3, 4, 5, 6, 7]


def test_overwrite_replaces_every_row_in_one_version(filled: DeltaStore) -> None:
    assert filled.overwrite("people", people(9)) == 2
    assert ids(filled, "people") == [9]


def test_overwrite_with_nothing_empties_the_table(filled: DeltaStore) -> None:
    filled.overwrite("people", [])
    assert rows(filled, "people") == []
    assert filled.table("people").arrow_schema() == PEOPLE


def test_overwrite_where_replaces_only_the_rows_that_match(filled: DeltaStore) -> None:
    filled.append("people", [{"id": None, "name": "null", "age": 1}])
    filled.overwrite_where("people", "id >= 4", people(5, 6, age=1))
    assert sorted((row["id"] or 0, row["age"]) for row in rows(filled, "people")) == [
        (0, 1), (1, 30), (2, 30), (3, 30), (5, 1), (6, 1),
    ]  # fmt: skip


def test_overwrite_where_refuses_rows_outside_its_predicate(filled: DeltaStore) -> None:
    with refused(filled, "people", InvalidRowsError, "id >= 4"):
        filled.overwrite_where("people", "id >= 4", people(1))


def test_delete_removes_what_matches_and_counts_it(filled: DeltaStore) -> None:
    result = filled.delete("people", "id IN (1, 2) OR name = 'n5'")
    assert (result.version, result.rows_deleted) == (2, 3)
    assert ids(filled, "people") == [3, 4]


def test_delete_of_nothing_makes_no_version(filled: DeltaStore) -> None:
    result = filled.delete("people", "id = 99")
    assert (result.version, result.rows_deleted) == (1, 0)


@pytest.mark.parametrize(
    "predicate",
    ["id = NULL", "NULL = NULL", "id > NULL", "id IN (NULL)", "id NOT IN (1, NULL)",
     "id = CAST(NULL AS BIGINT)", "FALSE"],
)  # fmt: skip
def test_a_predicate_that_is_never_true_deletes_nothing(filled: DeltaStore, predicate: str) -> None:
    filled.delete("people", predicate)
    assert ids(filled, "people") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("predicate", ["TRUE", "1 = 1", "id IS NOT NULL"])
def test_a_predicate_that_is_always_true_deletes_everything(filled: DeltaStore, predicate: str) -> None:
    assert filled.delete("people", predicate).rows_deleted == 5
    assert rows(filled, "people") == []


@pytest.mark.parametrize(
    "predicate",
    ["", "id =", "id = 1 AMD age = 2", "id = 1; DROP TABLE people", "id = 1) OR (1 = 1", "nope = 1", "id",
     "id = 'x'", "id = 1 --", "EXISTS (SELECT 1)", "count(*) > 1"],
)  # fmt: skip
def test_a_predicate_is_read_whole_or_refused(filled: DeltaStore, predicate: str) -> None:
    for operation in (
        lambda: filled.delete("people", predicate),
        lambda: filled.update("people", {"age": "1"}, predicate),
        lambda: filled.query("people", predicate).to_pylist(),
        lambda: filled.overwrite_where("people", predicate, people(1)),
    ):
        with refused(filled, "people", InvalidPredicateError):
            operation()


def test_update_changes_what_matches_and_counts_it(filled: DeltaStore) -> None:
    result = filled.update("people", {"age": "age + id", "name": "'O''Brien'"}, "id >= 4")
    assert (result.version, result.rows_updated) == (2, 2)
    assert rows(filled, "people", predicate="id >= 4") == [
        {"id": 4, "name": "O'Brien", "age": 34},
        {"id": 5, "name": "O'Brien", "age": 35},
    ]


def test_update_without_predicate_changes_every_row(filled: DeltaStore) -> None:
    assert filled.update("people", {"age": "NULL"}, None).rows_updated == 5
    assert {row["age"] for row in rows(filled, "people")} == {None}


def test_update_of_nothing_makes_no_version(filled: DeltaStore) -> None:
    assert filled.update("people", {"age": "1"}, "id = 99").version == 1


def test_merge_inserts_new_keys_and_updates_known_ones(filled: DeltaStore) -> None:
    result = filled.merge("people", people(5, 6, age=1), on=["id"])
    assert (result.version, result.rows_inserted, result.rows_updated, result.rows_deleted) == (2, 1, 1, 0)
    assert {row["id"]: row["age"] for row in rows(filled, "people")} == {
        1: 30,
        2: 30,
        3: 30,
        4: 30,
        5: 1,
        6: 1,
    }


def test_merge_steered_by_row_inserts_updates_and_deletes_in_one_version(filled: DeltaStore) -> None:
    steered = [
        {"id": 1, "_op": "DELETE"},
        {"id": 2, "name": "two", "age": 2, "_op": "UPDATE"},
        {"id": 8, "name": "eight", "age": 8, "_op": "INSERT"},
        {"id": 3, "name": "three", "age": 3, "_op": "UPSERT"},
    ]
    result = filled.merge("people", steered, on=["id"])
    assert (result.version, result.rows_inserted, result.rows_updated, result.rows_deleted) == (2, 1, 2, 1)
    assert {row["id"]: row["age"] for row in rows(filled, "people")} == {2: 2, 3: 3, 4: 30, 5: 30, 8: 8}
    assert "_op" not in filled.table("people").arrow_schema().names


def test_merge_uses_the_declared_key(store: DeltaStore) -> None:
    store.create("people", PEOPLE).set_primary_key(["id"])
    store.append("people", people(1))
    store.merge("people", people(1, 2, age=5))
    assert [(row["id"], row["age"]) for row in rows(store, "people")] == [(1, 5), (2, 5)]


def test_merge_on_two_columns_needs_both_to_match(filled: DeltaStore) -> None:
    filled.merge(
        "people", [{"id": 1, "name": "n1", "age": 1}, {"id": 1, "name": "other", "age": 2}], on=["id", "name"]
    )
    assert sorted(row["age"] for row in rows(filled, "people", predicate="id = 1")) == [1, 2]


def test_merge_refuses_two_source_rows_with_one_key(filled: DeltaStore) -> None:
    for source in (people(1, 1), people(77, 77)):
        with refused(filled, "people", DuplicateKeyError):
            filled.merge("people", source, on=["id"])


@pytest.mark.parametrize("on", [["nope"], []])
def test_merge_refuses_key_columns_that_are_not_there(filled: DeltaStore, on: list[str]) -> None:
    with refused(filled, "people", SchemaMismatchError):
        filled.merge("people", people(1), on=on)


def test_merge_refuses_an_unknown_op(filled: DeltaStore) -> None:
    with refused(filled, "people", InvalidRowsError, "REPLACE"):
        filled.merge("people", [{"id": 1, "name": "x", "age": 1, "_op": "REPLACE"}], on=["id"])


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"id": 1.7, "name": "x", "age": 1}, LossyCastError),
        ({"id": "77", "name": "x", "age": 1}, SchemaMismatchError),
        ({"id": 1, "name": 5, "age": 1}, SchemaMismatchError),
        ({"id": 1, "name": "x", "age": 2**31}, LossyCastError),
        ({"id": 1, "name": "x", "age": 1, "extra": 1}, SchemaMismatchError),
        ({"ID": 1, "name": "x", "age": 1}, SchemaMismatchError),
        ({"id": 1, "name": b"\xff", "age": 1}, SchemaMismatchError),
        ({"id": True, "name": "x", "age": 1}, SchemaMismatchError),
        ({"id": [1], "name": "x", "age": 1}, SchemaMismatchError),
    ],
)
def test_a_value_that_would_change_is_refused_by_every_write(
    filled: DeltaStore, row: dict[str, Any], error: type[SchemaMismatchError]
) -> None:
    for write in (
        lambda: filled.append("people", [row]),
        lambda: filled.overwrite("people", [row]),
        lambda: filled.merge("people", [row], on=["id"]),
    ):
        before = (filled.table("people").version(), rows(filled, "people"))
        with pytest.raises((SchemaMismatchError, InvalidRowsError)) as caught:
            write()
        assert isinstance(caught.value, error) or not isinstance(caught.value, LossyCastError)
        assert (filled.table("people").version(), rows(filled, "people")) == before


def test_a_source_that_fails_midway_leaves_nothing(filled: DeltaStore) -> None:
    def broken() -> Any:
        yield from people(*range(100, 20_000))
        raise RuntimeError("the source broke")

    before = filled.table("people").version()
    with pytest.raises(RuntimeError, match="the source broke"):
        filled.append("people", broken())
    assert filled.table("people").version() == before
    assert ids(filled, "people") == [1, 2, 3, 4, 5]
