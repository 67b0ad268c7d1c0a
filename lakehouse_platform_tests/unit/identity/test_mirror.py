"""The mirror: always what the table holds, by reading no more than what is new."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.errors import InvalidRowsError, TableNotFoundError
from lakehouse_platform.identity.mirror import Mirror, Row, readable
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("age", pa.int64())])


def row(key: str, age: int | None = 1) -> dict[str, Any]:
    return {"id": key, "age": age}


def mirror(table: Table, **more: Any) -> Mirror[Row]:
    return Mirror(
        table,
        "id",
        dict,
        indexes={"age": lambda one: None if one["age"] is None else str(one["age"])},
        **more,
    )


def ages(made: Mirror[Row]) -> dict[str, int | None]:
    return {key: one["age"] for key, one in made.current().items()}


@pytest.fixture
def table(store: DeltaStore) -> Table:
    return store.create("t", SCHEMA, primary_key=["id"])


@pytest.fixture
def opened_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files that are read, in order; they are read for real."""
    seen: list[str] = []
    real = Pinned.read_rows

    def watched(self: Pinned, path: str) -> Iterator[pa.RecordBatch]:
        seen.append(path)
        return real(self, path)

    monkeypatch.setattr(Pinned, "read_rows", watched)
    return seen


def test_it_shows_each_change_at_once(table: Table) -> None:
    made = mirror(table)
    assert ages(made) == {}
    table.append([row("a"), row("b", 2)])
    assert ages(made) == {"a": 1, "b": 2}
    table.update({"age": "age + 10"}, "id = 'a'")
    assert ages(made) == {"a": 11, "b": 2}
    table.merge([row("c", 3), {**row("b"), "_op": "DELETE"}])
    assert ages(made) == {"a": 11, "c": 3}
    table.overwrite([row("z", None)])
    assert ages(made) == {"z": None}
    table.restore(1)
    assert ages(made) == {"a": 1, "b": 2}


def test_it_says_which_version_it_shows(table: Table) -> None:
    made = mirror(table)
    assert made.look().version == 0
    assert table.append([row("a")]) == made.look().version == 1


def test_records_are_found_by_further_values(table: Table) -> None:
    made = mirror(table)
    table.append([row("b"), row("a"), row("c", None)])
    assert [one["id"] for one in made.look().find("age", "1")] == ["a", "b"]
    assert made.look().find("age", "None") == []
    table.merge([row("a", 5), {**row("b"), "_op": "DELETE"}])
    assert made.look().find("age", "1") == []
    assert [one["id"] for one in made.look().find("age", "5")] == ["a"]


def test_only_new_files_are_read(table: Table, opened_files: list[str]) -> None:
    made = mirror(table)
    for key in "abc":
        table.append([row(key)])
    made.current()
    assert len(opened_files) == 3
    made.current()
    assert len(opened_files) == 3
    table.append([row("d")])
    assert set(ages(made)) == set("abcd")
    assert len(opened_files) == 4
    table.compact()
    assert set(ages(made)) == set("abcd")
    assert len(opened_files) == 5


def test_what_was_handed_out_never_changes(table: Table) -> None:
    made = mirror(table)
    table.append([row("a")])
    before = made.look()
    table.merge([row("a", 9), row("b")])
    assert ages(made) == {"a": 9, "b": 1}
    assert dict(before.records) == {"a": row("a")}
    assert before.find("age", "9") == []
    with pytest.raises(TypeError):
        before.records["x"] = row("x")  # type: ignore[index]


def test_a_new_column_is_shown(table: Table) -> None:
    made = mirror(table)
    table.append([row("a")])
    made.current()
    table.add_columns(pa.schema([("more", pa.string())]))
    table.append([{**row("b"), "more": "x"}])
    assert dict(made.current()) == {"a": {**row("a"), "more": None}, "b": {**row("b"), "more": "x"}}


def test_another_table_in_its_place_is_shown(store: DeltaStore, table: Table) -> None:
    made = mirror(table)
    table.append([row("a")])
    made.current()
    table.drop()
    with pytest.raises(TableNotFoundError):
        made.current()
    store.create("t", SCHEMA, primary_key=["id"])
    assert ages(made) == {}
    table.append([row("b")])
    assert ages(made) == {"b": 1}


def test_files_that_a_vacuum_took_are_not_missed(table: Table) -> None:
    made = mirror(table)
    for key in "abcd":
        table.append([row(key)])
    stale = Pinned.open(table)
    table.compact()
    table.vacuum(0)
    # The state of a mirror that looked before the compaction and reads after the vacuum.
    first = made._read(Pinned.open(table), None)
    made._state = type(first)(stale, {}, first.seen)
    assert ages(made) == dict.fromkeys("abcd", 1)


def test_a_remote_table_is_looked_at_once_in_a_while(place: Location, store: DeltaStore) -> None:
    table = Table(place, store.config, store.origin).create(SCHEMA, primary_key=["id"])
    now = 100.0
    made = mirror(table, clock=lambda: now, fresh_seconds=1.0)
    assert ages(made) == {}
    table.append([row("a")])
    now = 100.9
    assert ages(made) == ({"a": 1} if place.is_local else {})
    assert set(made.newest().records) == {"a"}
    table.append([row("b")])
    now = 101.95
    assert set(ages(made)) == {"a", "b"}


def test_threads_see_their_own_writes(table: Table) -> None:
    made, failed = mirror(table), []

    def work(name: str) -> None:
        for turn in range(5):
            table.append([row(f"{name}{turn}")])
            if f"{name}{turn}" not in made.current():
                failed.append((name, turn))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    assert len(made.current()) == 20


_ROWS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3) | st.none(), min_size=1)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("merge"), _ROWS),
        st.tuples(st.just("delete"), st.integers(0, 3)),
        st.tuples(st.sampled_from(["compact", "look"]), st.none()),
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=10)
@given(steps=_STEPS)
def test_after_any_changes_it_is_what_a_scan_shows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    table = DeltaStore(str(tmp_path_factory.mktemp("lake"))).create("t", SCHEMA, primary_key=["id"])
    made = mirror(table)
    for kind, value in steps:
        if kind == "merge":
            table.merge([row(key, age) for key, age in value.items()])
        elif kind == "delete":
            table.delete(f"age = {value}")
        elif kind == "compact":
            table.compact()
        else:
            made.current()
    expected = {one["id"]: one for one in table.scan().to_pylist()}
    assert dict(made.current()) == expected
    fresh = mirror(table).look().indexes
    assert made.look().indexes == fresh


def test_a_row_that_is_no_record_is_told_and_keeps_nobody_else_away(table: Table) -> None:
    def make(one: Row) -> Row:
        with readable("t", one["id"]):
            return {"id": one["id"], "age": int(one["age"])}

    made = Mirror(table, "id", make)
    table.append([row("a"), row("b", None), row("c")])
    seen = made.look()
    assert set(seen.records) == {"a", "c"}
    assert set(seen.damaged) == {"b"}
    with pytest.raises(InvalidRowsError, match="'b' of table t cannot be read"):
        raise seen.damaged["b"]
    table.append([row("d", None)])
    assert set(made.look().damaged) == {"b", "d"}
    table.update({"age": "5"}, "id = 'b'")
    assert (set(made.look().records), set(made.look().damaged)) == ({"a", "b", "c"}, {"d"})
