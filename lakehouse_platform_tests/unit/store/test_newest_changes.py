"""Opened tables that are kept from one change to the next."""

from __future__ import annotations

import copy
import os
import pickle
import resource
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.errors import InvalidRowsError, LakehouseError, TableNotFoundError
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.log import commit_file
from lakehouse_platform.store.newest import NewestTables
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.tables import PEOPLE, ids, people

CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(people(1, 2, 3)),
    "append once": lambda table: table.append(
        people(4), transaction=AppTransaction("loader", table.version())
    ),
    "evolve": lambda table: table.append(pa.table({"id": [9], f"x{table.version()}": ["x"]}), evolve=True),
    "overwrite": lambda table: table.overwrite(people(5)),
    "overwrite where": lambda table: table.overwrite_where("id = 5", people(5, age=9)),
    "update": lambda table: table.update({"age": "age + 1"}, "id > 1"),
    "delete": lambda table: table.delete("id = 2"),
    "delete all": lambda table: table.delete_all(),
    "merge": lambda table: table.merge(people(3, 6), on=["id"]),
    "properties": lambda table: table.set_properties({"delta.logRetentionDuration": "interval 9 days"}),
    "constraint": lambda table: table.add_constraint(f"c{table.version()}", "age >= 0"),
    "restore": lambda table: table.restore(max(0, table.version() - 1)),
    "compact": lambda table: table.compact(),
    "z-order": lambda table: table.z_order(["id"]),
    "vacuum": lambda table: table.vacuum(),
    "checkpoint": lambda table: table.checkpoint(),
    "by another": lambda table: open_table(table.location).delete("id = 1"),
}


def kept(table: Table) -> tuple[Table, NewestTables]:
    """Return the table with a keeper of its own."""
    tables = NewestTables()
    return replace(table, tables=tables), tables


@pytest.fixture
def table(store: DeltaStore) -> Table:
    store.create("people", PEOPLE)
    store.append("people", people(1, 2))
    return kept(store.table("people"))[0]


def damage(table: Table) -> None:
    """Make a log that cannot be read again from its beginning."""
    (table.location.path / commit_file(0)).write_text("{")
    with pytest.raises(LakehouseError):
        open_table(table.location)


def told(table: DeltaTable) -> object:
    """Return all that changes rely on."""
    actions = pa.table(table.get_add_actions(flatten=True))
    return (
        table.version(),
        table.schema().to_json(),
        table.metadata().id,
        table.metadata().configuration,
        str(table.protocol()),
        table.transaction_version("loader"),
        sorted(actions.select(["path", "size_bytes", "num_records"]).to_pylist(), key=repr),
        sorted(table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False)),
    )


@settings(max_examples=40)
@given(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=8))
def test_after_any_changes_a_kept_table_is_as_if_it_were_opened_anew(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path_factory.mktemp("lake")), durability="os"))
    table, tables = kept(store.create("people", PEOPLE))
    for name in names:
        CHANGES[name](table)
        with tables.changing(table.location) as changing:
            assert told(changing) == told(open_table(table.location)), name


def test_a_change_does_not_read_the_log_again_that_the_change_before_it_knew(table: Table) -> None:
    table.append(people(3))
    damage(table)
    table.append(people(4))
    table.update({"age": "31"}, "id = 4")
    with pytest.raises(InvalidRowsError):
        table.append([{"id": "no number"}])
    with pytest.raises(LakehouseError, match="log"):
        table.append(people(5))


def test_after_a_refused_change_the_table_is_opened_anew(store: DeltaStore, table: Table) -> None:
    table.append(people(3))
    with pytest.raises(InvalidRowsError):
        table.append([{"id": "no number"}])
    table.append(people(4))
    assert ids(store, "people") == [1, 2, 3, 4]


def test_who_reads_keeps_the_version_that_is_read(store: DeltaStore, table: Table) -> None:
    tables = store.table("people").tables
    store.append("people", people(3))
    read = tables.open(table.location)
    store.append("people", people(4))
    store.delete("people", "id = 1")
    newer = tables.open(table.location)
    assert (read.version(), newer.version()) == (2, 4)
    assert sorted(pa.table(read.scan(["id"])).column("id").to_pylist()) == [1, 2, 3]
    assert sorted(pa.table(newer.scan(["id"])).column("id").to_pylist()) == [2, 3, 4]


def test_a_change_of_a_table_that_took_the_place_of_another_is_a_change_of_that(
    store: DeltaStore, table: Table
) -> None:
    table.append(people(3))
    store.drop("people")
    with pytest.raises(TableNotFoundError):
        table.append(people(4))
    store.create("people", PEOPLE)
    for number in (7, 8):
        store.append("people", people(number))
    table.append(people(9))
    assert ids(store, "people") == [7, 8, 9]


@contextmanager
def no_file_can_be_opened() -> Generator[None]:
    """Take all descriptors that this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = os.open(os.devnull, os.O_RDONLY)
    taken = [first]
    resource.setrlimit(resource.RLIMIT_NOFILE, (first + 50, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("name", ["append", "delete", "delete all"])
def test_a_failing_look_at_the_log_is_told_as_if_the_table_were_opened_anew(table: Table, name: str) -> None:
    table.append(people(3))
    open_table(table.location).delete("id = 3")
    codes: list[str] = []
    for one in (table, kept(table)[0]):
        with no_file_can_be_opened(), pytest.raises(LakehouseError) as caught:
            CHANGES[name](one)
        codes.append(caught.value.code)
    assert codes[0] == codes[1]


def test_a_version_of_which_only_the_checkpoint_is_left_is_not_overlooked(table: Table) -> None:
    table.append(people(3))
    other = open_table(table.location)
    other.delete("id = 3")
    other.create_checkpoint()
    (table.location.path / commit_file(3)).unlink()
    assert table.version() == open_table(table.location).version() == 3
    with pytest.raises(LakehouseError):
        table.append(people(4))
    assert open_table(table.location).version() == 3


def test_a_copy_of_a_table_for_another_process_keeps_nothing(store: DeltaStore, table: Table) -> None:
    table.append(people(3))
    for copied in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert copied == table
        copied.append(people(4))
    assert ids(store, "people") == [1, 2, 3, 4, 4]


def test_threads_that_change_one_table_lose_nothing(store: DeltaStore, table: Table) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: table.append(people(number)), range(100, 140)))
    assert ids(store, "people") == [1, 2, *range(100, 140)]
    assert table.version() == 41


def test_after_some_changes_the_table_is_opened_anew_because_each_makes_the_next_slower(table: Table) -> None:
    table.append(people(3))
    damage(table)
    with pytest.raises(LakehouseError, match="log"):
        _append_some(table)
    assert 25 < _last_version(table) < 40


def _append_some(table: Table) -> None:
    for number in range(10, 60):
        table.append(people(number))


def _last_version(table: Table) -> int:
    """Return the newest version by the names of the log's files."""
    return max(int(path.stem) for path in (table.location.path / "_delta_log").glob("*.json"))
