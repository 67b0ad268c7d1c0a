"""Two machines that have mounted the same lakehouse edit one table at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakehouse_platform_tests.support.kernel_guest import KernelGuest, guest_image
from lakehouse_platform_tests.support.mounted_lake import MountedLake, MountedTable

LINES = 30


@pytest.fixture(scope="module")
def other_guest(guest: KernelGuest, lake_mounted: MountedLake) -> Iterator[KernelGuest]:
    """A second machine, which has mounted the lakehouse as the first one has."""
    del guest  # it says whether this machine can run any
    with KernelGuest(guest_image(), memory_mib=512) as other:
        for profile in ("sync", "bulk"):
            lake_mounted.mount(other, profile, f"/mnt/{profile}")
        yield other


def test_two_machines_appending_at_once_lose_nothing(people: MountedTable, other_guest: KernelGuest) -> None:
    other = MountedTable(people.table, other_guest, people.directory, people.profile)
    before = people.table.version()
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(_append_lines, (people, other), (100, 200)))
    assert results == [(0, ""), (0, "")]
    assert people.settled_version(before + 2 * LINES - 1) == before + 2 * LINES
    assert people.ids() == [1, 2, 3, *range(100, 100 + LINES), *range(200, 200 + LINES)]
    assert people.run("sleep 2; sort data.csv")[1] == other.run("sort data.csv")[1]


def _append_lines(table: MountedTable, first: int) -> tuple[int, str]:
    numbers = f"{first} {first + LINES - 1}"
    return table.run(f"for i in $(seq {numbers}); do echo $i,n$i,1,x >> data.csv || exit 9; done", 240)
