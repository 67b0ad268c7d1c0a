from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform_tests.unit.cli.running import Run, document, error


@pytest.mark.parametrize("target", ["customers", "lakehouse/customers", "./lakehouse/customers"])
@pytest.mark.parametrize("table", ["data", "customers"])
def test_a_table_is_visible_as_data_and_under_its_name(run: Run, target: str, table: str) -> None:
    text = f"SELECT name FROM {table} WHERE id < 3 ORDER BY id"
    assert document(run("query", target, text, "--json")) == [{"name": "Alice A."}, {"name": "Bob"}]


def test_sql_joins_the_tables_of_the_lakehouse(run: Run) -> None:
    text = (
        "SELECT c.name, count(*) AS n FROM orders o JOIN customers c ON c.id = o.customer "
        "WHERE c.name IS NOT NULL GROUP BY c.name ORDER BY c.name"
    )
    assert document(run("sql", text, "--json")) == [{"name": "Alice A.", "n": 2}, {"name": "Bob", "n": 1}]


def test_rows_in_a_pipe_are_csv_with_null_as_an_empty_field(run: Run) -> None:
    assert run("query", "customers", "SELECT id, name FROM data ORDER BY id").stdout == (
        "id,name\n1,Alice A.\n2,Bob\n3,\n4,Dave\n"
    )


def test_a_table_in_a_pipe_tells_null_from_its_text_and_from_nothing(run: Run) -> None:
    shown = run("sql", "SELECT NULL AS a, 'NULL' AS b, '' AS c, 1.5 AS d", "--format", "table").stdout
    assert "| NULL | 'NULL' | '' | 1.5 |" in shown
    assert "(1 row)" in shown


def test_a_table_that_is_cut_says_how_many_rows_are_missing(run: Run) -> None:
    query = ["query", "customers", "SELECT id FROM data", "--format", "table", "--max-rows"]
    shown = run(*query, "1").stdout
    assert "… 3 more rows (4 rows;" in shown
    assert "(4 rows)" in run(*query, "0").stdout


def test_a_result_without_rows_is_an_empty_array_or_only_a_header(run: Run) -> None:
    text = "SELECT id FROM data WHERE id = 99"
    assert document(run("query", "customers", text, "--json")) == []
    assert run("query", "customers", text).stdout == "id\n"


def test_output_goes_to_a_file_in_the_form_of_its_extension(run: Run, workplace: Path) -> None:
    facts = document(run("query", "orders", "SELECT * FROM data", "--output", "out.parquet", "--json"))
    assert facts == {"file": "out.parquet", "format": "parquet", "rows": 4}
    assert pl.read_parquet(workplace / "out.parquet").height == 4


@pytest.mark.parametrize("name", ["o.csv", "o.json", "o.jsonl", "o.parquet", "o.arrow"])
def test_export_can_be_read_back(run: Run, workplace: Path, name: str) -> None:
    readers = {
        "csv": pl.read_csv, "json": pl.read_json, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet,
        "arrow": pl.read_ipc,
    }  # fmt: skip
    assert document(run("export", "orders", name, "--json"))["rows"] == 4
    frame = readers[name.rpartition(".")[2]](workplace / name).sort("id")
    assert frame.get_column("id").to_list() == [1, 2, 3, 4]
    assert frame.get_column("country").to_list() == ["FR", "DE", "FR", "DE"]


def test_export_takes_columns_in_order_and_a_predicate(run: Run, workplace: Path) -> None:
    run("export", "orders", "big.csv", "--columns", "amount,id", "--where", "amount > 200")
    assert (workplace / "big.csv").read_text() == "amount,id\n250.0,2\n"


def test_at_reads_a_version_whole_or_through_sql(run: Run) -> None:
    assert [row["name"] for row in document(run("at", "customers", "1", "--json")) if row["id"] == 1] == [
        "Alice"
    ]
    counted = run("at", "customers", "1", "SELECT count(*) AS n FROM data", "--json")
    assert document(counted) == [{"n": 3}]
    assert document(run("at", "customers", "0", "--json")) == []


def test_at_reads_a_time(run: Run) -> None:
    moment = document(run("history", "customers", "--json"))[2]["timestamp"]
    assert len(document(run("at", "customers", moment, "--json"))) == 3


@pytest.mark.parametrize(
    ("moment", "status", "code"),
    [
        ("99", 66, "version_not_found"),
        ("2001-01-01T00:00:00Z", 66, "timestamp_out_of_range"),
        ("2026-01-01", 2, "invalid_timestamp"),
        ("yesterday", 2, "invalid_timestamp"),
    ],
)
def test_a_moment_that_is_not_there_is_refused(run: Run, moment: str, status: int, code: str) -> None:
    refused = run("at", "customers", moment, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (status, code)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELEC 1", "invalid_sql"),
        ("SELECT nope FROM data", "invalid_sql"),
        ("DELETE FROM data", "sql_not_allowed"),
        ("CREATE TABLE x AS SELECT 1", "sql_not_allowed"),
        ("COPY data TO 'x.csv'", "sql_not_allowed"),
        ("SELECT 1; SELECT 2", "sql_not_allowed"),
    ],
)
def test_sql_that_is_wrong_or_writes_is_refused(run: Run, workplace: Path, text: str, code: str) -> None:
    refused = run("query", "customers", text, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (64, code)
    assert not (workplace / "x.csv").exists()


def test_an_unknown_table_is_named(run: Run) -> None:
    refused = run("query", "costumers", "SELECT 1", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (66, "table_not_found")
    assert "costumers" in error(refused)["message"]


def test_json_and_another_form_contradict_each_other(run: Run) -> None:
    refused = run("query", "customers", "SELECT 1", "--json", "--format", "csv")
    assert (refused.exit_code, json.loads(refused.stderr)["code"]) == (2, "usage")


def test_columns_of_one_name_are_shown_and_are_no_json(run: Run, workplace: Path) -> None:
    query = ["sql", "SELECT * FROM customers a JOIN customers b ON a.id + 1 = b.id WHERE a.id = 1"]
    assert run(*query).stdout == "id,name,id,name\n1,Alice A.,2,Bob\n"
    assert "| 1 | Alice A. | 2 | Bob |" in " ".join(run(*query, "--format", "table").stdout.split())
    for words in (["--json"], ["--output", "o.json", "--json"], ["--output", "o.parquet", "--json"]):
        refused = run(*query, *words)
        assert refused.exit_code == ExitStatus.QUERY
        assert (error(refused)["code"], error(refused)["details"]["columns"]) == (
            "invalid_sql",
            ["id", "name"],
        )
    assert not list(workplace.glob("o.*"))
