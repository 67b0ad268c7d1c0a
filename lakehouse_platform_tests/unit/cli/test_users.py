"""Accounts on the command line: who there is, who may sign in, and what they may."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform_tests.unit.cli.running import NEW_PASSWORD, PASSWORD, Run, document, error


def login(run: Run, name: str, password: str = PASSWORD) -> Any:
    return run("login", name, "--password-stdin", "--json", stdin=f"{password}\n")


def shown(run: Run, name: str) -> Any:
    return document(run("users", "show", name, "--json"))


def test_there_is_one_first_superadmin(run: Run) -> None:
    assert (shown(run, "root")["role"], shown(run, "root")["status"]) == ("superadmin", "active")
    words = ["users", "bootstrap", "second", "second@example.com", "--password-stdin", "--json"]
    refused = run(*words, stdin=f"{PASSWORD}\n")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.USAGE, "invalid_argument")


def test_init_says_how_to_make_the_first_superadmin(run: Run) -> None:
    assert "lakehouse users bootstrap" in run("init", "--base-path", "second").stdout
    assert "bootstrap" not in run("init", "--base-path", "second").stdout


def test_who_is_added_waits_for_approval_and_can_then_sign_in(run: Run) -> None:
    words = ["users", "add", "dora", "dora@example.com", "--password-stdin", "--json"]
    added = run(*words, stdin=f"{PASSWORD}\n")
    assert document(added)["status"] == "pending"
    assert PASSWORD not in added.output
    assert "argon2" not in added.output
    assert login(run, "dora").exit_code == ExitStatus.DENIED
    assert document(run("users", "approve", "dora", "--json"))["status"] == "active"
    assert login(run, "dora").exit_code == 0


def test_accounts_are_listed_by_where_they_stand(run: Run) -> None:
    names = {user["username"] for user in document(run("users", "list", "--json"))}
    assert names == {"root", "alice", "bob", "carol", "loader"}
    assert [user["username"] for user in document(run("users", "list", "--status", "pending", "--json"))] == [
        "carol"
    ]


def test_a_user_is_named_by_id_name_or_address_in_any_capitals(run: Run) -> None:
    user_id = shown(run, "alice")["user_id"]
    assert {shown(run, text)["user_id"] for text in (user_id, "ALICE", "Alice@Example.com")} == {user_id}


@pytest.mark.parametrize("name", ["nobody", "00000000-0000-0000-0000-000000000000"])
def test_a_user_that_there_is_not_is_66(run: Run, name: str) -> None:
    refused = run("users", "approve", name, "--json")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.NOT_FOUND, "user_not_found")


def test_a_name_that_is_taken_is_73_and_a_weak_password_2(run: Run) -> None:
    words = ["users", "add", "Alice", "other@example.com", "--password-stdin", "--json"]
    assert run(*words, stdin=f"{PASSWORD}\n").exit_code == ExitStatus.EXISTS
    words[2] = "dora"
    assert run(*words, stdin="12345678\n").exit_code == ExitStatus.USAGE
    words[3] = "no address"
    assert run(*words, stdin=f"{PASSWORD}\n").exit_code == ExitStatus.USAGE
    assert len(document(run("users", "list", "--json"))) == 5


def test_a_user_sees_the_own_account_and_no_other(run: Run) -> None:
    login(run, "alice")
    assert shown(run, "alice")["email"] == "alice@example.com"
    for words in (["show", "bob"], ["list"], ["role", "alice", "admin"], ["tier", "alice", "enterprise"]):
        assert run("users", *words).exit_code == ExitStatus.DENIED, words


def test_an_administrator_does_what_the_role_allows(run: Run) -> None:
    assert document(run("users", "role", "alice", "admin", "--json"))["role"] == "admin"
    login(run, "alice")
    assert document(run("users", "tier", "bob", "pro", "--json"))["tier"] == "pro"
    assert run("users", "disable", "root").exit_code == ExitStatus.DENIED
    assert run("users", "role", "bob", "admin").exit_code == ExitStatus.DENIED


def test_a_disabled_user_is_signed_out_until_enabled(run: Run) -> None:
    assert document(run("users", "disable", "bob", "--json"))["status"] == "disabled"
    assert login(run, "bob").exit_code == ExitStatus.DENIED
    assert run("users", "disable", "bob").exit_code == ExitStatus.USAGE
    assert document(run("users", "enable", "bob", "--json"))["status"] == "active"
    assert login(run, "bob").exit_code == 0


def test_a_forgotten_password_is_replaced(run: Run) -> None:
    assert run("users", "password", "bob", "--password-stdin", stdin=f"{NEW_PASSWORD}\n").exit_code == 0
    assert login(run, "bob").exit_code == ExitStatus.DENIED
    assert login(run, "bob", NEW_PASSWORD).exit_code == 0


def test_one_sees_and_ends_ones_own_sign_ins(run: Run) -> None:
    session_id = document(login(run, "alice"))["session_id"]
    assert [one["session_id"] for one in document(run("users", "sessions", "alice", "--json"))] == [
        session_id
    ]
    assert document(run("users", "sessions", "alice", "--end", "unknown", "--json")) == {"ended": 0}
    assert document(run("users", "sessions", "alice", "--end", session_id, "--json")) == {"ended": 1}
    assert run("users", "sessions", "alice").exit_code == ExitStatus.DENIED
    both = run("users", "sessions", "alice", "--end", session_id, "--end-all")
    assert both.exit_code == ExitStatus.USAGE


def test_a_grant_is_given_and_taken_back(run: Run) -> None:
    assert document(run("users", "grant", "alice", "orders", "write", "--json"))["right"] == "write"
    found = document(run("users", "grants", "alice", "--json"))
    assert [(grant["table"], grant["right"], grant["granted_by"]) for grant in found] == [
        ("orders", "write", "owner")
    ]
    assert document(run("users", "revoke", "alice", "orders", "--json"))["revoked"] is True
    assert document(run("users", "revoke", "alice", "orders", "--json"))["revoked"] is False


def test_the_platforms_own_tables_are_not_granted(run: Run) -> None:
    assert run("users", "grant", "alice", "users", "read").exit_code == ExitStatus.USAGE
    assert run("users", "grant", "alice", "orders; DROP", "read").exit_code == ExitStatus.USAGE


def test_limits_of_ones_own_and_of_the_tier_again(run: Run) -> None:
    assert document(run("users", "usage", "alice", "--json"))["quota"] == {"per_minute": 10, "per_day": 100}
    changed = document(run("users", "limits", "alice", "--per-minute", "50", "--json"))
    assert changed["quota"] == {"per_minute": 50, "per_day": None}
    again = document(run("users", "limits", "alice", "--of-tier", "--json"))
    assert again["quota"] == {"per_minute": 10, "per_day": 100}
    assert run("users", "limits", "alice").exit_code == ExitStatus.USAGE
    assert run("users", "limits", "alice", "--of-tier", "--per-day", "1").exit_code == ExitStatus.USAGE
    assert run("users", "limits", "alice", "--per-day", "-1").exit_code == ExitStatus.USAGE


def test_usage_is_forgotten_on_request(run: Run) -> None:
    login(run, "alice")
    assert run("users", "list").exit_code == ExitStatus.DENIED
    run("logout")
    assert document(run("users", "usage", "alice", "--reset", "--json"))["day"] == 0
