"""A table as one sees it who must not see some of its columns: for every way of reading they do not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    InvalidPredicateError,
    InvalidSqlError,
    SchemaMismatchError,
    SqlNotAllowedError,
)
from lakehouse_platform.store import sql_pool
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.sql import SqlGuard
from lakehouse_platform.store.table import Table

SECRET = ("secret", "weight")
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "secret": ["a", "b", None],
        "kind": ["x", "x", "y"],
        "weight": [1.5, float("nan"), None],
        "height": [float("nan"), 2.5, None],
    }
)
BOTH = pytest.mark.parametrize("timeout", [None, 60.0], ids=["in process", "in a worker"])


@pytest.fixture
def whole(store: DeltaStore) -> Table:
    properties = {"delta.enableChangeDataFeed": "true"}
    table = store.create("people", ROWS.schema, partition_by=["kind"], properties=properties)
    table.append(ROWS)
    return table


@pytest.fixture
def narrow(whole: Table) -> Table:
    return whole.hiding(SECRET)


@pytest.fixture(autouse=True, scope="module")
def no_workers_left() -> Any:
    yield
    sql_pool.end_idle_workers()


def test_what_is_left_is_read_as_ever(narrow: Table) -> None:
    rows = narrow.scan(predicate="kind = 'x'")
    assert rows.schema.names == rows.to_arrow().column_names == ["id", "kind", "height"]
    assert sorted(rows.to_arrow()["id"].to_pylist()) == [1, 2]
    assert narrow.schema().to_arrow().names == narrow.arrow_schema().names == ["id", "kind", "height"]
    assert [column.name for column in narrow.info().columns] == ["id", "kind", "height"]
    assert narrow.diff(0, 1).column_names == ["_change_type", "id", "kind", "height"]
    feed = narrow.change_feed(1)
    assert not set(SECRET) & {*feed.schema.names, *feed.to_arrow().column_names}
    assert feed.to_arrow().num_rows == 3


Ask = Callable[[Table], Any]


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.scan(["secret"]),
        lambda table: table.query("secret = 'a'"),
        lambda table: table.query("\"secret\" LIKE 'a%'", 1),
        lambda table: table.scan(["id"], "coalesce(secret, 'z') > 'a'"),
        lambda table: table.skipping("secret > 'a'"),
    ],
    ids=["columns", "predicate", "quoted, by version", "inside a function", "skipping"],
)
def test_they_cannot_be_asked_about(narrow: Table, whole: Table, ask: Ask) -> None:
    ask(whole)
    with pytest.raises((SchemaMismatchError, InvalidPredicateError)):
        ask(narrow)


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM people ORDER BY id",
        "SELECT * FROM data WHERE height > 2 OR kind <> NULL OR TRUE",
        "SELECT * FROM people WHERE kind || '' = 'x' OR id > 0",
        "SELECT a.* FROM people a JOIN people b ON a.id = b.id",
        "SELECT * FROM people WHERE id IN (CASE WHEN id > 0 THEN id ELSE 7 END, 9)",
    ],
)
def test_sql_sees_what_is_left_whatever_stands_in_for_the_table(
    narrow: Table, text: str, timeout: float | None
) -> None:
    rows = narrow.sql(text, timeout=timeout).to_arrow()
    assert (rows.column_names, rows.num_rows) == (["id", "kind", "height"], 3)


@BOTH
def test_statistics_of_floats_are_still_hidden_from_the_engine(narrow: Table, timeout: float | None) -> None:
    (found,) = narrow.sql("SELECT count(*) AS n FROM data WHERE height > 2", timeout=timeout).to_pylist()
    # NaN is greater than every number, and no file's statistics say so.
    assert found == {"n": 2}


@BOTH
@pytest.mark.parametrize(
    "text",
    ["SELECT secret FROM data", "SELECT id FROM data WHERE weight > 1", "SELECT count(secret) FROM data"],
)
def test_sql_knows_no_such_column(narrow: Table, text: str, timeout: float | None) -> None:
    with pytest.raises(InvalidSqlError, match=r"secret|weight"):
        narrow.sql(text, timeout=timeout)


@BOTH
@pytest.mark.parametrize("text", ["EXPLAIN SELECT * FROM data", "EXPLAIN VERBOSE SELECT id FROM people"])
def test_plans_are_not_shown_for_they_hold_statistics(
    narrow: Table, whole: Table, text: str, timeout: float | None
) -> None:
    assert whole.sql(text, timeout=timeout).to_arrow().num_rows
    with pytest.raises(SqlNotAllowedError, match="hidden"):
        narrow.sql(text, timeout=timeout)


@BOTH
def test_a_guard_hides_by_table_and_asks_before_it_opens(
    store: DeltaStore, whole: Table, timeout: float | None
) -> None:
    store.create("towns", pa.schema([("secret", pa.string())]))
    admitted: list[str] = []
    opened: list[str] = []
    guard = SqlGuard(
        admitted.append, opened.append, lambda: ["towns"], lambda name: SECRET if name == "people" else ()
    )
    text = "SELECT t.secret, p.* FROM people p LEFT JOIN towns t ON TRUE"
    assert store.sql(text, timeout=timeout, guard=guard).schema.names == ["secret", "id", "kind", "height"]
    assert sorted(admitted) == sorted(opened) == ["people", "towns"]
    assert store.sql("SHOW TABLES", guard=guard).to_pylist() == [{"table_name": "towns"}]
    with pytest.raises(InvalidSqlError):
        store.sql("SELECT p.secret FROM people p, towns", timeout=timeout, guard=guard)


@BOTH
def test_no_table_can_be_taken_for_the_one_below_a_view(
    store: DeltaStore, whole: Table, timeout: float | None
) -> None:
    store.create("__base_of_people", ROWS.schema)
    guard = SqlGuard(lambda _: None, lambda _: None, list, lambda name: SECRET if name == "people" else ())
    for order in ("__base_of_people b, people", "people, __base_of_people b"):
        rows = store.sql(f"SELECT b.secret FROM {order}", timeout=timeout, guard=guard)
        assert rows.to_arrow().num_rows == 0
