"""Scratch files behave as POSIX says, seen through the kernel, and the table beside them stays as it is."""

from __future__ import annotations

from lakehouse_platform_tests.kernel.guest_checks import posix_making, posix_names
from lakehouse_platform_tests.kernel.guest_runs import failed_checks
from lakehouse_platform_tests.support.mounted_lake import ROWS, MountedTable

PARTS = (posix_making, posix_names)


def test_file_system_calls_do_what_posix_says(people: MountedTable) -> None:
    before = people.table.version()
    assert people.run("mkdir posix")[0] == 0
    failed = [failed_checks(people.guest, checks, people.directory + "/posix") for checks in PARTS]
    assert failed == [[], []]
    assert people.run("rm -rf posix; ls -A")[1].splitlines() == [
        "data.csv", "data.json", "data.jsonl", *people.run("ls | grep parquet")[1].splitlines()
    ]  # fmt: skip
    assert (people.table.version(), people.rows()) == (before, ROWS)
