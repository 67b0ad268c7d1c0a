from __future__ import annotations

from collections.abc import Callable

import pytest

from lakehouse_platform.errors import (
    CommitConflictError,
    DuplicateKeyError,
    InvalidPredicateError,
    InvalidRowsError,
    LakehouseError,
    TableNotFoundError,
    TransactionClosedError,
)
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.transaction import Transaction
from lakehouse_platform_tests.support.tables import ids, people, refused, rows


def test_several_changes_become_one_commit(filled: DeltaStore) -> None:
    with filled.transaction("people") as tx:
        tx.append(people(6, 7))
        tx.delete("id = 1")
        tx.update({"age": "99"}, "id = 6")
        tx.merge(people(2, 8, age=5), on=["id"])
    assert filled.table("people").version() == 2
    assert {row["id"]: row["age"] for row in rows(filled, "people")} == {
        2: 5, 3: 30, 4: 30, 5: 30, 6: 99, 7: 30, 8: 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    "predicate", ["id % 2 = 1", "id + 1 > 3", "cast(id AS String) LIKE '1%'", "abs(id) = 3"]
)
def test_a_transaction_takes_every_predicate(filled: DeltaStore, predicate: str) -> None:
    expected = sorted(row["id"] for row in filled.query("people", predicate).to_pylist())
    with filled.transaction("people") as tx:
        assert tx.update({"age": "1"}, predicate).rows_updated == len(expected)
        assert tx.delete(predicate).rows_deleted == len(expected)
    assert ids(filled, "people") == sorted({1, 2, 3, 4, 5} - set(expected))


def test_a_transaction_reads_its_own_writes_and_nobody_else_does(filled: DeltaStore) -> None:
    with filled.transaction("people") as tx:
        tx.append(people(6))
        tx.delete("id = 1")
        assert sorted(row["id"] for row in tx.scan().to_pylist()) == [2, 3, 4, 5, 6]
        assert ids(filled, "people") == [1, 2, 3, 4, 5]
    assert ids(filled, "people") == [2, 3, 4, 5, 6]


def test_a_transaction_keeps_its_snapshot(filled: DeltaStore) -> None:
    with filled.transaction("people") as tx:
        before = sorted(row["id"] for row in tx.scan().to_pylist())
        filled.append("people", people(50))
        assert sorted(row["id"] for row in tx.scan().to_pylist()) == before
    assert ids(filled, "people") == [1, 2, 3, 4, 5, 50]


def test_an_exception_leaves_nothing_behind(filled: DeltaStore) -> None:
    def break_off() -> None:
        with filled.transaction("people") as tx:
            tx.append(people(6))
            tx.delete("id = 1")
            raise ZeroDivisionError

    with refused(filled, "people", ZeroDivisionError):
        break_off()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda tx: tx.delete("nope = 1"), InvalidPredicateError),
        (lambda tx: tx.append([{"id": "text"}]), InvalidRowsError),
        (lambda tx: tx.merge(people(1, 1), on=["id"]), DuplicateKeyError),
    ],
)
def test_a_refused_step_leaves_nothing_behind(
    filled: DeltaStore, wrong: Callable[[Transaction], object], error: type[LakehouseError]
) -> None:
    def two_steps() -> None:
        with filled.transaction("people") as tx:
            tx.append(people(6))
            wrong(tx)

    with refused(filled, "people", error):
        two_steps()


def test_an_empty_transaction_makes_no_version(filled: DeltaStore) -> None:
    with filled.transaction("people"):
        pass
    assert filled.table("people").version() == 1


def test_appends_beside_an_append_only_transaction_both_stay(filled: DeltaStore) -> None:
    with filled.transaction("people") as tx:
        tx.append(people(6))
        filled.append("people", people(7))
    assert ids(filled, "people") == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "other",
    [
        lambda store: store.delete("people", "id = 1"),
        lambda store: store.update("people", {"age": "1"}, "id = 1"),
        lambda store: store.overwrite("people", people(1)),
        lambda store: store.merge("people", people(1, age=9), on=["id"]),
    ],
    ids=["delete", "update", "overwrite", "merge"],
)
def test_two_writers_of_one_row_conflict_and_the_first_wins(
    filled: DeltaStore, other: Callable[[DeltaStore], object]
) -> None:
    def both_write() -> None:
        with filled.transaction("people") as tx:
            tx.update({"age": "77"}, "id = 1")
            other(filled)

    with pytest.raises(CommitConflictError):
        both_write()
    assert filled.table("people").version() == 2
    assert 77 not in [row["age"] for row in rows(filled, "people")]


def test_a_transaction_that_is_over_refuses_more(filled: DeltaStore) -> None:
    with filled.transaction("people") as tx:
        tx.append(people(6))
    with pytest.raises(TransactionClosedError):
        tx.append(people(7))
    assert ids(filled, "people") == [1, 2, 3, 4, 5, 6]


def test_a_transaction_can_be_rolled_back(filled: DeltaStore) -> None:
    with filled.transaction("people") as tx:
        tx.append(people(6))
        tx.rollback()
    assert filled.table("people").version() == 1


def test_a_transaction_on_an_unknown_table_is_refused(store: DeltaStore) -> None:
    with pytest.raises(TableNotFoundError), store.transaction("absent") as tx:
        tx.append(people(1))
    assert store.tables() == []


def test_a_key_holds_inside_a_transaction(filled: DeltaStore) -> None:
    def append_twice() -> None:
        with filled.transaction("people") as tx:
            tx.append(people(6))
            tx.append(people(6))

    filled.table("people").set_primary_key(["id"])
    with refused(filled, "people", DuplicateKeyError):
        append_twice()


def test_a_key_freed_inside_a_transaction_can_be_used_again(filled: DeltaStore) -> None:
    filled.table("people").set_primary_key(["id"])
    with filled.transaction("people") as tx:
        tx.delete("id = 5")
        tx.append(people(5, age=1))
    assert rows(filled, "people", predicate="id = 5")[0]["age"] == 1
