from __future__ import annotations

from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform_tests.unit.cli.running import Run, document, error


def test_a_key_is_shown_once(run: Run) -> None:
    made = document(run("keys", "create", "loader", "--label", "once", "--json"))
    assert made["key"].startswith("lhk_")
    assert made["scopes"] == ["read:*"]
    listed = run("keys", "list", "loader", "--json")
    assert {key["label"] for key in document(listed)} == {"nightly", "once"}
    secret = made["key"].rpartition("_")[2]
    assert secret not in listed.output
    assert "key_hash" not in listed.output


def test_a_key_has_the_scopes_and_the_life_that_are_asked_for(run: Run) -> None:
    words = ["keys", "create", "loader", "--label", "x", "--scope", "write:orders", "--no-end", "--json"]
    made = document(run(*words))
    assert (made["scopes"], made["expires_at"]) == (["write:orders"], None)
    wrong = run("keys", "create", "loader", "--label", "x", "--scope", "everything", "--json")
    assert (wrong.exit_code, error(wrong)["code"]) == (ExitStatus.USAGE, "invalid_argument")


def test_only_programs_have_keys(run: Run) -> None:
    assert run("keys", "create", "alice", "--label", "x").exit_code == ExitStatus.USAGE
    assert run("keys", "create", "nobody", "--label", "x").exit_code == ExitStatus.NOT_FOUND


def test_a_key_is_revoked_by_its_id_or_with_all_others(run: Run) -> None:
    (key,) = document(run("keys", "list", "loader", "--json"))
    assert document(run("keys", "revoke", "loader", key["key_id"], "--json")) == {"revoked": [key["key_id"]]}
    assert document(run("keys", "revoke", "loader", "--all", "--json")) == {"revoked": []}
    assert document(run("keys", "list", "loader", "--json"))[0]["revoked_at"]
    assert run("keys", "revoke", "loader").exit_code == ExitStatus.USAGE
