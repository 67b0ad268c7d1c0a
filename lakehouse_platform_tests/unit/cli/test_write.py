from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform_tests.unit.cli.running import Run, document, error


def names(run: Run) -> dict[int, str | None]:
    rows = document(run("query", "customers", "SELECT id, name FROM data ORDER BY id", "--json"))
    return {row["id"]: row["name"] for row in rows}


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 5, "name": "E"}',
        '[{"id": 5, "name": "E"}]',
        '{"id": 5,\n "name": "E"}\n',
        '\ufeff[{"id": 5, "name": "E"}]\r\n',
    ],
)
def test_rows_come_as_an_argument_from_a_file_or_through_a_pipe(run: Run, workplace: Path, text: str) -> None:
    (workplace / "in.json").write_text(text)
    for words, stdin in (([text], None), (["--file", "in.json"], None), (["--file", "-"], text), ([], text)):
        facts = document(run("insert", "customers", *words, "--json", stdin=stdin))
        assert facts["rows"] == 1
        assert names(run)[5] == "E"
        run("delete", "customers", "--where", "id = 5")


def test_json_lines_are_one_commit(run: Run) -> None:
    lines = "".join(f'{{"id": {number}, "name": "n"}}\n' for number in range(100, 2100))
    facts = document(run("insert", "customers", "--json", stdin=lines))
    assert (facts["rows"], facts["version"]) == (2000, 4)
    assert len(names(run)) == 2004


@pytest.mark.parametrize(
    ("rows", "status", "code"),
    [
        ('{"id": 5', 65, "invalid_rows"),
        ("[1]", 65, "invalid_rows"),
        ('{"id": "five"}', 65, "invalid_rows"),
        ('{"id": 5, "nick": "E"}', 65, "invalid_rows"),
        ('{"id": 99999999999}', 65, "invalid_rows"),
        ('{"name": "no id"}', 65, "invalid_rows"),
        ('{"id": 1, "name": "again"}', 65, "duplicate_key"),
        ("7", 65, "invalid_rows"),
    ],
)
def test_rows_that_do_not_fit_change_nothing(run: Run, rows: str, status: int, code: str) -> None:
    before = names(run)
    refused = run("insert", "customers", "--json", stdin=rows)
    assert (refused.exit_code, error(refused)["code"]) == (status, code)
    assert names(run) == before


def test_no_rows_are_no_commit(run: Run) -> None:
    facts = document(run("insert", "customers", "--json", stdin=""))
    assert (facts["rows"], facts["version"]) == (0, 3)


def test_rows_and_a_file_together_are_a_usage_error(run: Run) -> None:
    assert run("insert", "customers", "{}", "--file", "rows.json").exit_code == 2


def test_a_file_that_is_missing_is_named(run: Run) -> None:
    refused = run("insert", "customers", "--file", "absent.json", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (66, "source_not_found")


@pytest.mark.parametrize(
    ("file", "rows"), [("new_orders.csv", 1), ("new_orders.jsonl", 1), ("more/*.parquet", 2)]
)
def test_append_takes_csv_json_lines_and_parquet_in_one_commit(run: Run, file: str, rows: int) -> None:
    facts = document(run("append", "orders", file, "--json"))
    assert (facts["rows"], facts["version"]) == (rows, 1)
    assert document(run("stats", "orders", "--json"))["rows"] == 4 + rows


def test_append_refuses_a_file_of_an_unknown_kind(run: Run, workplace: Path) -> None:
    (workplace / "rows.xlsx").write_text("x")
    assert run("append", "orders", "rows.xlsx").exit_code == 65


def test_append_names_line_and_column_of_a_value_that_does_not_fit(run: Run, workplace: Path) -> None:
    (workplace / "bad.csv").write_text("id,customer,amount,country\n5,1,1.0,FR\n6,1,much,FR\n")
    refused = error(run("append", "orders", "bad.csv", "--json"))
    assert refused["code"] == "source_format"
    assert "Line 3" in refused["message"]
    assert "amount" in refused["message"]
    assert document(run("stats", "orders", "--json"))["version"] == 0


def test_append_adds_columns_only_when_told(run: Run, workplace: Path) -> None:
    (workplace / "wide.csv").write_text("id,customer,amount,country,note\n5,1,1.0,FR,new\n")
    assert run("append", "orders", "wide.csv").exit_code == 65
    assert run("append", "orders", "wide.csv", "--evolve").exit_code == 0
    rows = document(run("query", "orders", "SELECT note FROM data WHERE id = 5", "--json"))
    assert rows == [{"note": "new"}]


def test_merge_updates_inserts_and_deletes_in_one_commit(run: Run) -> None:
    rows = '[{"id": 1, "name": "A"}, {"id": 5, "name": "E"}, {"id": 2, "_op": "DELETE"}]'
    facts = document(run("merge", "customers", rows, "--json"))
    assert facts == {
        "table": "customers",
        "version": 4,
        "rows_inserted": 1,
        "rows_updated": 1,
        "rows_deleted": 1,
    }
    assert names(run) == {1: "A", 3: None, 4: "Dave", 5: "E"}


def test_merge_by_named_columns(run: Run) -> None:
    row = '{"id": 1, "customer": 9, "amount": 1.0, "country": "FR"}'
    assert document(run("merge", "orders", row, "--on", "id", "--json"))["rows_updated"] == 1


def test_merge_refuses_a_key_that_stands_twice(run: Run) -> None:
    refused = run("merge", "customers", '[{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]', "--json")
    assert (refused.exit_code, error(refused)["code"]) == (65, "duplicate_key")


def test_update_takes_expressions_with_equals_signs(run: Run) -> None:
    expression = "name=CASE WHEN id = 1 THEN 'one' ELSE name END"
    assert document(run("update", "customers", "--set", expression, "--json"))["rows_updated"] == 4
    assert names(run)[1] == "one"


def test_delete_needs_a_predicate(run: Run) -> None:
    assert run("delete", "customers").exit_code == 2
    assert document(run("delete", "customers", "--where", "name IS NULL", "--json"))["rows_deleted"] == 1


@pytest.mark.parametrize("predicate", ["nme = 1", "id = 1; DROP TABLE x", "id", "id = 1 extra"])
def test_a_predicate_that_is_not_understood_changes_nothing(run: Run, predicate: str) -> None:
    refused = run("delete", "customers", "--where", predicate, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (64, "invalid_predicate")
    assert len(names(run)) == 4


def test_a_comparison_with_null_deletes_nothing(run: Run) -> None:
    assert document(run("delete", "customers", "--where", "name = NULL", "--json"))["rows_deleted"] == 0


def test_a_change_records_door_and_reason(run: Run) -> None:
    run("insert", "customers", '{"id": 5, "name": "E"}', "--reason", "a new customer")
    newest = document(run("history", "customers", "--limit", "1", "--json"))[0]
    assert (newest["door"], newest["reason"]) == ("cli", "a new customer")
