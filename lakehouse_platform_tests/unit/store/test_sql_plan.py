"""How a query is planned: which tables are opened for it, and whether it gathers rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakehouse_platform.errors import TableNotFoundError
from lakehouse_platform.store.sql_plan import QueryPlan, plan_query


class _Lake:
    """Tables that note each time one is opened."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.opened: list[str] = []

    def __call__(self, name: str) -> DeltaTable:
        if not (self._root / name).is_dir():
            raise TableNotFoundError(f"Table {name!r} is unknown.", table=name)
        self.opened.append(name)
        return DeltaTable(str(self._root / name))

    def plan(self, text: str) -> QueryPlan:
        return plan_query(text, self)


@pytest.fixture
def lake(tmp_path: Path) -> _Lake:
    for name in ("t", "u"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1, 2], "name": ["a", "b"]}))
    return _Lake(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "SELECT id AS one, name FROM t WHERE id = 1 AND name <> 'b'",
        "SELECT name FROM (SELECT name FROM t WHERE id > 1) AS inner_one",
        "SELECT id FROM t LIMIT 1",
    ],
)
def test_a_query_through_which_rows_only_pass_holds_none(lake: _Lake, text: str) -> None:
    assert not lake.plan(text).holds_rows


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t ORDER BY id",
        "SELECT DISTINCT name FROM t",
        "SELECT name, count(*) FROM t GROUP BY name",
        "SELECT array_agg(name) FROM t",
        "SELECT row_number() OVER (ORDER BY id) FROM t",
        "SELECT t.id FROM t JOIN u ON t.id = u.id",
        "SELECT t.id FROM t, u",
        "SELECT id FROM t UNION SELECT id FROM u",
        "SELECT id FROM t EXCEPT SELECT id FROM u",
        "SELECT id FROM t WHERE id IN (SELECT id FROM u)",
        "SELECT (SELECT max(id) FROM u) FROM t",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
    ],
)
def test_a_query_that_may_gather_rows_is_held_to_the_memory_limit(lake: _Lake, text: str) -> None:
    assert lake.plan(text).holds_rows


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("SELECT id FROM t WHERE name = ' FROM u'", ["t"]),
        ("SELECT id FROM t /* JOIN u */ -- FROM u", ["t"]),
        ("SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id", ["t"]),
        ("SELECT id FROM t UNION ALL SELECT id FROM u", ["t", "u"]),
        ("WITH u AS (SELECT id FROM t) SELECT id FROM u", ["t"]),
    ],
)
def test_each_table_that_is_read_is_opened_once_and_no_other(lake: _Lake, text: str, read: list[str]) -> None:
    lake.plan(text)
    assert sorted(lake.opened) == read


def test_a_query_sees_nothing_of_the_tables_of_the_query_before(lake: _Lake, tmp_path: Path) -> None:
    lake.plan("SELECT id FROM t")
    elsewhere = _Lake(tmp_path / "empty")
    with pytest.raises(TableNotFoundError):
        elsewhere.plan("SELECT id FROM t")
