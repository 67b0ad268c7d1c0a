"""The tests of Connectathon and fsx on scratch files, by two mounts at once."""

from __future__ import annotations

import pytest

from lakehouse_platform_tests.kernel.guest_checks import connectathon
from lakehouse_platform_tests.kernel.guest_runs import failed_checks
from lakehouse_platform_tests.support.mounted_lake import ROWS, MountedTable


@pytest.mark.parametrize("profile", ["sync"])  # the other mount is the one in bulk
def test_connectathon_and_fsx_pass(people: MountedTable) -> None:
    before = people.table.version()
    here = f"{people.directory}/cthon"
    there = here.replace("/mnt/sync/", "/mnt/bulk/")
    assert people.run("mkdir cthon")[0] == 0
    assert failed_checks(people.guest, connectathon, here, there) == []
    assert people.run("rm -rf cthon && ls -A | grep -v -e ^data -e parquet")[1] == ""
    assert (people.table.version(), people.rows()) == (before, ROWS)
