"""`lakehouse serve` as a real process, and the commands that ask it in place of the lakehouse itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform.cli.main import cli
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.unit.cli.running import NEW_PASSWORD, PASSWORD, document, error

PROGRAM = [sys.executable, "-m", "lakehouse_platform"]
Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def served(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A server over a copy of the prepared lakehouse, and the state directory of who asks it."""
    directory = tmp_path_factory.mktemp("served")
    shutil.copytree(prepared / "lakehouse", directory / "lakehouse")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        patch.chdir(directory)
        process = subprocess.Popen(
            [*PROGRAM, "serve", "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        ready = json.loads(process.stdout.readline())
        yield {**ready, "directory": directory}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == ""
        process.stdout.close()
        assert CliRunner().invoke(cli, ["audit", "verify"]).exit_code == 0


@pytest.fixture
def ask(served: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Runs a command that asks the server, signed in as nobody at first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LAKEHOUSE_SERVER", served["url"])
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, list(words), input=stdin)

    return run


def signed_in(ask: Ask, name: str, password: str = PASSWORD) -> Any:
    return document(ask("login", name, "--password-stdin", "--json", stdin=f"{password}\n"))


def test_the_address_is_told_once_it_answers(served: dict[str, Any]) -> None:
    assert served["url"] == f"http://127.0.0.1:{served['port']}"
    assert httpx.get(f"{served['url']}/healthz").status_code == 200


def test_login_whoami_and_logout_go_to_the_server(ask: Ask, served: dict[str, Any], tmp_path: Path) -> None:
    place = {"door": "http", "place": served["url"]}
    assert document(ask("whoami", "--json")) == {"kind": "anonymous", "user_id": "anonymous", **place}
    who = signed_in(ask, "alice")
    assert document(ask("whoami", "--json", "--server", f"{served['url']}/")) == who
    assert (who["kind"], who["username"], who["place"]) == ("user", "alice", served["url"])
    (kept,) = (tmp_path / "state").rglob("sign_in_*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert document(ask("logout", "--json")) == {"signed_out": True}
    assert not kept.exists()
    assert document(ask("logout", "--json")) == {"signed_out": False}


def test_a_wrong_password_is_77_as_without_a_server(ask: Ask) -> None:
    refused = ask("login", "alice", "--password-stdin", "--json", stdin="wrong\n")
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "invalid_credentials")


def test_nobody_signed_in_may_register_and_no_more(ask: Ask) -> None:
    words = ["users", "add", "gina", "gina@example.com", "--password-stdin", "--json"]
    assert document(ask(*words, stdin=f"{PASSWORD}\n"))["status"] == "pending"
    assert ask("users", "list").exit_code == ExitStatus.DENIED
    assert ask("audit", "tail").exit_code == ExitStatus.DENIED


def test_an_administrator_looks_after_accounts_through_the_server(ask: Ask) -> None:
    signed_in(ask, "root")
    assert document(ask("users", "approve", "carol", "--json"))["status"] == "active"
    assert document(ask("users", "role", "carol", "admin", "--json"))["role"] == "admin"
    assert document(ask("users", "tier", "carol", "enterprise", "--json"))["tier"] == "enterprise"
    assert document(ask("users", "grant", "carol", "orders", "write", "--json"))["right"] == "write"
    assert [one["table"] for one in document(ask("users", "grants", "carol", "--json"))] == ["orders"]
    assert document(ask("users", "revoke", "carol", "orders", "--json"))["revoked"] is True
    assert document(ask("users", "limits", "carol", "--per-day", "5", "--json"))["quota"]["per_day"] == 5
    assert document(ask("users", "limits", "carol", "--of-tier", "--json"))["quota"]["per_day"] is None
    assert ask("users", "usage", "carol", "--reset").exit_code == 0
    assert ask("users", "password", "carol", "--password-stdin", stdin=f"{NEW_PASSWORD}\n").exit_code == 0
    assert document(ask("users", "sessions", "carol", "--end-all", "--json")) == {"ended": 0}
    assert document(ask("users", "disable", "carol", "--json"))["status"] == "disabled"
    assert ask("users", "show", "nobody").exit_code == ExitStatus.NOT_FOUND
    assert "carol" in {user["username"] for user in document(ask("users", "list", "--json"))}


def test_keys_are_made_and_revoked_through_the_server(ask: Ask, served: dict[str, Any]) -> None:
    signed_in(ask, "root")
    assert document(ask("users", "add-service", "robot", "--json"))["is_service"] is True
    made = document(ask("keys", "create", "robot", "--label", "x", "--json"))
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert httpx.get(f"{served['url']}/v1/me", headers=headers).status_code == 200
    listed = ask("keys", "list", "robot", "--json")
    assert [key["key_id"] for key in document(listed)] == [made["key_id"]]
    assert made["key"] not in listed.output
    assert document(ask("keys", "revoke", "robot", "--all", "--json")) == {"revoked": [made["key_id"]]}
    assert httpx.get(f"{served['url']}/v1/me", headers=headers).status_code == 401


def test_the_audit_log_is_read_through_the_server(ask: Ask, tmp_path: Path) -> None:
    root = signed_in(ask, "root")
    entries = document(ask("audit", "search", "--user", "root", "--action", "login", "--json"))
    assert {(one["user_id"], one["door"]) for one in entries} == {(root["user_id"], "http")}
    assert len(document(ask("audit", "tail", "--lines", "2", "--json"))) == 2
    assert document(ask("audit", "activity", "root", "--json"))[0]["user_id"] == root["user_id"]
    words = ["audit", "billing", "root", "--from", "2026-02-01", "--to", "2026-02-28", "--json"]
    assert document(ask(*words))["total_actions"] == 0
    assert document(ask("audit", "verify", "--json"))["is_whole"] is True
    assert ask("audit", "export", "log.jsonl", "--action", "register").exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert {line["action"] for line in lines} == {"register"}


def test_the_token_of_the_sign_in_is_what_the_server_takes(ask: Ask, served: dict[str, Any]) -> None:
    root = signed_in(ask, "root")
    token = ask("token", "show").stdout.strip()
    me = httpx.get(f"{served['url']}/v1/me", headers={"Authorization": f"Bearer {token}"}).json()
    assert me["user_id"] == root["user_id"]
    assert document(ask("token", "verify", "--json"))["sid"] == root["session_id"]
    ask("logout")
    refused = ask("token", "verify", "--token-stdin", "--json", stdin=token)
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "authentication_failed")


def test_a_sign_in_past_its_time_is_renewed(ask: Ask, tmp_path: Path) -> None:
    root = signed_in(ask, "root")
    (kept,) = (tmp_path / "state").rglob("sign_in_*.json")
    before = json.loads(kept.read_text())
    kept.write_text(json.dumps({**before, "expires_at": "2020-01-01T00:00:00Z"}))
    assert document(ask("whoami", "--json"))["session_id"] == root["session_id"]
    assert json.loads(kept.read_text())["access_token"] != before["access_token"]


def test_ones_own_password_is_changed_through_the_server(ask: Ask) -> None:
    signed_in(ask, "bob")
    assert ask("password", "--password-stdin", stdin=f"{PASSWORD}\n{NEW_PASSWORD}\n").exit_code == 0
    assert signed_in(ask, "bob", NEW_PASSWORD)["username"] == "bob"


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("http://lake.example.com", "invalid_argument"),
        ("lake.example.com", "invalid_argument"),
        ("https://name:secret@lake.example.com", "invalid_argument"),
    ],
)
def test_an_address_that_would_show_secrets_is_refused(ask: Ask, address: str, code: str) -> None:
    refused = ask("whoami", "--json", "--server", address)
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.USAGE, code)
    assert "secret@" not in refused.output


def test_a_server_that_is_not_there_is_69(ask: Ask, unused_address: str) -> None:
    refused = ask("users", "add", "x", "x@example.com", "--password-stdin", "--server", unused_address,
                  stdin=f"{PASSWORD}\n")  # fmt: skip
    assert refused.exit_code == ExitStatus.UNAVAILABLE


@pytest.fixture
def unused_address() -> Iterator[str]:
    """An address that nobody answers at: its port is bound, and never listened on."""
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_only_the_owner_of_the_files_can_make_the_first_superadmin(ask: Ask) -> None:
    words = [
        "users",
        "bootstrap",
        "second",
        "second@example.com",
        "--password-stdin",
        "--server",
        "http://localhost",
    ]
    assert ask(*words, stdin=f"{PASSWORD}\n").exit_code == ExitStatus.USAGE


def test_an_address_that_is_taken_is_told(served: dict[str, Any], tmp_path: Path) -> None:
    words = ["serve", "--port", str(served["port"]), "--base-path", str(tmp_path / "lakehouse"), "--json"]
    refused = CliRunner().invoke(cli, words)
    assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.UNAVAILABLE, "storage_unavailable")


def test_who_is_signed_in_at_a_server_mounts_from_one_that_runs_where_the_files_are(
    ask: Ask, served: dict[str, Any]
) -> None:
    signed_in(ask, "root")
    assert ask("users", "grant", "alice", "orders", "read").exit_code == 0
    signed_in(ask, "alice")
    with nfs_serve(served["directory"]) as running:
        where = f"127.0.0.1:{running['port']}"
        mounted = document(ask("mount", "lake", "files", "--from", where, "--print", "--json"))
        assert (mounted["acts_as"], mounted["mounted"]) == ("user", False)
        ticket = document(ask("nfs", "ticket", "--json"))["ticket"]
        assert f" 127.0.0.1:/{ticket}/lake " in mounted["commands"]["linux"]
        with NfsClient(running["port"]) as client:
            client.mount(f"/{ticket}/lake")
            assert {entry.name for entry in client.readdir(client.root)} - {b".", b".."} == {b"orders"}
            ask("logout")
            with pytest.raises(NfsStatusError, match="ACCES"):
                client.mount(f"/{ticket}/lake")
    assert document(ask("mounts", "--json")) == []


def test_the_export_that_is_mounted_is_that_of_the_profile(ask: Ask) -> None:
    signed_in(ask, "alice")
    bulk = ask("mount", "orders", "files", "--from", "lake:2049", "--print", "--profile", "bulk")
    assert "lake:/" in bulk.stdout
    assert "/orders@bulk " in bulk.stdout


@contextmanager
def nfs_serve(directory: Path) -> Generator[dict[str, Any]]:
    """Serve a lakehouse's files as their owner does, with the state directory of its server."""
    words = ["nfs", "serve", "./lakehouse", "--port", "0", "--state", "nfs", "--json"]
    environment = {**os.environ, "XDG_STATE_HOME": str(directory / "state")}
    with subprocess.Popen(
        [*PROGRAM, *words], cwd=directory, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGTERM)


def test_nobody_signed_in_gets_no_ticket(ask: Ask) -> None:
    for words in (["nfs", "ticket"], ["mount", "lake", "files", "--from", "127.0.0.1:9", "--print"]):
        refused = ask(*words, "--json")
        assert (refused.exit_code, error(refused)["code"]) == (ExitStatus.DENIED, "authentication_failed")


@pytest.mark.parametrize(
    "words",
    [
        ["lake", "files", "--from", "nowhere"],
        ["lake", "files", "--from", "host:0"],
        ["lake", "files", "--from", ":2049"],
        ["lake", "files", "--from", "host:65536"],
        ["./lake", "files", "--from", "127.0.0.1:2049"],
        ["lake", "files", "--server", "http://localhost:1"],
        ["lake", "files", "--from", "127.0.0.1:2049", "--port", "2049"],
        ["lake", "files", "--from", "127.0.0.1:2049", "--allow-other"],
    ],
)
def test_a_mount_from_elsewhere_needs_an_address_and_the_name_of_what_is_shown(
    ask: Ask, words: list[str], tmp_path: Path
) -> None:
    signed_in(ask, "alice")
    refused = ask("mount", *words, "--print")
    assert refused.exit_code == ExitStatus.USAGE
    assert not (tmp_path / "files").exists()


def test_a_mount_of_what_is_not_here_says_how_to_mount_from_a_server(ask: Ask) -> None:
    signed_in(ask, "alice")
    refused = ask("mount", "orders", "files", "--print", "--json")
    assert refused.exit_code == ExitStatus.NOT_FOUND
    assert "lakehouse nfs serve" in error(refused)["message"]
    assert "--from HOST:PORT" in error(refused)["message"]
