"""A change that is made at most once: the commit holds the request, and a second attempt finds it there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.model.origin import Origin
from lakehouse_platform.store.commit import AppTransaction, Once
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

ONCE = Once(AppTransaction("request-1", 1), {"why": "because", "lakehouse.actor": "somebody else"})


@pytest.fixture
def table(store: DeltaStore) -> Table:
    table = store.create("rides", pa.schema([("id", pa.int64()), ("town", pa.string())]))
    table.append([{"id": 1, "town": "Basel"}])
    return table.through(Origin(actor="u1"))


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append([{"id": 2}]),
        lambda table: table.overwrite([{"id": 2}]),
        lambda table: table.overwrite_where("id = 2", [{"id": 2}]),
        lambda table: table.delete("id = 1"),
        lambda table: table.update({"id": "id + 1"}),
        lambda table: table.merge([{"id": 2}], ["id"]),
    ],
    ids=["append", "overwrite", "overwrite_where", "delete", "update", "merge"],
)
def test_every_change_of_rows_can_be_made_once(table: Table, change: Callable[[Table], Any]) -> None:
    once = table.once(ONCE)
    change(once)
    rows = table.scan().to_arrow()
    change(once)
    assert table.version() == 2
    assert table.scan().to_arrow().equals(rows)
    assert table.landed("request-1") == (2, 1)
    info = table.commit_info(2)
    assert info is not None
    # What a request says about itself does not hide who acts.
    assert (info["why"], info["lakehouse.actor"]) == ("because", "u1")


def test_a_table_without_a_request_changes_as_often_as_it_is_told(table: Table) -> None:
    for _ in range(2):
        table.append([{"id": 2}])
    assert table.version() == 3
