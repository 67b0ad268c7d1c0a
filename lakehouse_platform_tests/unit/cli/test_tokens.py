from __future__ import annotations

import json
from pathlib import Path

from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform_tests.unit.cli.running import PASSWORD, Run, document, error, sign_in_file


def test_the_access_token_is_shown_to_who_is_signed_in(run: Run, workplace: Path) -> None:
    run("login", "alice", "--password-stdin", stdin=f"{PASSWORD}\n")
    kept = json.loads(sign_in_file(workplace).read_text())
    assert run("token", "show").stdout == f"{kept['access_token']}\n"
    assert document(run("token", "show", "--json")) == {"access_token": kept["access_token"]}


def test_a_token_says_whose_it_is(run: Run) -> None:
    who = document(run("login", "alice", "--password-stdin", "--json", stdin=f"{PASSWORD}\n"))
    claims = document(run("token", "verify", "--json"))
    assert (claims["sub"], claims["sid"], claims["role"]) == (who["user_id"], who["session_id"], "user")


def test_a_token_on_standard_input_is_checked_without_a_sign_in(run: Run) -> None:
    run("login", "alice", "--password-stdin", stdin=f"{PASSWORD}\n")
    token = run("token", "show").stdout
    changed = token.replace(".", ".x", 1)
    refused = run("token", "verify", "--token-stdin", "--json", stdin=changed)
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "token_invalid")
    assert document(run("token", "verify", "--token-stdin", "--json", stdin=token))["role"] == "user"
    run("logout")
    ended = run("token", "verify", "--token-stdin", "--json", stdin=token)
    assert (ended.exit_code, error(ended)["code"]) == (ExitStatus.DENIED, "authentication_failed")


def test_without_a_sign_in_there_is_no_token(run: Run) -> None:
    refused = run("token", "show", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "authentication_failed")
    assert "lakehouse login" in error(refused)["message"]
