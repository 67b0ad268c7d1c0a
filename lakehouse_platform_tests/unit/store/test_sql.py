"""Read-only SQL: the sandbox, right answers, limits, and workers that can be ended."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakehouse_platform.errors import InvalidSqlError, QueryLimitError, SqlNotAllowedError, TableNotFoundError
from lakehouse_platform.store import sql_pool
from lakehouse_platform.store.sql import SqlLimits, SqlResult, run_sql
from lakehouse_platform.text.json_write import table_to_json

FREE = SqlLimits()
APART = SqlLimits(memory_mb=256, timeout_seconds=60)
ENDLESS = (
    "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h WHERE a.id + b.id + c.id + d.id + e.id < -1"
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DeltaTable]:
    root = tmp_path_factory.mktemp("sql")
    names = pa.array([f"name {number}" for number in range(200)], pa.string())
    numbers = pa.array(range(200), pa.int64())
    floats = pa.table({"id": [0, 1], "f": [1.0, float("nan")]})
    prices = pa.table({"id": [0, 1], "price": pa.array([Decimal("1234.56"), None], pa.decimal128(10, 2))})
    parts = pa.table({"id": [0, 1, 2], "p": ["a", "a", None], "q": ["a", "b", "b"]})
    nested = pa.table({"tags": [["x", None]], "who": [{"name": "é", "raw": b"\x00"}]})
    write_deltalake(str(root / "t"), pa.table({"id": numbers, "name": names}))
    write_deltalake(str(root / "floats"), floats)
    write_deltalake(str(root / "prices"), prices)
    write_deltalake(str(root / "parts"), parts, partition_by=["p", "q"])
    write_deltalake(str(root / "nested"), nested)
    opened = {path.name: DeltaTable(str(path)) for path in root.iterdir()}
    return {**opened, "Mixed.case-name": opened["floats"]}


@pytest.fixture(autouse=True, scope="module")
def no_workers_left() -> Iterator[None]:
    yield
    sql_pool.end_idle_workers()


@pytest.fixture
def idle_worker(tables: dict[str, DeltaTable]) -> int:
    """The process id of the only idle worker."""
    sql_pool.end_idle_workers()
    rows("SELECT 1", tables, APART)
    (process,) = sql_pool.idle_processes()
    return process


def rows(text: str, tables: dict[str, DeltaTable], limits: SqlLimits = FREE) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in run_sql(text, tables, limits).to_pylist()]


def column(text: str, tables: dict[str, DeltaTable]) -> list[object]:
    return [row[0] for row in rows(text, tables)]


@pytest.mark.parametrize("limits", [FREE, APART])
@pytest.mark.parametrize(
    "text",
    [
        "COPY t TO '{victim}'",
        "COPY (SELECT 1) TO '{victim}' STORED AS CSV",
        "/* x */ -- y\n COPY t TO '{victim}'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE TABLE x AS SELECT 1",
        "CREATE VIEW x AS SELECT 1",
        "SELECT * INTO x FROM t",
        "DROP TABLE t",
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET id = 1",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        "SET datafusion.execution.batch_size = 1",
        "RESET datafusion.execution.batch_size",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "BEGIN",
        "GRANT ALL ON t TO x",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "EXPLAIN COPY t TO '{victim}'",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1, 'a')",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT 1, 'a'",
    ],
)
def test_whatever_is_not_one_reading_statement_is_not_allowed(
    tables: dict[str, DeltaTable], tmp_path: Path, text: str, limits: SqlLimits
) -> None:
    victim = tmp_path / "victim.csv"
    with pytest.raises((SqlNotAllowedError, InvalidSqlError)):
        run_sql(text.format(victim=victim), tables, limits).to_arrow()
    assert not victim.exists()
    assert column("SELECT count(*) FROM t", tables) == [200]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM "/etc/passwd"',
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('x')",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_tables",
        'SELECT * FROM "base of floats"',
        "SHOW ALL",
        "SHOW datafusion.execution.batch_size",
    ],
)
def test_nothing_but_the_tables_can_be_read(tables: dict[str, DeltaTable], text: str) -> None:
    with pytest.raises((TableNotFoundError, InvalidSqlError, SqlNotAllowedError)):
        run_sql(text, tables, FREE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("-- only a comment", "empty"),
        ("SELEC 1", "SELEC"),
        ("SELECT nothing FROM t", "nothing"),
        ("SELECT id FROM t WHERE", "not valid"),
        ("SELECT foo(id) FROM t", "foo"),
        ("SELECT ID FROM t", "ID"),
        ("SELECT id FROM t WHERE id = $1", ""),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "RecursionLimit"),
        ("SELECT " + "x" * 300_000, "characters"),
        ("/**/" * 5_000 + "(", "not valid"),
    ],
)
def test_texts_that_do_not_fit_are_invalid(tables: dict[str, DeltaTable], text: str, reason: str) -> None:
    with pytest.raises(InvalidSqlError) as caught:
        run_sql(text, tables, FREE).to_arrow()
    assert reason in caught.value.message
    assert "\x1b" not in caught.value.message
    assert "backtrace" not in caught.value.message


def test_unknown_tables_are_named_with_what_is_close(tables: dict[str, DeltaTable]) -> None:
    with pytest.raises(TableNotFoundError, match="'prices'"):
        run_sql("SELECT * FROM price", tables, FREE)


@pytest.mark.parametrize("limits", [FREE, APART])
def test_only_the_tables_that_a_query_reads_are_opened(
    tables: dict[str, DeltaTable], limits: SqlLimits
) -> None:
    opened: list[str] = []

    def open_table(name: str) -> DeltaTable:
        opened.append(name)
        return tables[name]

    text = "WITH prices AS (SELECT id FROM t) SELECT count(*) AS n FROM prices JOIN floats USING (id)"
    assert run_sql(text, open_table, limits).to_pylist() == [{"n": 2}]
    assert sorted(opened) == ["floats", "t"]


@pytest.mark.parametrize("limits", [FREE, APART])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT name FROM t WHERE id = 7", [("name 7",)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("(SELECT 1)", [(1,)]),
        ('SELECT id FROM "Mixed.case-name" WHERE f < 2', [(0,)]),
        ("SELECT count(*) FROM generate_series(1, 3)", [(3,)]),
        ("SELECT tags, who FROM nested", [(["x", None], {"name": "é", "raw": b"\x00"})]),
        ("SELECT id FROM t WHERE name = 'NULL; DROP TABLE t --'", []),
        ("SELECT 1;", [(1,)]),
        ("SHOW TABLES", [("Mixed.case-name",), ("floats",), ("nested",), ("parts",), ("prices",), ("t",)]),
    ],
)
def test_queries_are_answered(
    tables: dict[str, DeltaTable], text: str, expected: list[tuple[object, ...]], limits: SqlLimits
) -> None:
    assert rows(text, tables, limits) == expected


def test_describe_and_explain_are_allowed(tables: dict[str, DeltaTable]) -> None:
    assert rows("DESCRIBE t", tables)[0][0] == "id"
    assert run_sql("EXPLAIN SELECT * FROM t", tables, FREE).to_arrow().num_rows >= 1


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id NOT IN (1, NULL)", 0),
        ("id > 1 AND NULL", 0),
        ("NOT (id BETWEEN 5 AND NULL)", 5),
        ("id = nullif(1, 1)", 0),
        ("id = CAST(NULL AS INT)", 0),
        ("CASE WHEN id > 5 THEN NULL ELSE TRUE END", 6),
        ("id > (SELECT max(id) FROM t WHERE id < 0)", 0),
        ("id > 197 OR NULL", 2),
    ],
)
def test_null_in_conditions_keeps_no_wrong_row(
    tables: dict[str, DeltaTable], condition: str, expected: int
) -> None:
    assert column(f"SELECT count(*) FROM t WHERE {condition}", tables) == [expected]


def test_a_failing_constant_is_an_error_and_not_every_row(tables: dict[str, DeltaTable]) -> None:
    with pytest.raises(InvalidSqlError, match="Divide by zero"):
        run_sql("SELECT * FROM t WHERE 1 / 0 = 1", tables, FREE).to_arrow()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM floats WHERE f < 2", [0]),
        ("SELECT id FROM floats WHERE f > 2", [1]),
        ("SELECT id FROM floats WHERE f = 1.0", [0]),
        ("SELECT id FROM floats ORDER BY f DESC LIMIT 1", [1]),
        ("SELECT count(*) FROM floats WHERE f = (SELECT max(f) FROM floats)", [1]),
        ("SELECT id FROM (SELECT id, f * 2 AS g FROM floats) WHERE g < 3", [0]),
        ("SELECT isnan(max(f)) FROM floats", [True]),
        ("SELECT max(f) < 2 FROM floats GROUP BY id ORDER BY id", [True, False]),
        ("SELECT max(id) FROM floats GROUP BY id HAVING max(f) > 2", [1]),
        ("SELECT f FROM (SELECT f AS id, id AS f FROM floats) WHERE id > 2", [1]),
    ],
)
def test_nan_is_greater_than_every_number(
    tables: dict[str, DeltaTable], text: str, expected: list[int]
) -> None:
    assert column(text, tables) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("p = q", [0]),
        ("p <> p", []),
        ("lower(p) = q", [0]),
        ("p = 'a' AND q = 'b'", [1]),
        ("(p IN ('a', 'c')) IS NULL", [2]),
        ("(p = 'a') IS NOT NULL", [0, 1]),
        ("(p <> 'a') IS NULL", [2]),
        ("p IN (q, 'w', 'x', 'y', 'z')", [0]),
        ("'a' IN (p, q, 'w', 'x', 'y')", [0, 1]),
        ("contains(p, 'a')", [0, 1]),
        ("contains(p, 'a') AND id > 0", [1]),
    ],
)
def test_partition_columns_are_compared_row_by_row(
    tables: dict[str, DeltaTable], condition: str, expected: list[int]
) -> None:
    assert column(f"SELECT id FROM parts WHERE {condition} ORDER BY id", tables) == expected


def test_a_changed_schema_is_noticed(tmp_path: Path) -> None:
    """The planner keeps what it knows of schemas; the same text must be read by the newest one."""
    text, path = "SELECT * FROM v WHERE id > 0", str(tmp_path / "v")
    for number in (pa.array([1], pa.int64()), pa.array([1.5]), pa.array([Decimal("1.50")])):
        write_deltalake(path, pa.table({"id": number}), mode="overwrite", schema_mode="overwrite")
        found = run_sql(text, {"v": DeltaTable(path)}, FREE).to_arrow()
        assert found.column("id").to_pylist() == number.to_pylist()


def test_threads_plan_at_the_same_time(tables: dict[str, DeltaTable]) -> None:
    def answers(number: int) -> bool:
        name = ["t", "prices", "floats"][number % 3]
        return column(f"SELECT count(*) FROM {name} WHERE id = 1", tables) == [1]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(answers, range(60)))


def test_a_query_sees_no_table_of_the_query_before(tables: dict[str, DeltaTable]) -> None:
    assert column("SELECT count(*) FROM t", tables) == [200]
    with pytest.raises(TableNotFoundError):
        run_sql("SELECT count(*) FROM t", {"floats": tables["floats"]}, FREE)


def test_numbers_with_a_point_equal_decimals(tables: dict[str, DeltaTable]) -> None:
    assert column("SELECT id FROM prices WHERE price = 1234.56", tables) == [0]


@pytest.mark.parametrize("limits", [FREE, APART])
def test_results_have_plain_types_and_can_be_read_again(
    tables: dict[str, DeltaTable], limits: SqlLimits
) -> None:
    result = run_sql("SELECT name, tags, who FROM t, nested WHERE id = 3", tables, limits)
    assert result.schema.field("name").type == pa.string()
    assert result.schema.field("tags").type.value_type == pa.string()
    assert result.schema.field("who").type.field("raw").type == pa.binary()
    assert result.to_arrow().schema == result.schema
    assert result.to_polars().height == 1
    assert result.reader().read_all().num_rows == 1


def test_a_table_may_be_any_version(tables: dict[str, DeltaTable], tmp_path: Path) -> None:
    path = str(tmp_path / "versions")
    for number in range(2):
        write_deltalake(path, pa.table({"id": [number]}), mode="append")
    for limits in (FREE, APART):
        old = {"v": DeltaTable(path, version=0)}
        assert run_sql("SELECT id FROM v", old, limits).to_pylist() == [{"id": 0}]


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_too_many_rows_are_an_error_and_never_cut(
    tables: dict[str, DeltaTable], timeout: float | None
) -> None:
    limits = SqlLimits(max_rows=199, timeout_seconds=timeout)
    with pytest.raises(QueryLimitError, match="more than 199 rows"):
        run_sql("SELECT * FROM t", tables, limits).to_arrow()
    assert run_sql("SELECT * FROM t LIMIT 199", tables, limits).to_arrow().num_rows == 199


def test_too_much_memory_is_an_error(tables: dict[str, DeltaTable]) -> None:
    text = "SELECT a.id, array_agg(b.name || c.name) FROM t a, t b, t c GROUP BY a.id"
    with pytest.raises(QueryLimitError, match="16 MB"):
        run_sql(text, tables, SqlLimits(memory_mb=16)).to_arrow()


def test_a_query_that_takes_too_long_is_ended_and_the_next_one_runs(tables: dict[str, DeltaTable]) -> None:
    with pytest.raises(QueryLimitError, match=r"longer than 1.5 s"):
        run_sql(ENDLESS, tables, SqlLimits(timeout_seconds=1.5)).to_arrow()
    assert rows("SELECT 1", tables, APART) == [(1,)]


def test_planning_that_takes_too_long_is_ended_too(tables: dict[str, DeltaTable]) -> None:
    with pytest.raises(QueryLimitError, match="longer than"):
        run_sql("SELECT " + "1+" * 8_000 + "1", tables, SqlLimits(timeout_seconds=1.5)).to_arrow()


def test_workers_are_reused(tables: dict[str, DeltaTable], idle_worker: int) -> None:
    rows("SELECT 2", tables, APART)
    with pytest.raises(InvalidSqlError):
        rows("SELECT x FROM t", tables, APART)
    assert sql_pool.idle_processes() == [idle_worker]


def test_a_killed_worker_is_replaced(tables: dict[str, DeltaTable], idle_worker: int) -> None:
    os.kill(idle_worker, signal.SIGKILL)
    os.waitid(os.P_PID, idle_worker, os.WEXITED | os.WNOWAIT)
    assert rows("SELECT 2", tables, APART) == [(2,)]
    assert idle_worker not in sql_pool.idle_processes()


def test_a_worker_that_dies_in_a_query_is_an_error(tables: dict[str, DeltaTable], idle_worker: int) -> None:
    killer = threading.Timer(0.5, os.kill, (idle_worker, signal.SIGKILL))
    killer.start()
    with pytest.raises(QueryLimitError, match="ended by itself"):
        run_sql(ENDLESS, tables, APART).to_arrow()
    killer.join()


def test_a_result_that_is_dropped_half_read_leaves_no_process(
    tables: dict[str, DeltaTable], idle_worker: int
) -> None:
    result: SqlResult | None = run_sql("SELECT a.id FROM t a, t b, t c", tables, APART)
    assert result is not None
    assert sql_pool.idle_processes() == []
    del result
    gc.collect()
    assert not Path(f"/proc/{idle_worker}").exists()


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """Even one that computes, and even when the parent is killed without a chance to clean up."""
    write_deltalake(str(tmp_path / "t"), pa.table({"id": pa.array(range(1000), pa.int64())}))
    script = f"""
import os, sys, threading
from deltalake import DeltaTable
from lakehouse_platform.store import sql_pool
from lakehouse_platform.store.sql import SqlLimits, run_sql
tables = {{"t": DeltaTable({str(tmp_path / "t")!r})}}
run_sql("SELECT 1", tables, SqlLimits(timeout_seconds=60)).to_arrow()
print(sql_pool.idle_processes()[0], flush=True)
run_sql({ENDLESS!r}, tables, SqlLimits(timeout_seconds=60)).to_arrow()
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    worker = int(parent.stdout.readline())
    pidfd = os.pidfd_open(worker)
    parent.kill()
    parent.communicate()
    assert _ended(pidfd)


def _ended(pidfd: int) -> bool:
    ready, _, _ = select.select([pidfd], [], [], 20)
    os.close(pidfd)
    return bool(ready)


def test_secrets_are_not_in_the_list_of_processes(idle_worker: int) -> None:
    command = Path(f"/proc/{idle_worker}/cmdline").read_bytes().split(b"\0")
    assert command[1:3] == [b"-m", b"lakehouse_platform.store.sql_worker"]
    assert not b"".join(command[3:])


@pytest.mark.parametrize("limits", [FREE, APART], ids=["here", "apart"])
def test_a_query_with_columns_of_one_name_gives_arrow_and_no_dictionaries(
    tables: dict[str, DeltaTable], limits: SqlLimits
) -> None:
    result = run_sql("SELECT a.id, b.id FROM t a JOIN t b ON a.id + 1 = b.id WHERE a.id = 7", tables, limits)
    assert [column.to_pylist() for column in result.to_arrow().columns] == [[7], [8]]
    for convert in (result.to_pylist, result.to_polars, lambda: table_to_json(result.to_arrow())):
        with pytest.raises(InvalidSqlError, match=r"'id'.* AS"):
            convert()


def test_a_name_that_is_given_twice_in_one_list_is_refused_by_the_planner(
    tables: dict[str, DeltaTable],
) -> None:
    for text in ("SELECT 1 AS a, 2 AS a", "SELECT id, id FROM t", "SELECT *, id FROM t"):
        with pytest.raises(InvalidSqlError, match="AS"):
            run_sql(text, tables, FREE)
