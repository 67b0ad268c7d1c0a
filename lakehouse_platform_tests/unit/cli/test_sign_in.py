"""Signing in and out on the command line, and as whom commands act in between."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform_tests.unit.cli.running import (
    NEW_PASSWORD,
    PASSWORD,
    Run,
    document,
    error,
    lakehouse_here,
    sign_in_file,
)

PROGRAM = [sys.executable, "-m", "lakehouse_platform"]


def signed_in(run: Run, name: str = "alice", password: str = PASSWORD) -> Any:
    return document(run("login", name, "--password-stdin", "--json", stdin=f"{password}\n"))


def expire(workplace: Path) -> None:
    """Let the access token look past its time to the commands."""
    kept = sign_in_file(workplace)
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "expires_at": "2020-01-01T00:00:00Z"}))


def test_without_a_sign_in_commands_act_as_the_owner_of_the_files(run: Run, workplace: Path) -> None:
    assert document(run("whoami", "--json")) == {
        "kind": "owner", "user_id": "owner", "door": "cli", "place": str(workplace / "lakehouse"),
    }  # fmt: skip


def test_after_login_commands_act_as_that_user_until_logout(run: Run) -> None:
    signed_in(run)
    who = document(run("whoami", "--json"))
    assert (who["kind"], who["username"], who["role"], who["door"]) == ("user", "alice", "user", "cli")
    assert run("users", "list").exit_code == ExitStatus.DENIED
    assert document(run("logout", "--json")) == {"signed_out": True}
    assert document(run("whoami", "--json"))["kind"] == "owner"
    assert document(run("logout", "--json")) == {"signed_out": False}


def test_the_tokens_are_in_a_file_for_this_user_alone_and_not_in_what_is_printed(
    run: Run, workplace: Path
) -> None:
    shown = run("login", "alice@example.com", "--password-stdin", "--json", stdin=f"{PASSWORD}\n").output
    kept = sign_in_file(workplace)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    tokens = [json.loads(kept.read_text())[name] for name in ("access_token", "refresh_token")]
    assert [token for token in [*tokens, PASSWORD] if token in shown] == []
    run("logout")
    assert not kept.exists()


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", PASSWORD)])
def test_a_wrong_name_or_password_is_77_and_tells_not_which(run: Run, name: str, password: str) -> None:
    refused = run("login", name, "--password-stdin", "--json", stdin=f"{password}\n")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "invalid_credentials")
    assert name not in error(refused)["message"]
    assert document(run("whoami", "--json"))["kind"] == "owner"


def test_who_waits_for_approval_cannot_sign_in(run: Run) -> None:
    refused = run("login", "carol", "--password-stdin", "--json", stdin=f"{PASSWORD}\n")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "account_pending")


def test_a_wrong_password_leaves_the_sign_in_before(run: Run) -> None:
    signed_in(run)
    assert run("login", "bob", "--password-stdin", stdin="wrong\n").exit_code == ExitStatus.DENIED
    assert document(run("whoami", "--json"))["username"] == "alice"


def test_another_login_ends_the_sign_in_before(run: Run, workplace: Path) -> None:
    alice = signed_in(run)
    assert signed_in(run, "bob")["username"] == "bob"
    with lakehouse_here(workplace) as lakehouse:
        assert lakehouse.accounts.sessions(alice["user_id"]) == []


def test_nobody_becomes_the_owner_because_a_sign_in_has_ended(run: Run, workplace: Path) -> None:
    alice = signed_in(run)
    with lakehouse_here(workplace) as lakehouse:
        lakehouse.accounts.disable(alice["user_id"])
    refused = run("users", "list", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "authentication_failed")
    assert document(run("logout", "--json")) == {"signed_out": True}
    assert run("users", "list").exit_code == 0


def test_a_damaged_sign_in_is_named_and_logout_removes_it(run: Run, workplace: Path) -> None:
    signed_in(run)
    sign_in_file(workplace).write_text("{")
    refused = run("whoami", "--json")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.IO, "storage_io")
    assert "lakehouse logout" in error(refused)["message"]
    assert document(run("logout", "--json")) == {"signed_out": True}


def test_a_sign_in_that_others_can_read_is_not_used_and_logout_ends_it(run: Run, workplace: Path) -> None:
    alice = signed_in(run)
    sign_in_file(workplace).chmod(0o644)
    assert run("whoami").exit_code == ExitStatus.DENIED
    assert run("logout").exit_code == 0
    with lakehouse_here(workplace) as lakehouse:
        assert lakehouse.accounts.sessions(alice["user_id"]) == []


def test_logout_ends_a_sign_in_past_its_time_that_could_still_be_renewed(run: Run, workplace: Path) -> None:
    alice = signed_in(run)
    expire(workplace)
    assert run("logout").exit_code == 0
    with lakehouse_here(workplace) as lakehouse:
        assert lakehouse.accounts.sessions(alice["user_id"]) == []


def test_a_password_is_changed_by_who_knows_it(run: Run) -> None:
    signed_in(run)
    assert (
        run("password", "--password-stdin", stdin=f"wrong\n{NEW_PASSWORD}\n").exit_code == ExitStatus.DENIED
    )
    weak = run("password", "--password-stdin", stdin=f"{PASSWORD}\n12345678\n")
    assert weak.exit_code == ExitStatus.USAGE
    assert run("password", "--password-stdin", stdin=f"{PASSWORD}\n{NEW_PASSWORD}\n").exit_code == 0
    assert signed_in(run, password=NEW_PASSWORD)["username"] == "alice"


def test_the_owner_of_the_files_has_no_password_to_change(run: Run) -> None:
    refused = run("password", "--password-stdin", "--json", stdin=f"{PASSWORD}\n{NEW_PASSWORD}\n")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "authentication_failed")


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["login", "alice"], "", "--password-stdin"),
        (["login", "--password-stdin"], f"{PASSWORD}\n", "argument"),
        (["login", "alice", "--password-stdin"], "", "holds none"),
        (["login", "alice", "--password-stdin"], b"\xff\xfe\n", "UTF-8"),
        (["login", "alice", "--password-stdin"], "x" * 5000, "longer"),
        (["login", "alice", "--password", "secret"], "", "--password"),
    ],
)
def test_a_password_that_cannot_be_read_is_a_wrong_command_line(
    run: Run, words: list[str], stdin: str | bytes, said: str
) -> None:
    refused = run(*words, "--json", stdin=stdin)
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.USAGE, "usage")
    assert said in error(refused)["message"]


def test_commands_that_renew_at_once_share_the_new_sign_in(run: Run, workplace: Path) -> None:
    alice = signed_in(run)
    expire(workplace)

    def whoami(_: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, "whoami", "--json"], cwd=workplace, capture_output=True, text=True, check=False
        )

    with ThreadPoolExecutor(3) as threads:
        ends = list(threads.map(whoami, range(3)))
    assert [end.stderr for end in ends] == ["", "", ""]
    assert {json.loads(end.stdout)["session_id"] for end in ends} == {alice["session_id"]}
    with lakehouse_here(workplace) as lakehouse:
        assert len(lakehouse.audit.search(action=ActionType.TOKEN_REFRESH)) == 1
        assert lakehouse.audit.search(action=ActionType.TOKEN_REJECTED) == []


def test_a_password_that_is_typed_is_not_shown(workplace: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "login"], cwd=workplace, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    screen = b""
    for prompt, answer in ((b"address: ", "alice"), (b"Password: ", PASSWORD)):
        while not screen.endswith(prompt):
            screen += os.read(master, 1)
        os.write(master, f"{answer}\n".encode())
    while b"Signed in" not in screen:
        screen += os.read(master, 1024)
    assert process.wait(60) == 0
    os.close(master)
    assert PASSWORD.encode() not in screen
