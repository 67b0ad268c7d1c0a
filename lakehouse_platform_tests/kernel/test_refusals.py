"""Bad rows fail the tool that writes them, are kept, and change nothing; the kernel's own gaps are told."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform_tests.support.kernel_guest import PROFILES
from lakehouse_platform_tests.support.mounted_lake import ROWS, MountedTable

STRICT = Schema(
    [
        Field("id", "Int64", nullable=False),
        Field("name", "String"),
        Field("age", "Int32"),
        Field("city", "String"),
    ]
)
BAD = {
    "type": "9,Zoe,abc,Oslo",
    "too few fields": "9,Zoe",
    "too many fields": "9,Zoe,1,Oslo,x",
    "NOT NULL": ",Zoe,1,Oslo",
    "duplicate key": "1,Zoe,1,Oslo",
    "constraint": "9,Zoe,-1,Oslo",
    "text after a quote": '9,"Zoe"x,1,Oslo',
    "not UTF-8": r"9,Z\xff,1,Oslo",
}
APPENDING = {
    "echo": "printf '{}\\n' > /tmp/bad; echo \"$(cat /tmp/bad)\" >> data.csv",
    "env echo": "printf '{}\\n' > /tmp/bad; env echo \"$(cat /tmp/bad)\" >> data.csv",
    "tee -a": "printf '{}\\n' | tee -a data.csv",
    "cat >>": "printf '{}\\n' > /tmp/bad; cat /tmp/bad >> data.csv",
}
REWRITING = {
    "cp": "(cat data.csv; printf '{}\\n') > /tmp/bad; cp /tmp/bad data.csv",
    "cat >": "(cat data.csv; printf '{}\\n') > /tmp/bad; cat /tmp/bad > data.csv",
    "mv": "(cat data.csv; printf '{}\\n') > t; mv t data.csv",
    "sed -i": "printf '{}\\n' > /tmp/bad; sed -i '$r /tmp/bad' data.csv",
    "vim": "printf '{}\\n' > /tmp/bad; vim -es -u NONE -c '$r /tmp/bad' -c wq data.csv",
    "rsync": "(cat data.csv; printf '{}\\n') > /tmp/bad; rsync /tmp/bad data.csv",
}
TOOLS = {**APPENDING, **REWRITING}
# bash closes the file of a builtin's redirection with dup2(2), which drops the error of close(2); only a mount with
# `sync`, where write(2) itself waits for the server, can make it fail.
LOST_BY_THE_SHELL = {("echo", "bulk")}


@pytest.fixture
def strict_tables(mounted: Callable[..., MountedTable]) -> Callable[[], MountedTable]:
    """Makes tables of the three people with a key, a NOT NULL column and a constraint."""

    def make() -> MountedTable:
        people = mounted(schema=STRICT, primary_key=("id",))
        people.table.add_constraint("grown", "age >= 0")
        return people

    return make


@pytest.fixture
def strict(strict_tables: Callable[[], MountedTable]) -> MountedTable:
    """One such table."""
    return strict_tables()


def faults_for(tool: str, profile: str) -> list[str]:
    """Return a third of the faults: each meets tools of both kinds in each profile, and each tool meets most faults."""
    first = list(TOOLS).index(tool) + list(PROFILES).index(profile)
    return [fault for number, fault in enumerate(BAD, first) if number % 3 == 0]


@pytest.mark.parametrize("tool", TOOLS)
def test_bad_rows_are_refused(strict_tables: Callable[[], MountedTable], tool: str, profile: str) -> None:
    tables = {fault: strict_tables() for fault in faults_for(tool, profile)}
    before = {fault: table.table.version() for fault, table in tables.items()}
    for fault, table in tables.items():
        status, output = table.run(TOOLS[tool].format(BAD[fault]))
        assert status != 0 or (tool, table.profile) in LOST_BY_THE_SHELL, (fault, output)
    time.sleep(0.7)  # longer than the quiet time of an append or a rewrite
    for fault, table in tables.items():
        assert (table.table.version(), table.rows()) == (before[fault], ROWS), fault
        _check_what_is_told(table, fault)


def _check_what_is_told(table: MountedTable, fault: str) -> None:
    output = table.run("cat ../.last_error; echo ==; cat ../.rejected/*.csv; echo ==; cat data.csv")[1]
    told, kept, shown = output.split("==\n")
    assert "Line " in told or "key" in told, (fault, told)
    assert "Oslo" in kept or fault == "too few fields", (fault, kept)
    assert shown == "id,name,age,city\n1,Alice,30,NYC\n2,Bob,25,SF\n3,Charlie,35,LA\n", fault


@pytest.mark.parametrize("tools", [APPENDING, REWRITING])
def test_every_fault_meets_tools_of_both_kinds(tools: dict[str, str], profile: str) -> None:
    assert {fault for tool in tools for fault in faults_for(tool, profile)} == BAD.keys()


def test_an_open_quote_is_refused(strict: MountedTable) -> None:
    before = strict.table.version()
    assert strict.run("cp data.csv t; echo '9,\"Zoe,1,Oslo' >> t; mv t data.csv")[0] != 0
    assert strict.settled_version(before, within_s=0.7) == before


def test_a_file_without_its_header_is_refused(strict: MountedTable) -> None:
    before = strict.table.version()
    assert strict.run("tail -n +2 data.csv > t; mv t data.csv")[0] != 0
    assert strict.run("tail -n +2 data.csv > /tmp/t; cp /tmp/t data.csv")[0] != 0
    assert strict.settled_version(before, within_s=0.7) == before
    assert "header" in strict.run("cat ../.last_error")[1]


@pytest.mark.parametrize("header", ["id,name,age,town", "id,name,age", "id,id,name,age,city"])
def test_a_wrong_header_is_refused(strict: MountedTable, header: str) -> None:
    before = strict.table.version()
    assert strict.run(f"(echo {header}; tail -n +2 data.csv) > t; mv t data.csv")[0] != 0
    assert strict.settled_version(before, within_s=0.7) == before


@pytest.mark.parametrize("name", ["data.json", "data.jsonl", "../schema.sql", "../.history", "../.stats"])
def test_what_cannot_be_edited_says_so(people: MountedTable, name: str) -> None:
    assert people.run(f"echo x >> {name}")[0] != 0
    assert people.run(f"rm {name}")[0] != 0
    assert people.run(f"cat {name} > /dev/null")[0] == 0
