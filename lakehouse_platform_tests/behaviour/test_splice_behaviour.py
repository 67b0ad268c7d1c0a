from __future__ import annotations

import pytest

from lakehouse_platform.errors import CommitConflictError, ConstraintViolationError, DuplicateKeyError
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.new_keys import find_duplicate_key
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform_tests.support.layout import cut, in_file, in_order, paths, typed
from lakehouse_platform_tests.support.tables import PEOPLE, people, refused, rows


def test_a_splice_changes_rows_where_they_stand(filled: DeltaStore) -> None:
    table = filled.table("people")
    table.append(people(6, 7))
    replaced = cut(table, 1, 3, *people(20, age=1)), cut(table, 5, 5, *people(21))
    done = table.splice(2, [in_file(table, 0, *replaced)], typed(table, people(22)))
    assert done.version == 3
    assert [row["id"] for row in in_order(table)] == [1, 20, 4, 5, 21, 6, 7, 22]
    assert rows(filled, "people", predicate="age = 1") == people(20, age=1)
    assert table.vacuum(retention_hours=0).files_deleted == 1
    assert len(rows(filled, "people")) == 8


def test_a_splice_works_in_every_partition(store: DeltaStore) -> None:
    table = store.create("parts", PEOPLE, partition_by=["name"])
    table.append([{"id": number, "name": name, "age": 1} for number, name in enumerate(["ü/% ", None, "b"])])
    for number in range(3):
        table.splice(0, [in_file(table, number, cut(table, 0, 0, {"id": 9, "name": "b", "age": number}))])
    assert sorted(row["id"] for row in in_order(table)) == [0, 1, 2, 9, 9, 9]
    assert len(rows(store, "parts", predicate="name = 'b'")) == 4


def test_a_refused_splice_leaves_the_table_as_it_was(filled: DeltaStore) -> None:
    table = filled.table("people")
    table.add_constraint("grown", "age > 17")
    with refused(filled, "people", ConstraintViolationError):
        table.splice(2, [in_file(table, 0, cut(table, 0, 1, *people(1, age=17)))])
    with refused(filled, "people", ConstraintViolationError):
        table.splice(2, [in_file(table, 0, cut(table, 0, 1))], typed(table, people(1, age=17)))


def test_a_splice_conflicts_with_a_change_of_its_file_only(filled: DeltaStore) -> None:
    table = filled.table("people")
    table.append(people(6, 7))
    first, second = in_file(table, 0, cut(table, 0, 1)), in_file(table, 1, cut(table, 0, 1))
    table.append(people(8))
    table.splice(2, [first])
    table.splice(2, [second])
    with refused(filled, "people", CommitConflictError):
        table.splice(2, [second])
    assert [row["id"] for row in in_order(table)] == [2, 3, 4, 5, 7, 8]


def test_a_splice_keeps_keys_unique_and_happens_once(filled: DeltaStore) -> None:
    table = filled.table("people")
    table.set_primary_key(["id"])
    with refused(filled, "people", DuplicateKeyError):
        table.splice(2, [in_file(table, 0, cut(table, 0, 1, *people(5)))])
    files, once = [in_file(table, 0, cut(table, 0, 1, *people(9)))], AppTransaction("edit", 7)
    assert [table.splice(2, files, transaction=once).version for _ in range(2)] == [3, 3]
    assert [row["id"] for row in in_order(table)] == [9, 2, 3, 4, 5]


def test_deleting_all_rows_leaves_an_empty_table(filled: DeltaStore) -> None:
    table = filled.table("people")
    assert table.delete_all().rows_deleted == 5
    assert paths(table) == []
    assert table.delete_all().version == 2


@pytest.mark.parametrize("indexed", [True, False])
def test_taken_keys_are_found_without_writing(
    store: DeltaStore, tmp_path_factory: pytest.TempPathFactory, indexed: bool
) -> None:
    if indexed:
        directory = str(tmp_path_factory.mktemp("keys"))
        store = DeltaStore(store.config.model_copy(update={"key_index_path": directory}))
    table = store.create("people", PEOPLE, primary_key=["id"])
    table.append(people(1, 2, 3))
    assert (
        find_duplicate_key(Pinned.open(table), typed(table, people(4, 2)))
        == "key id = 2 is already in the table"
    )
    assert find_duplicate_key(Pinned.open(table), typed(table, people(4, 5))) is None
    assert table.version() == 1
