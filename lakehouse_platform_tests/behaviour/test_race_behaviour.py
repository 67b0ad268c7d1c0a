"""Writes overtaken by others, made certain: rows are a stream, and while it is read another write lands."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakehouse_platform.errors import CommitConflictError, DuplicateKeyError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.newest import NewestTables
from lakehouse_platform_tests.support.tables import PEOPLE, ids, people, rows

_Write = Callable[[DeltaStore], object]


def overtaken(store: DeltaStore, other: _Write, *new: int) -> pa.RecordBatchReader:
    """Return rows that are read only after somebody else's write has landed."""
    schema = store.table("people").arrow_schema()

    def batches() -> Iterator[pa.RecordBatch]:
        with ThreadPoolExecutor(1) as somebody_else:
            somebody_else.submit(other, store).result()
        yield from pa.Table.from_pylist(people(*new), schema=schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def test_an_append_overtaken_by_an_append_lands_behind_it(filled: DeltaStore) -> None:
    stream = overtaken(filled, lambda store: store.append("people", people(6)), 7)
    assert filled.append("people", stream) == 3
    assert ids(filled, "people") == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "other",
    [
        lambda store: store.delete("people", "id = 1"),
        lambda store: store.update("people", {"age": "1"}, "id = 1"),
        lambda store: store.overwrite("people", people(1)),
        lambda store: store.table("people").add_constraint("c", "id < 7"),
    ],
    ids=["delete", "update", "overwrite", "constraint"],
)
def test_a_stream_overtaken_by_a_change_is_refused_whole(filled: DeltaStore, other: _Write) -> None:
    """A stream cannot be read again, so it is not repeated; a table of rows would be."""
    with pytest.raises(CommitConflictError):
        filled.append("people", overtaken(filled, other, 7))
    assert 7 not in ids(filled, "people")
    assert filled.table("people").version() == 2


def test_an_overwrite_overtaken_by_an_append_never_keeps_its_row(filled: DeltaStore) -> None:
    stream = overtaken(filled, lambda store: store.append("people", people(6)), 7)
    try:
        filled.overwrite("people", stream)
    except CommitConflictError:
        assert ids(filled, "people") == [1, 2, 3, 4, 5, 6]
    else:
        assert ids(filled, "people") == [7]


@pytest.mark.parametrize("write", ["append", "overwrite"])
def test_two_writers_of_one_key_never_both_win(filled: DeltaStore, write: str) -> None:
    filled.table("people").set_primary_key(["id"])
    stream = overtaken(filled, lambda store: store.append("people", people(7)), 7, 8)
    with pytest.raises((CommitConflictError, DuplicateKeyError)):
        getattr(filled, write)("people", stream)
    assert [row["id"] for row in rows(filled, "people", predicate="id >= 7")] == [7]


def test_a_column_added_meanwhile_is_kept(filled: DeltaStore) -> None:
    wider = [{"id": 6, "name": "n6", "age": 1, "city": "Ulm"}]
    stream = overtaken(filled, lambda store: store.append("people", wider, evolve=True), 7)
    with pytest.raises(CommitConflictError):
        filled.append("people", stream)
    assert filled.table("people").arrow_schema().names == [*PEOPLE.names, "city"]
    assert ids(filled, "people") == [1, 2, 3, 4, 5, 6]


_COMPACTIONS: list[_Write] = [
    lambda store: store.compact("people"),
    lambda store: store.z_order("people", ["id"]),
]


@pytest.mark.parametrize("compaction", _COMPACTIONS, ids=["compact", "z_order"])
@pytest.mark.parametrize(
    ("second", "left"),
    [
        (_COMPACTIONS[0], [1, 2, 3, 4, 5, 6]),
        (_COMPACTIONS[1], [1, 2, 3, 4, 5, 6]),
        (lambda store: store.delete("people", "TRUE"), []),
        (lambda store: store.delete("people", "id >= 1"), []),
        (lambda store: store.overwrite("people", people(9)), [9]),
        (lambda store: store.update("people", {"age": "1"}), [1, 2, 3, 4, 5, 6]),
    ],
    ids=["compact", "z_order", "delete_all", "delete", "overwrite", "update"],
)
def test_a_change_overtaken_by_a_compaction_neither_doubles_nor_revives_rows(
    filled: DeltaStore, monkeypatch: pytest.MonkeyPatch, compaction: _Write, second: _Write, left: list[int]
) -> None:
    # On one machine the second waits; on several it is taken back.
    taken_back = second in _COMPACTIONS and not filled.table("people").location.is_local
    filled.append("people", people(6))
    changing = NewestTables.changing
    running: list[Future[object]] = []

    @contextmanager
    def overtaken_once(tables: NewestTables, location: Location) -> Generator[DeltaTable]:
        with changing(tables, location) as table:
            if not running:
                running.append(somebody_else.submit(compaction, filled))
                wait(running, timeout=2)  # ends only afterwards if it has to wait for us
            yield table

    monkeypatch.setattr(NewestTables, "changing", overtaken_once)
    refused = pytest.raises(CommitConflictError) if taken_back else nullcontext()
    with ThreadPoolExecutor(1) as somebody_else, refused:
        second(filled)
    assert running[0].result()
    assert ids(filled, "people") == left
