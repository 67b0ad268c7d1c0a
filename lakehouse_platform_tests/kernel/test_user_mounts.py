"""Users mount the lakehouse with a real kernel: each acts as itself, with its rights, as long as its sign-in lasts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from argon2 import PasswordHasher

from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.model.actors import Actor, Role
from lakehouse_platform.model.rights import Right
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.kernel_guest import PROFILES, KernelGuest
from lakehouse_platform_tests.support.mounted_lake import PEOPLE, ROWS, MountedTable, ServerProcess
from lakehouse_platform_tests.support.people import PASSWORD, entries, signed_in

CHANGES = (
    "echo 4,Dave,28,Boston > data.csv",
    "echo 4,Dave,28,Boston >> data.csv",
    "sed -i s/30/31/ data.csv",
    "rm data.csv",
    "mv data.csv other.csv",
    "truncate -s 0 data.csv",
    "cp /etc/passwd data.csv",
    "cp data.csv /tmp/new.csv && mv /tmp/new.csv data.csv",
    'python3 -c \'open("data.csv", "r+").write("x")\'',
    "touch data.csv",
    "chmod 666 data.csv",
    "echo x > new",
    "mkdir new",
)
DENIED = "Permission denied"
# The kernel asks what may be done before it opens a file for writing, and takes "no" for EACCES.
READ_ONLY = {DENIED, "Read-only file system"}
VOID = {DENIED, "Stale file handle"}
DAVE = {"id": 4, "name": "Dave", "age": 28, "city": "Boston"}
# The second write comes when the sign-in has ended; what became of each call is written down for the test.
WRITER = """
import os, time
file = os.open("data.csv", os.O_WRONLY | os.O_APPEND)
os.write(file, b"5,Eve,41,Rome")
os.fsync(file)
open("/tmp/acknowledged", "w").close()
while not os.path.exists("/tmp/go-on"):
    time.sleep(0.05)
for call in (lambda: os.write(file, b"\\n6,Finn,50,Oslo\\n"), lambda: os.fsync(file), lambda: os.close(file)):
    try:
        call()
    except OSError as error:
        print(error.strerror)
"""


@dataclass
class Users:
    """A lakehouse with accounts, its server, and what its users have mounted in the guest."""

    guest: KernelGuest
    store: DeltaStore
    auth: AuthActor
    server: ServerProcess
    actors: dict[str, Actor] = field(default_factory=dict[str, Actor])
    mounts: list[str] = field(default_factory=list[str])

    def mount(self, name: str, profile: str) -> str:
        """Mount the lakehouse for a user, if that is not done yet; return where."""
        at = f"/mnt/{name}-{profile}"
        if at not in self.mounts:
            export = self.server.ready["exports"][profile].rpartition("/")[2]
            ticket = self.auth.mount_ticket(self.actors[name])
            self.guest.mount(self.server.port, f"/{ticket}/{export}", at, PROFILES[profile])
            self.mounts.append(at)
        return at

    def table(self, name: str, table: str, profile: str) -> MountedTable:
        """Return a table as a user sees it."""
        at = f"{self.mount(name, profile)}/{table}/data"
        return MountedTable(self.store.table(table), self.guest, at, profile)

    def audited(self, name: str, resource: str, is_all: Callable[[Sequence[str]], bool]) -> list[Any]:
        """Return what the log says that a user did with a table, once all is there that a test waits for."""
        end = time.monotonic() + 20
        while True:
            rows = [
                (row["action"], row["outcome"], row["row_count"], row["details"])
                for row in entries(self.auth, self.store)
                if (row["user_id"], row["resource"], row["door"]) == (self.actors[name].id, resource, "nfs")
            ]
            if is_all([action for action, *_ in rows]):
                return rows
            assert time.monotonic() < end, rows


@pytest.fixture(scope="module")
def users(guest: KernelGuest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    """Two tables for each profile, and users with different rights on them."""
    directory = tmp_path_factory.mktemp("users")
    (directory / "server").mkdir(mode=0o700)
    lake, state = str(directory / "lake"), str(directory / "state")
    store = DeltaStore(LakehouseConfig(base_path=lake, state_path=state, durability="os"))
    for profile in PROFILES:
        for table in ("people", "orders"):
            store.create(f"{table}_{profile}", PEOPLE).append(ROWS)
    server = ServerProcess(lake, directory / "server", {"LAKEHOUSE_STATE_PATH": state})
    quick = Passwords(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    with quick, AuthActor(store, passwords=quick) as auth:
        made = Users(guest, store, auth, server)
        made.actors = {name: signed_in(auth, name) for name in ("nobody", "reader", "editor", *_leavers())}
        made.actors["boss"] = signed_in(auth, "boss", Role.ADMIN)
        for profile in PROFILES:
            auth.grant(made.actors["reader"].id, f"people_{profile}", Right.READ)
            auth.grant(made.actors["editor"].id, f"orders_{profile}", Right.READ)
            for name in ("editor", f"leaver-{profile}"):
                auth.grant(made.actors[name].id, f"people_{profile}", Right.WRITE)
        try:
            server.start()
            yield made
        finally:
            guest.run(f"umount -f -l {' '.join(made.mounts)}")
            server.close()


def _leavers() -> list[str]:
    return [f"leaver-{profile}" for profile in PROFILES]


def outcomes(table: MountedTable, commands: Sequence[str]) -> list[tuple[str, bool, str]]:
    """Run commands in a table's directory and return of each whether it failed, and the last line that it told."""
    script = "\n".join(f"( {command} )\necho == $?" for command in commands)
    output = re.split(r"^== (\d+)\n", table.run(script)[1], flags=re.MULTILINE)
    told = zip(commands, output[1::2], output[:-1:2], strict=True)
    return [(command, status != "0", text.strip().rpartition("\n")[2]) for command, status, text in told]


def test_a_reader_reads_and_every_tool_that_changes_something_fails(users: Users, profile: str) -> None:
    people = users.table("reader", f"people_{profile}", profile)
    assert people.run("ls -A ../..") == (0, "people_bulk\npeople_sync\n")
    status, output = people.run("stat -c %a data.csv; cat data.csv; cat data.csv | wc -l; wc -l < data.jsonl")
    assert (status, output.split()) == (
        0,
        ["444", "id,name,age,city", "1,Alice,30,NYC", "2,Bob,25,SF", "3,Charlie,35,LA", "4", "3"],
    )
    before = people.table.version()
    for command, failed, why in outcomes(people, CHANGES):
        assert failed, command
        assert DENIED in why, command
    assert people.settled_version(before, within_s=0.7) == before
    assert people.rows() == ROWS
    rows = users.audited("reader", people.table.name, lambda actions: "permission_denied" in actions)
    read = [(outcome, count) for action, outcome, count, _ in rows if action == "data_read"]
    assert read == [("done", 3), ("done", 3)], "one for each file, however often it was read"


def test_an_editor_of_one_table_edits_it_and_not_the_other(users: Users, profile: str) -> None:
    people = users.table("editor", f"people_{profile}", profile)
    before = people.table.version()
    assert people.run("echo 4,Dave,28,Boston >> data.csv && tail -n 1 data.csv") == (0, "4,Dave,28,Boston\n")
    assert people.settled_version(before) == before + 1
    assert people.rows() == [*ROWS, DAVE]
    assert people.table.history(1)[0].actor == users.actors["editor"].id
    orders = users.table("editor", f"orders_{profile}", profile)
    untouched = orders.table.version()
    taken = f"mv ../../people_{profile}/data/data.csv data.csv"
    for command, failed, why in outcomes(orders, [*CHANGES, taken]):
        assert failed, command
        assert DENIED in why, command
    assert orders.settled_version(untouched, within_s=0.7) == untouched
    assert orders.rows() == ROWS
    users.audited("editor", orders.table.name, lambda actions: "permission_denied" in actions)
    rows = users.audited("editor", people.table.name, lambda actions: "data_write" in actions)
    assert [row for row in rows if row[0] == "data_write"] == [
        ("data_write", "done", 1, f"version {before + 1}")
    ]


def test_who_has_no_rights_sees_nothing(users: Users, profile: str) -> None:
    at = users.mount("nobody", profile)
    assert users.guest.run(f"ls -A {at}") == (0, "")
    for name in (f"people_{profile}", "users"):
        status, output = users.guest.run(f"cat {at}/{name}/data/data.csv")
        assert (status, output.strip().rpartition(": ")[2]) == (1, "No such file or directory")
    status, output = users.guest.run(f"mkdir {at}/{name}")
    assert (status, output.strip().rpartition(": ")[2]) == (1, DENIED)


def test_an_administrator_reads_the_systems_tables_without_secrets_and_changes_none(
    users: Users, profile: str
) -> None:
    accounts = users.table("boss", "users", profile)
    tables = {*SYSTEM_TABLES, *(f"{table}_{one}" for table in ("people", "orders") for one in PROFILES)}
    assert set(accounts.run("ls -A ../..")[1].split()) == tables
    status, output = accounts.run("stat -c %a data.csv; ls -A . ..; cat * ../schema.sql")
    assert (status, output[:4]) == (0, "444\n")
    assert "reader@example.com" in output
    for secret in (*SYSTEM_TABLES["users"].secret_columns, "$argon2", ".query", ".versions", "parquet"):
        assert secret not in output
    before = accounts.table.version()
    for command, failed, why in outcomes(accounts, [*CHANGES, "rm -r ../../users", "mv ../../users ../../x"]):
        assert failed, command
        assert any(told in why for told in READ_ONLY), (command, why)
    assert accounts.settled_version(before, within_s=0.7) == before


def test_a_mount_is_void_after_the_logout_and_nothing_acknowledged_is_lost(
    users: Users, profile: str
) -> None:
    name, at = f"leaver-{profile}", f"people_{profile}"
    people, left = users.table(name, at, profile), users.actors[name]
    rows = people.rows()
    begin = (
        f"rm -f /tmp/acknowledged /tmp/go-on; setsid python3 -c '{WRITER}' < /dev/null > /tmp/told 2>&1 &\n"
    )
    status, output = people.run(
        f"cat data.csv > /dev/null\n{begin}until [ -e /tmp/acknowledged ]; do sleep 0.1; done"
    )
    assert status == 0, output
    users.auth.revoke_session(str(left.session_id))
    # What the server believes of a user and what the kernel remembers of a directory are each a second old at most.
    refused = (
        "for i in $(seq 100); do { cat data.csv || ls || ls ..; } > /dev/null 2>&1 || break; sleep 0.1; done"
    )
    people.run(f"{refused}; touch /tmp/go-on; while pgrep -f acknowledged; do sleep 0.1; done")
    told = people.guest.run("cat /tmp/told")[1].splitlines()
    assert told, "the tool that wrote on was told"
    for command in ("cat {}/data.csv", "ls {}", "ls {}/..", "echo 7,G,1,X >> {}/data.csv", "stat {}/../.."):
        status, output = people.guest.run(command.format(people.directory))
        assert status, command
        assert any(why in output for why in VOID), (command, output)
    users.actors[name] = users.auth.authenticate(users.auth.login(name, PASSWORD))
    users.guest.run(f"umount -f -l {users.mounts.pop()}")
    again = users.table(name, at, profile)
    kept = again.guest.run(f"cat {again.directory}/../.rejected/*-data.csv")[1]
    landed = [row for row in again.rows() if row not in rows]
    assert [row["id"] for row in landed] == [5] or "5,Eve,41,Rome" in kept, (landed, kept, told)
    assert "6,Finn" not in again.run("cat data.csv")[1]
