"""`mount` for whoever is signed in: the server's path holds that user's ticket, and shows what the user may see."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.identity.mount_tickets import TICKET_LENGTH
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.unit.cli.running import PASSWORD, lakehouse_here

Command = Callable[..., Any]


@pytest.fixture
def command(workplace: Path) -> Iterator[Command]:
    """Runs a command in a process of its own and returns its JSON document; undoes the mount at the end."""

    def run(*words: str, stdin: str = "", ok: bool = True) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "lakehouse_platform", *words, "--json"],
            cwd=workplace, input=stdin, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert (done.returncode == 0) is ok, done.stderr
        return json.loads(done.stdout if ok else done.stderr)

    yield run
    if run("mounts"):
        run("unmount", "files")


def export(mounted: dict[str, Any]) -> str:
    """Return the path in the command that mounts by hand on Linux."""
    (found,) = (word for word in mounted["commands"]["linux"].split() if word.startswith("127.0.0.1:"))
    return found.partition(":")[2]


def names(client: NfsClient) -> set[bytes]:
    return {entry.name for entry in client.readdir(client.root)} - {b".", b".."}


def test_who_is_signed_in_mounts_with_a_ticket_and_sees_the_tables_of_the_grants(command: Command) -> None:
    command("users", "grant", "alice", "orders", "read")
    command("login", "alice", "--password-stdin", stdin=f"{PASSWORD}\n")
    mounted = command("mount", "./lakehouse", "files", "--print")
    assert mounted["acts_as"] == "user"
    path = export(mounted)
    assert [len(path.split("/")[1]), path.split("/")[2]] == [TICKET_LENGTH, "lake"]
    with NfsClient(mounted["port"]) as client:
        client.mount(path)
        assert names(client) == {b"orders"}
        view = client.walk("orders/data/data.csv")
        size = client.getattr(view).size
        with pytest.raises(NfsStatusError, match="ACCES"):
            client.write(view, size, b"9,9,9.0,FR\n")


@pytest.mark.parametrize(
    ("source", "shown"), [("link", "lake"), ("link/orders", "orders"), ("table", "orders")]
)
def test_by_a_symbolic_link_it_is_the_users_mount_too(
    command: Command, workplace: Path, source: str, shown: str
) -> None:
    (workplace / "link").symlink_to("lakehouse")
    (workplace / "table").symlink_to("lakehouse/orders")
    command("users", "grant", "alice", "orders", "read")
    command("login", "alice", "--password-stdin", stdin=f"{PASSWORD}\n")
    mounted = command("mount", f"./{source}", "files", "--print")
    path = export(mounted)
    assert [len(path.split("/")[1]), path.split("/")[2]] == [TICKET_LENGTH, shown]
    with NfsClient(mounted["port"]) as client:
        client.mount(path)
        assert names(client) >= ({b"orders"} if shown == "lake" else {b"data"})
        assert b"customers" not in names(client)


def test_without_a_sign_in_the_owner_mounts_as_ever(command: Command) -> None:
    mounted = command("mount", "orders", "files", "--print")
    assert mounted["acts_as"] == "owner"
    path = export(mounted)
    assert len(path.split("/")[1]) != TICKET_LENGTH
    with NfsClient(mounted["port"]) as client:
        client.mount(path)
        assert b"data" in names(client)


def test_a_table_that_is_none_of_the_users_cannot_be_mounted(command: Command) -> None:
    command("login", "bob", "--password-stdin", stdin=f"{PASSWORD}\n")
    mounted = command("mount", "orders", "files", "--print")
    with NfsClient(mounted["port"]) as client, pytest.raises(NfsStatusError, match="NOENT"):
        client.mount(export(mounted))


def test_a_sign_in_that_does_not_count_any_more_mounts_nothing_and_starts_nothing(
    command: Command, workplace: Path
) -> None:
    command("login", "alice", "--password-stdin", stdin=f"{PASSWORD}\n")
    with lakehouse_here(workplace) as lakehouse:
        (alice,) = (one for one in lakehouse.accounts.users().users if one.username == "alice")
        assert lakehouse.accounts.logout_everywhere(alice.user_id) == 1
    refused = command("mount", "orders", "files", "--print", ok=False)
    assert refused["code"] in {"authentication_failed", "token_invalid"}
    assert command("mounts") == []
