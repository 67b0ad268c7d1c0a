from __future__ import annotations

import pytest

from lakehouse_platform_tests.unit.cli.running import Run, document, error


def test_a_declared_key_is_shown_and_enforced(run: Run) -> None:
    assert document(run("set-primary-key", "orders", "id", "--json"))["primary_key"] == ["id"]
    assert document(run("describe", "orders", "--json"))["primary_key"] == ["id"]
    refused = run("append", "orders", "orders.csv", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (65, "duplicate_key")


def test_added_columns_are_null_in_old_rows(run: Run) -> None:
    run("add-columns", "customers", "email:String")
    rows = document(run("query", "customers", "SELECT id, email FROM data ORDER BY id LIMIT 1", "--json"))
    assert rows == [{"id": 1, "email": None}]


def test_a_property_is_set_and_shown(run: Run) -> None:
    assert (
        document(run("properties", "orders", "--set", "delta.appendOnly=true", "--json"))["delta.appendOnly"]
        == "true"
    )


@pytest.mark.parametrize("assignment", ["delta.rubbish=1", "delta.appendOnly=perhaps"])
def test_a_property_that_is_not_allowed_is_refused(run: Run, assignment: str) -> None:
    refused = run("properties", "orders", "--set", assignment, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (2, "invalid_property")


def test_a_constraint_is_added_enforced_and_dropped(run: Run) -> None:
    assert document(run("constraints", "orders", "--add", "positive", "amount > 0", "--json")).keys() == {
        "positive"
    }
    row = '{"id": 9, "customer": 1, "amount": -1, "country": "FR"}'
    refused = run("insert", "orders", row, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (65, "constraint_violation")
    assert document(run("constraints", "orders", "--drop", "positive", "--json")) == {}
    assert run("insert", "orders", row).exit_code == 0
