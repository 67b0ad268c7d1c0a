"""Queries of the mount end by themselves, whatever they ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_platform.errors import QueryLimitError
from lakehouse_platform.nfs.tree.sql_door import SqlDoor, result_csv
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE, people


@pytest.fixture
def door(store: DeltaStore) -> SqlDoor:
    table = store.table("people")
    table.create(PEOPLE)
    table.append(people(1, 2))
    return SqlDoor(table, list, store.table)


def test_a_query_that_would_run_for_years_is_ended_and_the_next_is_answered(door: SqlDoor) -> None:
    with pytest.raises(QueryLimitError, match=r"longer than 0\.5 s"):
        replace(door, seconds=0.5).run(
            b"SELECT count(*) FROM range(100000000000) a, range(1000) b"
        ).reader().read_all()
    assert result_csv(door.run(b"SELECT count(*) AS n FROM data")) == b"n\n2\n"


def test_a_value_that_is_too_large_for_a_file_is_refused_before_it_is_rendered(door: SqlDoor) -> None:
    with pytest.raises(QueryLimitError, match="larger than 1 MiB"):
        result_csv(door.run(b"SELECT repeat('x', 2000000) AS large FROM data"), most=1 << 20)
