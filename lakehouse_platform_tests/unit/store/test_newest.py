"""Opened tables: when one is handed out again, when it follows its log, and when it is opened anew."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakehouse_platform.errors import LakehouseError, TableNotFoundError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import commit_file
from lakehouse_platform.store.newest import NewestTables
from lakehouse_platform_tests.support.tables import PEOPLE, people


@pytest.fixture
def place(store: DeltaStore) -> Location:
    store.create("people", PEOPLE)
    store.append("people", people(1, 2))
    return store.table("people").location


def damage(place: Location, version: int) -> None:
    """Make a log that cannot be read again from its beginning."""
    (place.path / commit_file(version)).write_text("{")
    with pytest.raises(LakehouseError):
        open_table(place)


def ids(table: DeltaTable) -> list[int]:
    return sorted(pa.table(table.scan(["id"])).column("id").to_pylist())


def test_a_table_is_not_read_again_while_nothing_was_committed(place: Location) -> None:
    tables = NewestTables()
    tables.open(place)
    damage(place, 0)
    assert ids(tables.open(place)) == [1, 2]


def test_a_table_that_nobody_holds_follows_its_log(place: Location, store: DeltaStore) -> None:
    tables = NewestTables()
    tables.open(place)
    store.append("people", people(3))
    store.delete("people", "id = 1")
    damage(place, 0)
    assert ids(tables.open(place)) == [2, 3]


def test_a_table_that_somebody_holds_stays_as_it_is(place: Location, store: DeltaStore) -> None:
    tables = NewestTables()
    held = tables.open(place)
    store.append("people", people(3))
    newer = tables.open(place)
    assert (held.version(), newer.version()) == (1, 2)
    assert (ids(held), ids(newer), ids(tables.open(place))) == ([1, 2], [1, 2, 3], [1, 2, 3])


def test_a_table_is_followed_as_if_it_were_opened_anew(place: Location, store: DeltaStore) -> None:
    tables, table = NewestTables(), store.table("people")
    tables.open(place)
    changes = (
        lambda: table.append(pa.table({"id": [9], "extra": ["x"]}), evolve=True),
        lambda: table.set_properties({"delta.logRetentionDuration": "interval 1 days"}),
        lambda: table.delete("id = 9"),
        lambda: table.restore(1),
        lambda: table.overwrite(people(5)),
        table.compact,
        lambda: [table.append(people(n)) for n in range(100, 120)],
        lambda: open_table(place).create_checkpoint(),
        table.delete_all,
    )
    for change in changes:
        change()
        followed, anew = tables.open(place), open_table(place)
        assert followed.version() == anew.version()
        assert followed.schema().to_json() == anew.schema().to_json()
        assert followed.metadata().configuration == anew.metadata().configuration
        assert sorted(followed.file_uris()) == sorted(anew.file_uris())


def test_a_table_whose_first_commits_were_cleaned_up_is_kept_from_its_second_opening(
    place: Location, store: DeltaStore
) -> None:
    open_table(place).create_checkpoint()
    (place.path / commit_file(0)).unlink()
    tables = NewestTables()
    for n in (3, 4):
        assert max(ids(tables.open(place))) == n - 1
        store.append("people", people(n))
    assert ids(tables.open(place)) == [1, 2, 3, 4]
    damage(place, 3)
    (place.path / commit_file(3)).unlink()
    store.drop("people")
    with pytest.raises(TableNotFoundError):
        tables.open(place)


def test_the_tables_that_were_asked_for_last_are_kept(place: Location, store: DeltaStore) -> None:
    tables = NewestTables()
    tables.open(place)
    for n in range(32):
        store.create(f"t{n}", PEOPLE)
        store.append(f"t{n}", people(1))
        tables.open(store.table(f"t{n}").location)
    damage(store.table("t0").location, 0)
    assert tables.open(store.table("t0").location).version() == 1
    damage(place, 0)
    with pytest.raises(LakehouseError):
        tables.open(place)
