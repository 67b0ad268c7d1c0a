from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from lakehouse_platform_tests.unit.cli.running import Run, document, error

SYSTEM = ["api_keys", "audit_log", "grants", "sessions", "user_actions", "users"]


def test_init_creates_the_system_tables_once(run: Run) -> None:
    assert sorted(document(run("init", "--base-path", "second", "--json"))["created"]) == SYSTEM
    assert document(run("init", "--base-path", "second", "--json"))["created"] == []


def test_tables_are_listed_with_their_figures(run: Run) -> None:
    listed = {row["name"]: row for row in document(run("tables", "--json"))}
    assert sorted(listed) == sorted([*SYSTEM, "customers", "orders"])
    assert (listed["customers"]["rows"], listed["orders"]["files"]) == (4, 2)


def test_tables_in_a_pipe_are_csv(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("tables").stdout)))
    assert {row["name"]: row["rows"] for row in rows}["orders"] == "4"


def test_create_takes_not_null_and_a_composite_key(run: Run) -> None:
    run("create", "t", "--schema", "a:Int32 not null,b:String,c:Decimal(10,2)", "--primary-key", "a,b")
    facts = document(run("schema", "t", "--json"))
    assert facts["primary_key"] == ["a", "b"]
    assert facts["columns"] == [
        {"name": "a", "type": "Int32", "nullable": False},
        {"name": "b", "type": "String", "nullable": False},
        {"name": "c", "type": "Decimal(10,2)", "nullable": True},
    ]


def test_the_schema_text_creates_the_same_table_again(run: Run) -> None:
    text = run("schema", "customers").stdout.strip()
    run("create", "again", "--schema", text, "--primary-key", "id")
    assert run("schema", "again").stdout == run("schema", "customers").stdout


def test_the_schema_as_sql_is_a_create_table_statement(run: Run) -> None:
    assert run("schema", "customers", "--sql").stdout.startswith("CREATE TABLE customers (")


def test_create_from_csv_infers_types_and_says_how_many_rows(run: Run) -> None:
    facts = document(run("create", "copied", "--from-csv", "orders.csv", "--json"))
    assert (facts["rows"], facts["version"]) == (4, 0)
    types = [column["type"] for column in document(run("schema", "copied", "--json"))["columns"]]
    assert types == ["Int64", "Int64", "Float64", "String"]


def test_create_from_csv_takes_a_delimiter_and_all_rows_for_the_types(run: Run, workplace: Path) -> None:
    lines = ["n;code", *(f"{number};{number}" for number in range(50)), "x;007"]
    (workplace / "late.csv").write_text("\n".join(lines))
    refused = error(run("create", "t", "--from-csv", "late.csv", "--delimiter", ";", "--json"))
    assert refused["code"] == "source_format"
    assert "Line 52" in refused["message"]
    assert run("create", "t", "--from-csv", "late.csv", "--infer", "all", "--delimiter", ";").exit_code == 0
    assert document(run("schema", "t", "--json"))["columns"][0]["type"] == "String"


def test_create_from_parquet_takes_a_pattern(run: Run) -> None:
    assert document(run("create", "t", "--from-parquet", "more/*.parquet", "--json"))["rows"] == 2


def test_create_takes_partitions_and_properties(run: Run) -> None:
    words = [
        "--partition-by",
        "country",
        "--property",
        "delta.appendOnly=true",
        "--description",
        "from abroad",
    ]
    assert run("create", "t", "--from-csv", "orders.csv", *words).exit_code == 0
    facts = document(run("describe", "t", "--json"))
    assert facts["partition_columns"] == ["country"]
    assert facts["properties"]["delta.appendOnly"] == "true"
    assert facts["description"] == "from abroad"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--schema", "a:Int32", "--from-csv", "orders.csv"],
        ["--from-csv", "orders.csv", "--from-parquet", "more/*.parquet"],
        ["--schema", "a:Int32", "--infer", "all"],
        ["--from-parquet", "more/*.parquet", "--delimiter", ";"],
    ],
)
def test_create_wants_exactly_one_source_and_only_its_options(run: Run, words: list[str]) -> None:
    refused = run("create", "t", *words, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (2, "usage")
    assert "t" not in [row["name"] for row in document(run("tables", "--names", "--json"))]


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["customers", "--schema", "a:Int32"], 73, "table_exists"),
        (["more", "--schema", "a:Int32"], 73, "directory_not_empty"),
        (["t", "--schema", "a:Int33"], 2, "invalid_schema"),
        (["t", "--schema", "a"], 2, "invalid_schema"),
        (["t", "--schema", "a:Int32", "--primary-key", "b"], 65, "schema_mismatch"),
        (["t", "--from-csv", "absent.csv"], 66, "source_not_found"),
        (["t", "--schema", "a:Int32", "--property", "x=1"], 2, "invalid_property"),
        (["a[b", "--schema", "a:Int32"], 2, "invalid_name"),
    ],
)
def test_create_refuses_with_its_own_status(run: Run, words: list[str], status: int, code: str) -> None:
    result = run("create", *words, "--json")
    assert result.exit_code == status, result.output
    assert not code or json.loads(result.stderr)["code"] == code


def test_a_table_outside_the_lakehouse_is_reached_by_its_path(run: Run, workplace: Path) -> None:
    assert run("create", "./elsewhere/t", "--schema", "id:Int32").exit_code == 0
    assert (workplace / "elsewhere" / "t" / "_delta_log").is_dir()
    run("insert", f"{workplace}/elsewhere/t", '{"id": 1}')
    assert document(run("query", "elsewhere/t", "SELECT * FROM t", "--json")) == [{"id": 1}]


def test_drop_deletes_the_table_only_when_agreed(run: Run, workplace: Path) -> None:
    refused = run("drop", "orders")
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert (workplace / "lakehouse" / "orders").exists()
    assert document(run("drop", "orders", "--yes", "--json"))["table"] == "orders"
    assert not (workplace / "lakehouse" / "orders").exists()


def test_describe_shows_everything_as_lines(run: Run) -> None:
    lines = run("describe", "customers").stdout.splitlines()
    assert "name: customers" in lines
    assert "primary_key: id" in lines


def test_a_damaged_table_does_not_hide_the_others(run: Run, workplace: Path) -> None:
    (workplace / "lakehouse" / "orders" / "_delta_log" / f"{0:020}.json").write_text("rubbish")
    listed = {row["name"]: row for row in document(run("tables", "--json"))}
    assert listed["orders"]["error"]
    assert listed["customers"]["rows"] == 4
    assert run("tables").stdout.splitlines()[0].endswith(",error")


def test_an_empty_directory_becomes_the_table_of_its_name(run: Run, workplace: Path) -> None:
    (workplace / "storage").mkdir()
    run("create", "storage", "--schema", "id:Int32,name:String,email:String")
    assert (workplace / "storage" / "_delta_log").is_dir()
    run("insert", "storage", '{"id": 1, "name": "Alice", "email": "alice@example.com"}')
    assert document(run("query", "storage", "SELECT name FROM data", "--json")) == [{"name": "Alice"}]
