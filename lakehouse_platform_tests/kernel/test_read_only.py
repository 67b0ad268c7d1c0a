"""What is mounted read-only, by the client or by the server, can be read and not changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakehouse_platform_tests.support.kernel_guest import PROFILES, KernelGuest
from lakehouse_platform_tests.support.mounted_lake import ROWS, MountedLake, MountedTable, ServerProcess

CHANGES = (
    "echo 4,Dave,28,Boston >> data.csv",
    "cat /dev/null > data.csv",
    "cp /etc/passwd data.csv",
    "sed -i s/30/31/ data.csv",
    "truncate -s 0 data.csv",
    "mv data.csv t",
    "rm -f data.csv",
    "touch data.csv",
    "chmod 777 data.csv",
    "mkdir d",
    "ln -s data.csv l",
    "echo x > t",
    "echo SELECT 1 > ../.query",
)


# Where only the server refuses, the kernel asks it before it opens a file for writing, and takes "no" for EACCES.
TOLD = {"ro": {"Read-only file system"}, "--read-only": {"Read-only file system", "Permission denied"}}


@pytest.fixture(params=TOLD)
def by(request: pytest.FixtureRequest) -> str:
    """What makes the mount read-only: the client's option or the server's."""
    return request.param


@pytest.fixture
def read_only(by: str, lake_mounted: MountedLake, guest: KernelGuest) -> Iterator[MountedTable]:
    """The three people, mounted so that nothing can be changed."""
    at, table = "/mnt/read-only", lake_mounted.table()
    arguments = ["--read-only"] if by == "--read-only" else []
    server = ServerProcess(table.location.uri, lake_mounted.directory / f"by{by}", arguments=arguments)
    options = PROFILES["sync"] + (",ro" if by == "ro" else "")
    try:
        guest.mount(server.start().port, server.ready["exports"]["sync"], at, options)
        yield MountedTable(table, guest, f"{at}/data", "sync")
    finally:
        guest.run(f"umount -f {at}")
        server.close()


def test_every_change_is_refused(read_only: MountedTable, by: str) -> None:
    before = read_only.table.version()
    for change in CHANGES:
        status, output = read_only.run(change)
        assert status, change
        assert output.strip().rpartition(": ")[2] in TOLD[by], (change, output)
    assert read_only.settled_version(before, within_s=0.7) == before
    assert read_only.rows() == ROWS
    assert read_only.run("cat data.csv | wc -l; ls")[1].splitlines()[:2] == ["4", "data.csv"]
