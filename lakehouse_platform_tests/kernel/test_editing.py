"""Each edit with a usual tool, through the kernel, is exactly one version with the right rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakehouse_platform_tests.kernel.edits import FIX, KINDS, check_edits
from lakehouse_platform_tests.support.mounted_lake import ROWS, MountedTable


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_is_one_version_and_the_next_command_sees_it(
    mounted: Callable[..., MountedTable], kind: str
) -> None:
    check_edits(mounted, kind)


def test_reading_and_writing_back_the_same_bytes_is_no_version(people: MountedTable) -> None:
    before = people.table.version()
    assert (
        people.run(
            "cp data.csv /tmp/same.csv; cat /tmp/same.csv > data.csv; touch data.csv; cp /tmp/same.csv t; mv t data.csv"
        )[0]
        == 0
    )
    assert people.settled_version(before, within_s=2) == before


def test_rows_in_another_order_are_no_version(people: MountedTable) -> None:
    before = people.table.version()
    assert people.run("(head -1 data.csv; tail -n +2 data.csv | sort -r) > t && mv t data.csv")[0] == 0
    assert people.settled_version(before, within_s=2) == before


def test_a_hundred_echos_are_a_hundred_versions(people: MountedTable) -> None:
    before = people.table.version()
    status, output = people.run(
        "for i in $(seq 101 200); do echo $i,n$i,1,x >> data.csv || exit 9; done", 300
    )
    assert status == 0, output
    assert people.settled_version(before + 99) == before + 100
    assert people.ids() == [1, 2, 3, *range(101, 201)]


def test_a_big_append_is_one_version(people: MountedTable) -> None:
    before = people.table.version()
    make = """awk 'BEGIN{for(i=10;i<200010;i++) print i ",name" i ",30,city"}' > /tmp/big.csv"""
    status, output = people.run(f"{make}; cat /tmp/big.csv >> data.csv; rm /tmp/big.csv", 300)
    assert status == 0, output
    assert people.settled_version(before, 20) == before + 1
    assert people.ids() == [1, 2, 3, *range(10, 200_010)]


@pytest.mark.parametrize("profile", ["sync"])  # the second table is edited in the other mount
def test_a_truncated_file_comes_back(mounted: Callable[..., MountedTable]) -> None:
    tables = [mounted(), mounted("bulk")]
    before = [people.table.version() for people in tables]
    for people in tables:
        assert people.run("truncate -s 0 data.csv")[0] == 0
        assert people.rows() == ROWS
    for people in tables:
        _, output = people.run(
            "for i in $(seq 150); do [ -s data.csv ] && break; sleep 0.1; done; wc -l < data.csv"
        )
        assert output.strip() == "4", people.profile
    assert [people.table.version() for people in tables] == before


def test_the_last_edit_of_several_in_one_script_wins(people: MountedTable) -> None:
    before = people.table.version()
    script = f"sed -i {FIX} data.csv && echo 4,Dave,28,Boston >> data.csv && sed -i /Bob/d data.csv && cat data.csv"
    status, output = people.run(script)
    assert (status, output) == (0, "id,name,age,city\n1,Alice,31,NYC\n3,Charlie,35,LA\n4,Dave,28,Boston\n")
    assert people.settled_version(before) == before + 3


def test_every_copy_beside_the_table_is_an_ordinary_file(people: MountedTable) -> None:
    command = (
        "mkdir -p d/e && cp data.csv d/e/x && mv d/e/x y && ln -s y z && cat z | wc -l && rm -r d y z && ls"
    )
    status, output = people.run(command)
    assert status == 0, output
    assert output.splitlines()[0] == "4"
    assert people.rows() == ROWS


@pytest.mark.parametrize("profile", ["sync"])  # the other mount is the one in bulk
@pytest.mark.parametrize("key", [(), ("id",)])
def test_two_mounts_appending_at_once_lose_nothing(
    mounted: Callable[..., MountedTable], key: tuple[str, ...]
) -> None:
    people = mounted(primary_key=key)
    there = f"/mnt/bulk/{people.table.name}/data/data.csv"
    loops = (
        "(for i in $(seq 101 140); do echo $i,a,1,x >> data.csv || exit 9; done) & "
        f"(for i in $(seq 201 240); do echo $i,b,1,x >> {there} || exit 9; done) & wait"
    )
    before = people.table.version()
    status, output = people.run(loops, 300)
    assert status == 0, output
    people.settled_version(before + 79)
    assert people.ids() == [1, 2, 3, *range(101, 141), *range(201, 241)]
