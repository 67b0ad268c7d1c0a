from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lakehouse_platform.errors import CommitConflictError, DuplicateKeyError, LakehouseError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.layout import cut, in_file, in_order, typed
from lakehouse_platform_tests.support.tables import people


def together(*actions: Callable[[], object]) -> list[LakehouseError | None]:
    """Run actions at the same time and return what each of them said."""
    barrier = threading.Barrier(len(actions))

    def run(action: Callable[[], object]) -> LakehouseError | None:
        barrier.wait()
        try:
            action()
        except LakehouseError as error:
            return error
        return None

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


def filled(store: DeltaStore) -> Table:
    table = store.table("people")
    for first in (0, 10):
        table.append(people(*range(first, first + 10)))
    return table


def ids(table: Table) -> list[int]:
    return [row["id"] for row in in_order(table)]


def test_of_splices_of_one_file_one_wins(store: DeltaStore, writes: int) -> None:
    table = filled(store)
    for number in range(writes // 5):
        files = [in_file(table, 0, cut(table, 0, 1, *people(100 + number, age=side))) for side in (1, 2, 3)]
        told = together(*(lambda file=file: table.splice(0, [file]) for file in files))
        assert [error for error in told if error is None] == [None]
        assert {type(error) for error in told if error} == {CommitConflictError}
        assert ids(table) == [100 + number, *range(1, 20)]


def test_splices_of_different_files_and_appends_all_happen(store: DeltaStore, writes: int) -> None:
    table = filled(store)
    expected: list[int] = []
    for number in range(writes // 5):
        files = [in_file(table, place, cut(table, 0, 1, *people(100 + number))) for place in (0, 1)]
        told = together(
            lambda files=files: table.splice(0, files[:1]),
            lambda files=files: table.splice(0, files[1:]),
            lambda number=number: table.append(people(1_000 + number)),
            lambda number=number: table.splice(0, [], typed(table, people(2_000 + number))),
        )
        assert told == [None] * 4
        expected += [1_000 + number, 2_000 + number]
        found = ids(table)
        assert found[:20] == [100 + number, *range(1, 10), 100 + number, *range(11, 20)]
        assert sorted(found[20:]) == sorted(expected)


def test_a_splice_beside_a_compaction_loses_and_doubles_nothing(store: DeltaStore, writes: int) -> None:
    table = filled(store)
    for number in range(writes // 5):
        table.append(people(100 + number))
        file = in_file(table, 0, cut(table, 0, 0, *people(1_000 + number)))
        before = sorted(ids(table))
        told = together(lambda file=file: table.splice(0, [file]), table.compact)
        assert {type(error) for error in told if error} <= {CommitConflictError}
        assert sorted(ids(table)) == sorted(before + ([1_000 + number] if told[0] is None else []))


def test_of_a_splice_and_an_append_with_one_key_one_wins(store: DeltaStore, writes: int) -> None:
    table = filled(store)
    table.set_primary_key(["id"])
    for number in range(writes // 5):
        file = in_file(table, 0, cut(table, 0, 0, *people(100 + number)))
        told = together(
            lambda file=file: table.splice(0, [file]),
            lambda number=number: table.append(people(100 + number)),
            lambda number=number: table.splice(0, [], typed(table, people(100 + number))),
        )
        assert [error for error in told if error is None] == [None]
        assert {type(error) for error in told if error} == {DuplicateKeyError}
        assert ids(table).count(100 + number) == 1
