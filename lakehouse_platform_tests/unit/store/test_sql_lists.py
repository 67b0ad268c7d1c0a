"""IN lists with computed items, which the engine alone would take for constants."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from lakehouse_platform.store.sql import SqlLimits, SqlResult, run_sql
from lakehouse_platform.store.sql_lists import is_same_query, with_varying_items

ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "x": pa.array([1, 2, 3, None, 2, 7], pa.int64()),
        "y": pa.array([1, None, 3, 4, None, 8], pa.int64()),
        "f": [1.0, 2.0, None, 4.0, 2.0, 7.0],
        "s": ["a", "b", None, "c", "b", "d"],
        "u": ["a", None, "c", "c", None, "e"],
        "p": ["a", "a", "b", "b", "c", None],
    }
)
CASE = "CASE WHEN y = 3 THEN 3 WHEN y > 3 THEN NULL ELSE 2 END"
B_CASE = CASE.replace("y", "b.y")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = str(tmp_path_factory.mktemp("lists") / "t")
    write_deltalake(path, ROWS, partition_by=["p"])
    return DeltaTable(path)


def ours(text: str, table: DeltaTable) -> SqlResult:
    return run_sql(text, {"t": table}, SqlLimits())


def sorted_rows(columns: list[Any]) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True), key=str)


def test_the_engine_alone_still_takes_computed_items_for_constants(table: DeltaTable) -> None:
    """Once this fails, the engine is mended, and `sql_lists` can go."""
    builder = QueryBuilder().register("t", table)
    found = pa.table(builder.execute(f"SELECT id FROM t WHERE x + 0 IN (1, {CASE})"))
    assert found.column("id").to_pylist() != [0, 1, 2, 4]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT id FROM t WHERE x + 0 IN (1, {CASE})",
        f"SELECT id FROM t WHERE x + 0 NOT IN (1, {CASE})",
        f"SELECT id FROM t WHERE NOT (x + 0 IN ({CASE}, 1))",
        f"SELECT id FROM t WHERE x NOT IN (1, 5, 6, {CASE})",
        f"SELECT id FROM t WHERE 7 NOT IN (1, {CASE})",
        f"SELECT id, x + 0 NOT IN (1, {CASE}) AS c FROM t",
        f"SELECT id FROM t WHERE x + 0 IN (1, CAST({CASE} AS INT) + 0)",
        f"SELECT id FROM t WHERE x + 0 IN (1, abs({CASE}))",
        "SELECT id FROM t WHERE x + 0 IN (1, coalesce(y, x, 5))",
        "SELECT id FROM t WHERE s || '' IN ('q', coalesce(u, s, 'z'))",
        "SELECT id FROM t WHERE f + 0 NOT IN (1.0, CASE WHEN y = 3 THEN 3.0 WHEN y > 3 THEN NULL ELSE 2.0 END)",
        f"SELECT x + 0 IN (1, {CASE}) AS k, count(*) FROM t GROUP BY x + 0 IN (1, {CASE})",
        f"SELECT x + 0 IN (1, {CASE}), count(*) FROM t GROUP BY 1",
        f"SELECT DISTINCT x + 0 IN (1, {CASE}) FROM t",
        f"SELECT count(*) FILTER (WHERE x + 0 NOT IN (1, {CASE})) FROM t",
        "SELECT p FROM t GROUP BY p HAVING max(x) IN (7, CASE WHEN max(y) = 1 THEN 2 ELSE min(x) END)",
        f"SELECT sum(id) OVER (PARTITION BY x + 0 IN (1, {CASE})) FROM t",
        f"SELECT id FROM (SELECT id, x, {CASE} AS c FROM t) WHERE x + 0 NOT IN (1, c)",
        f"SELECT a.id FROM t a JOIN t b ON a.id = b.id AND a.x + 0 IN (1, {B_CASE})",
        f"SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id AND a.x + 0 IN (1, {B_CASE}) WHERE b.id IS NULL",
        f"SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = a.id AND a.x + 0 NOT IN (1, {B_CASE}))",
        f"SELECT id FROM t WHERE x IN (SELECT b.x FROM t b WHERE b.x + 0 IN (1, {B_CASE}))",
        f"SELECT id FROM t WHERE x + 0 IN (1, CASE WHEN x + 0 IN (2, {CASE}) THEN 2 ELSE 7 END)",
        f"SELECT id FROM t WHERE position('a' IN (s)) = 1 OR x + 0 IN (1, {CASE})",
    ],
)
def test_computed_items_of_lists_count(table: DeltaTable, text: str) -> None:
    with duckdb.connect() as duck:
        duck.register("t", ROWS)
        expected = duck.execute(text).to_arrow_table()
    assert sorted_rows(ours(text, table).to_arrow().columns) == sorted_rows(expected.columns)


def test_items_are_computed_for_rows_that_are_ordered(table: DeltaTable) -> None:
    text = f"SELECT id FROM t ORDER BY x + 0 NOT IN (1, {CASE}) NULLS FIRST, id"
    assert ours(text, table).to_arrow().column("id").to_pylist() == [3, 5, 0, 1, 2, 4]


def test_columns_keep_the_names_that_the_text_gives_them(table: DeltaTable) -> None:
    result = ours("SELECT x + 0 IN (1, CASE WHEN y = 1 THEN 1 ELSE x END), id FROM t", table)
    assert result.schema.names[1] == "id"
    assert result.schema.names[0].startswith("t.x + Int64(0) IN Int64(1), CASE WHEN")
    assert result.to_arrow().schema == result.schema


@pytest.mark.parametrize(
    "marked",
    [
        "a IN (1, -2.5, 'x, (', NULL)",
        "a NOT IN («b»)",
        "a IN («f(b, c)»,«[d, e][1]», 3)",
        "a IN («{'k': b, 'l': c}['k']»)",
        "a IN /* x */ («b -- , c)\n»)",
        "a IN (1,«CASE WHEN b IN (2,«c») THEN d END»)",
        "a IN (SELECT b) AND c IN ((SELECT d)) AND e IN (VALUES (f))",
        "' IN (a)' || \" IN (b)\" || E'\\' IN (c)' || $$ IN (d)$$ -- IN (e)",
    ],
)
def test_only_computed_items_of_lists_are_rewritten(marked: str) -> None:
    before, after = "array_element(make_array(", "), 1 + CAST(0 * random() AS BIGINT))"
    text = marked.replace("«", "").replace("»", "")
    assert with_varying_items(text) == marked.replace("«", before).replace("»", after)


def test_another_query_is_not_the_same_query() -> None:
    assert is_same_query("Projection: a, b", "Projection: b, make_array(a)[Int64(1) + Int64(0) * random()]")
    assert not is_same_query("Projection: a, b", "Projection: a, c")
