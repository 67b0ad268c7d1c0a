"""As whom commands on tables act, what they are refused, and what the audit log holds of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse_platform.audit.reports import AuditRecord
from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform.identity.permissions import Right
from lakehouse_platform.model.actions import ActionType as A
from lakehouse_platform.model.origin import Door
from lakehouse_platform_tests.unit.cli.running import PASSWORD, Run, document, error, lakehouse_here

PROGRAM = [sys.executable, "-m", "lakehouse_platform"]
TABLES = ("customers", "orders")
# What a command may need, from the least to the most: beyond all rights on a table is the administrator's.
LADDER = (*Right, None)


@dataclass(frozen=True)
class Step:
    """One command: the right that it needs (None for an administrator), and how the audit log tells of it."""

    words: tuple[str, ...]
    right: Right | None
    action: A
    rows: int | None = None
    table: str = "customers"


NEW_ROW, DELETED = '{"id": 9, "name": "Ada"}', '{"id": 9, "_op": "DELETE"}'
STEPS = [
    Step(("query", "customers", "SELECT * FROM data"), Right.READ, A.SQL_QUERY, 4),
    Step(("query", "./lakehouse/customers", "SELECT * FROM data LIMIT 2"), Right.READ, A.SQL_QUERY, 2),
    Step(("sql", "SELECT id FROM customers"), Right.READ, A.SQL_QUERY, 4),
    Step(("at", "customers", "1"), Right.READ, A.DATA_READ, 3),
    Step(("at", "customers", "1", "SELECT count(*) FROM data"), Right.READ, A.SQL_QUERY, 1),
    Step(("export", "customers", "out.csv"), Right.READ, A.DATA_EXPORT, 4),
    Step(("diff", "customers", "1", "2"), Right.READ, A.DATA_READ, 2),
    *(
        Step((name, "customers"), Right.READ, A.DATA_READ)
        for name in ("history", "schema", "describe", "stats", "properties", "constraints")
    ),
    Step(("insert", "customers", NEW_ROW), Right.WRITE, A.DATA_WRITE, 1),
    Step(("merge", "customers", DELETED), Right.WRITE, A.DATA_WRITE, 1),
    Step(("append", "orders", "new_orders.csv"), Right.WRITE, A.DATA_WRITE, 1, "orders"),
    Step(("update", "orders", "--set", "amount=1.0", "--where", "id = 5"), Right.WRITE, A.DATA_WRITE, 1, "orders"),
    Step(("delete", "orders", "--where", "id = 5"), Right.WRITE, A.DATA_WRITE, 1, "orders"),
    Step(("append", "orders", "new_orders.csv", "--evolve"), Right.MAINTAIN, A.DATA_WRITE, 1, "orders"),
    Step(("compact", "customers"), Right.MAINTAIN, A.MAINTENANCE),
    Step(("zorder", "customers", "id"), Right.MAINTAIN, A.MAINTENANCE),
    Step(("vacuum", "customers", "--dry-run"), Right.MAINTAIN, A.MAINTENANCE),
    Step(("checkpoint", "customers"), Right.MAINTAIN, A.MAINTENANCE),
    Step(("set-primary-key", "orders", "id"), Right.MAINTAIN, A.SCHEMA_CHANGE, None, "orders"),
    Step(("add-columns", "customers", "email:String"), Right.MAINTAIN, A.SCHEMA_CHANGE),
    Step(("properties", "orders", "--set", "delta.enableChangeDataFeed=true"), Right.MAINTAIN, A.SCHEMA_CHANGE,
         None, "orders"),
    Step(("constraints", "customers", "--add", "positive", "id > 0"), Right.MAINTAIN, A.SCHEMA_CHANGE),
    Step(("insert", "orders", '{"id": 30, "country": "FR"}'), Right.WRITE, A.DATA_WRITE, 1, "orders"),
    Step(("restore", "customers", "1"), Right.MAINTAIN, A.RESTORE),
    Step(("create", "trips", "--schema", "id:Int64"), None, A.SCHEMA_CHANGE, 0, "trips"),
    Step(("drop", "orders", "--yes"), None, A.SCHEMA_CHANGE, None, "orders"),
]  # fmt: skip


def sign_in(run: Run, name: str = "alice", right: Right | None = None) -> str:
    """Give somebody a right on both tables and no limit, sign in, and return the user's id."""
    document(run("users", "tier", name, "enterprise", "--json"))
    for table in TABLES if right else ():
        document(run("users", "grant", name, table, str(right), "--json"))
    document(run("login", name, "--password-stdin", "--json", stdin=f"{PASSWORD}\n"))
    return str(document(run("whoami", "--json"))["user_id"])


def entries(workplace: Path, user_id: str | None) -> list[AuditRecord]:
    """Return what the audit log has of somebody's work, or everybody's, on tables, without the beginnings."""
    with lakehouse_here(workplace) as lakehouse:
        found = lakehouse.accounts.audit.search(user_id=user_id, limit=1000)
    return [one for one in found if one.resource is not None and one.outcome != "started"]


def versions(workplace: Path) -> list[int]:
    store = lakehouse_here(workplace).store
    return [store.table(name).version() for name in TABLES]


def facts(record: AuditRecord) -> tuple[str | None, ...]:
    return (record.action, record.resource, record.outcome, record.door)


def process(workplace: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a real process in the workplace, with its environment."""
    done = subprocess.run(
        [*PROGRAM, *words],
        cwd=workplace,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def may(holder: Right | None, needed: Right | None) -> bool:
    return holder is not None and needed is not None and holder.includes(needed)


def steps_around(right: Right | None) -> list[Step]:
    """Return the commands for which a right is just enough, and those for which it is just too little."""
    next_one = LADDER[LADDER.index(right) + 1] if right else LADDER[0]
    return [step for step in STEPS if step.right == next_one or (right and step.right == right)]


@pytest.mark.parametrize("right", [None, *Right])
def test_each_command_is_done_or_refused_by_right_and_is_in_the_audit_log(
    run: Run, workplace: Path, right: Right | None
) -> None:
    alice = sign_in(run, "alice", right)
    before = versions(workplace)
    expected: list[tuple[str | None, ...]] = []
    counts: list[int | None] = []
    for step in steps_around(right):
        result = run(*step.words, "--json")
        if may(right, step.right):
            assert result.exit_code == ExitStatus.OK, (step, result.output)
            expected.append((step.action.value, step.table, "done", "cli"))
            counts.append(step.rows)
            before = versions(workplace)
            continue
        assert (result.exit_code, error(result)["code"]) == (ExitStatus.DENIED, "permission_denied"), step
        assert "You may not" in error(result)["message"]
        assert versions(workplace) == before
        expected.append((A.PERMISSION_DENIED.value, step.table, "denied", "cli"))
        counts.append(None)
    found = entries(workplace, alice)
    assert [facts(one) for one in found] == expected
    assert [one.row_count for one in found] == counts
    assert Path("out.csv").exists() == (right is Right.READ)


def test_each_command_is_tried_with_a_right_that_is_enough_and_with_one_that_is_not() -> None:
    for step in STEPS:
        tried = [may(right, step.right) for right in (None, *Right) if step in steps_around(right)]
        assert set(tried) == ({True, False} if step.right else {False}), step


def test_an_administrator_creates_and_drops(run: Run, workplace: Path) -> None:
    root = sign_in(run, "root")
    document(run("create", "trips", "--from-csv", "orders.csv", "--json"))
    document(run("drop", "trips", "--yes", "--json"))
    found = [(*facts(one)[:3], one.row_count) for one in entries(workplace, root)]
    assert found == [("schema_change", "trips", "done", 4), ("schema_change", "trips", "done", None)]


def test_the_platforms_tables_show_no_secret_and_are_not_changed_through_a_sign_in(
    run: Run, workplace: Path
) -> None:
    sign_in(run, "root")
    assert "password_hash" not in run("query", "users", "SELECT * FROM data LIMIT 1").stdout
    assert run("sql", "SELECT password_hash FROM users").exit_code == ExitStatus.QUERY
    for words in (
        ("delete", "users", "--where", "true"),
        ("drop", "grants", "--yes"),
        ("restore", "audit_log", "1"),
    ):
        assert run(*words).exit_code == ExitStatus.DENIED, words
    assert "password_hash" in run("schema", "users", env={"XDG_STATE_HOME": str(workplace / "other")}).stdout


def test_nobody_brings_back_an_old_audit_log(run: Run) -> None:
    assert error(run("restore", "audit_log", "0", "--json"))["code"] == "permission_denied"


def test_tables_lists_what_one_may_read(run: Run) -> None:
    document(run("users", "grant", "alice", "orders", "read", "--json"))
    owned = {one["name"] for one in document(run("tables", "--json"))}
    assert owned > {"customers", "orders", "users"}
    sign_in(run)
    assert document(run("tables", "--names", "--json")) == [{"name": "orders"}]
    (only,) = document(run("tables", "--json"))
    assert (only["name"], only["rows"]) == ("orders", 4)


def test_a_table_that_one_may_not_read_is_refused_like_one_that_is_not_there(run: Run) -> None:
    sign_in(run)
    there, missing = (error(run("schema", name, "--json")) for name in ("orders", "nothing"))
    assert there["code"] == missing["code"] == "permission_denied"
    assert there["message"].replace("orders", "nothing") == missing["message"]


def test_tables_elsewhere_stay_the_callers_own(run: Run, workplace: Path) -> None:
    alice = sign_in(run)
    document(run("create", "./mine/notes", "--schema", "id:Int64", "--json"))
    document(run("insert", "./mine/notes", '{"id": 1}', "--json"))
    assert document(run("query", "mine/notes", "SELECT * FROM data", "--json")) == [{"id": 1}]
    assert entries(workplace, alice) == []


def test_a_symbolic_link_is_no_way_around(run: Run, workplace: Path) -> None:
    (workplace / "link").symlink_to(workplace / "lakehouse" / "customers")
    (workplace / "other").symlink_to(workplace / "lakehouse")
    sign_in(run)
    for way in ("./link", "./other/customers", "lakehouse/../lakehouse/customers"):
        refused = run("query", way, "SELECT * FROM data", "--json")
        assert (refused.exit_code, error(refused)["details"]["table"]) == (ExitStatus.DENIED, "customers")


def test_maintenance_is_done_only_on_tables_that_one_may_maintain(run: Run, workplace: Path) -> None:
    env = {"LAKEHOUSE_CHECKPOINT_INTERVAL": "1"}
    alice = sign_in(run, "alice", Right.READ)
    before = versions(workplace)
    result = run("maintain", "--task", "checkpoint", "--json", env=env)
    assert result.exit_code == ExitStatus.PROBLEM, result.output
    assert {one["status"] for one in json.loads(result.stdout) if one["table"] in TABLES} == {"failed"}
    assert versions(workplace) == before
    assert {one.action for one in entries(workplace, alice)} == {A.PERMISSION_DENIED.value}


def test_a_sign_in_that_has_ended_is_no_way_to_be_the_owner(run: Run, workplace: Path) -> None:
    alice = sign_in(run, "alice", Right.READ)
    with lakehouse_here(workplace) as lakehouse:
        lakehouse.accounts.disable(alice)
    for words in (("query", "customers", "SELECT 1"), ("sql", "SELECT 1"), ("tables",), ("maintain",)):
        assert run(*words).exit_code == ExitStatus.DENIED, words
    document(run("logout", "--json"))
    assert run("query", "customers", "SELECT 1").exit_code == ExitStatus.OK


def test_a_commit_carries_who_is_signed_in(run: Run, workplace: Path) -> None:
    alice = sign_in(run, "alice", Right.WRITE)
    document(run("insert", "customers", NEW_ROW, "--json"))
    (newest,) = lakehouse_here(workplace).store.history("customers", 1)
    assert (newest.actor, newest.door) == (alice, Door.CLI)


# ── The owner of the files: in real processes where their end matters ───────────────────────────────


def test_the_owners_commands_are_in_the_audit_log_too(workplace: Path) -> None:
    earlier = len(entries(workplace, "owner"))
    for words, status in [
        (("query", "customers", "SELECT * FROM data"), ExitStatus.OK),
        (("insert", "customers", NEW_ROW), ExitStatus.OK),
        (("schema", "nothing"), ExitStatus.NOT_FOUND),
        (("query", "customers", "SELECT nonsense FROM data"), ExitStatus.QUERY),
    ]:
        assert process(workplace, *words).returncode == status, words
    found = entries(workplace, "owner")[earlier:]
    assert sorted((*facts(one), str(one.row_count)) for one in found) == [
        ("data_read", "nothing", "failed", "cli", "None"),
        ("data_write", "customers", "done", "cli", "1"),
        ("sql_query", "customers", "done", "cli", "4"),
        ("sql_query", "customers", "failed", "cli", "None"),
    ]
    with lakehouse_here(workplace) as lakehouse:
        assert lakehouse.accounts.audit.verify().is_whole


def test_the_owners_query_changes_nothing_in_the_lakehouse(workplace: Path) -> None:
    def seen() -> set[str]:
        return {str(path) for path in (workplace / "lakehouse").rglob("*")}

    before = seen()
    assert process(workplace, "query", "customers", "SELECT * FROM data").returncode == ExitStatus.OK
    assert seen() == before
    assert not list((workplace.parent / "state").rglob("*.sqlite"))


def test_a_lakehouse_without_an_audit_log_gets_none(run: Run, tmp_path: Path) -> None:
    settings = {"LAKEHOUSE_BASE_PATH": str(tmp_path / "lakehouse"), "XDG_STATE_HOME": str(tmp_path / "none")}
    for words in [
        ("create", "notes", "--schema", "id:Int64"),
        ("insert", "notes", '{"id": 1}'),
        ("query", "notes", "SELECT * FROM data"),
        ("sql", "SELECT * FROM notes"),
        ("compact", "notes"),
        ("maintain",),
        ("tables",),
    ]:
        assert run(*words, env=settings).exit_code == ExitStatus.OK, words
    assert [path.name for path in (tmp_path / "lakehouse").iterdir()] == ["notes"]
    assert not [path for path in (tmp_path / "none").rglob("*") if path.suffix in {".sqlite", ".journal"}]


def test_a_query_whose_reader_leaves_is_in_the_audit_log(workplace: Path) -> None:
    text = "SELECT a.id FROM " + ", ".join(
        f"customers {letter}" for letter in "abcdefghi"
    )  # 4 to the ninth rows
    running = subprocess.Popen(
        [*PROGRAM, "sql", text, "--format", "csv"],
        cwd=workplace,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.wait() == ExitStatus.BROKEN_PIPE
    running.communicate()
    (last,) = entries(workplace, "owner")[-1:]
    assert (last.action, last.outcome) == ("sql_query", "done")
    assert "not read to its end" in str(last.details)


def test_a_command_that_is_killed_has_left_its_beginning(workplace: Path) -> None:
    script = (
        "import os, signal\n"
        "from lakehouse_platform.cli.acting import Permission, using\n"
        "from lakehouse_platform.cli.session import Session\n"
        "with using(Session(), 'customers', Permission.DROP_TABLE, 'drop'):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=workplace, check=False)
    assert killed.returncode == -signal.SIGKILL
    with lakehouse_here(workplace) as lakehouse:
        (begun,) = lakehouse.accounts.audit.search(
            user_id="owner", resource="customers", action=A.SCHEMA_CHANGE
        )[-1:]
    assert (begun.outcome, begun.details) == ("started", "drop")


@pytest.mark.parametrize("who", ["root", None])
def test_a_right_does_not_outlive_its_table(run: Run, workplace: Path, who: str | None) -> None:
    sign_in(run, "alice", Right.WRITE)
    document(run("logout", "--json"))
    if who is not None:
        sign_in(run, who)
    document(run("drop", "customers", "--yes", "--json"))
    document(run("create", "customers", "--schema", "secret:String", "--json"))
    sign_in(run, "alice")
    assert run("query", "customers", "SELECT * FROM data").exit_code == ExitStatus.DENIED
    (dropped,) = [one for one in entries(workplace, None) if str(one.details).startswith("drop")]
    assert "takes the rights of 1 users on it" in str(dropped.details)


def test_what_cannot_be_written_down_is_not_done(run: Run, workplace: Path) -> None:
    assert run("describe", "customers").exit_code == ExitStatus.OK
    (journal,) = (workplace.parent / "state").rglob("audit")
    shutil.rmtree(journal)
    journal.write_text("no directory")
    before = versions(workplace)
    for words in [
        ("insert", "customers", NEW_ROW),
        ("delete", "customers", "--where", "true"),
        ("compact", "customers"),
        ("create", "trips", "--schema", "id:Int64"),
        ("drop", "customers", "--yes"),
        ("query", "customers", "SELECT * FROM data"),
        ("describe", "customers"),
    ]:
        done = run(*words)
        assert (done.exit_code, done.stdout) == (ExitStatus.IO, ""), words
        assert str(journal) in done.stderr, words
    assert versions(workplace) == before
    assert not (workplace / "lakehouse" / "trips").exists()


@pytest.mark.parametrize("name", ["grants", "audit_log", "users"])
def test_the_owner_may_drop_the_platforms_own_tables(run: Run, workplace: Path, name: str) -> None:
    assert run("drop", name, "--yes").exit_code == ExitStatus.OK
    assert not (workplace / "lakehouse" / name).exists()
    assert run("drop", "customers", "--yes").exit_code == ExitStatus.OK
