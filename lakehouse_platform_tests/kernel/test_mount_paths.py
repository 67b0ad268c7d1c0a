"""Mounting by paths that nobody should use: refused by the server or by the kernel, and everything goes on."""

from __future__ import annotations

import re
import shlex

import pytest

from lakehouse_platform_tests.support.kernel_guest import KernelGuest
from lakehouse_platform_tests.support.mounted_lake import MountedLake, MountedTable

pytestmark = pytest.mark.parametrize("profile", ["sync"])  # paths are the same in both

# `{lake}` is the right export path, `{ticket}` its first part, `{table}` a table. NFSv3 has no code for most of these.
REFUSED = {
    "no ticket": "/lake",
    "the root": "/",
    "a wrong ticket": "/AAAAAAAAAAAAAAAAAAAAAA/lake",
    "a part of the ticket": "{part}/lake",
    "the ticket alone": "{ticket}",
    "the ticket in other letters": "{swapped}/lake",
    "up": "{lake}/..",
    "up and down": "{ticket}/../{bare}/lake",
    "a dot": "{lake}/.",
    "a table that is not there": "{lake}/none",
    "a system table": "{lake}/_users",
    "the log": "{lake}/{table}/_delta_log",
    "a file": "{lake}/{table}/schema.sql",
    "a view": "{lake}/{table}/data/data.csv",
    "below a file": "{lake}/{table}/data/data.csv/x",
    "a version that is not there": "{lake}/{table}/.versions/999",
    "another profile": "{lake}@fast",
    "two profiles": "{lake}@bulk@bulk",
    "escaped": "{lake}/%2e%2e",
    "a line end": "{lake}/a\nb",
    "not UTF-8": "{lake}/\udcff\udcfe",
    "a shell": "{lake}/$(poweroff)",
    "a name of 256 bytes": "{lake}/" + "x" * 256,
    "a path of 1024 bytes": "{lake}/" + "/".join(["x" * 99] * 11),
    "a path of 4000 bytes": "{lake}/" + "x/" * 1980,
}
ALLOWED = {
    "the lake": "{lake}",
    "the lake in bulk": "{lake}@bulk",
    "with slashes": "/{lake}///",
    "a table": "{ticket}/{table}",
    "a table in the lake": "{lake}/{table}",
    "a table's data": "{ticket}/{table}@bulk/data",
    "a version": "{lake}/{table}/.versions/1",
}


def _path(lake: MountedLake, table: str, pattern: str) -> str:
    export = lake.server.ready["exports"]["sync"]
    ticket = export.removesuffix("/lake")
    assert re.fullmatch(r"/[\w-]{22}", ticket)
    return pattern.format(
        lake=export,
        ticket=ticket,
        bare=ticket[1:],
        part=ticket[:-1],
        swapped=ticket.swapcase(),
        table=table,
    )


def _attempt(guest: KernelGuest, port: int, path: str) -> tuple[int, str]:
    fixed = f"addr=10.0.2.2,vers=3,proto=tcp,port={port},mountproto=tcp,mountaddr=10.0.2.2,mountport={port},nolock"
    source = (
        "$'" + "".join(f"\\x{byte:02x}" for byte in f"10.0.2.2:{path}".encode(errors="surrogateescape")) + "'"
    )
    return guest.run(f"mkdir -p /mnt/try && mount -i -t nfs -o {fixed} {source} /mnt/try", 60)


def test_hostile_paths_are_not_mounted(people: MountedTable, lake_mounted: MountedLake) -> None:
    mounted: list[str] = []
    for case, pattern in REFUSED.items():
        status, _ = _attempt(
            people.guest, lake_mounted.server.port, _path(lake_mounted, people.table.name, pattern)
        )
        if status == 0:
            mounted.append(case)
            people.guest.run("umount /mnt/try")
    assert mounted == []
    assert people.run("cat data.csv | wc -l")[1].strip() == "4"


@pytest.mark.parametrize("case", ALLOWED)
def test_directories_are_mounted_by_any_of_their_paths(
    people: MountedTable, lake_mounted: MountedLake, case: str
) -> None:
    path = _path(lake_mounted, people.table.name, ALLOWED[case])
    status, output = _attempt(people.guest, lake_mounted.server.port, path)
    assert status == 0, output
    # Not by listing: a lake lists a table within a second of its creation.
    places = f"/mnt/try/{people.table.name}/data /mnt/try/data /mnt/try"
    look = (
        f"for place in {places}; do [ -s $place/data.csv ] && found=$place; done; umount /mnt/try; [ $found ]"
    )
    assert people.guest.run(look)[0] == 0


@pytest.mark.parametrize("directory", ["a b", "-o", "ö$(id)'\"", "a\nb", "x" * 255])
def test_a_mount_point_can_have_any_name(
    people: MountedTable, lake_mounted: MountedLake, directory: str
) -> None:
    at = f"/mnt/odd/{directory}"
    people.guest.mount(
        lake_mounted.server.port, lake_mounted.server.ready["exports"]["sync"], shlex.quote(at), "sync"
    )
    look = f"cat {shlex.quote(at)}/{people.table.name}/data/data.csv; umount {shlex.quote(at)}"
    assert people.guest.run(look) == (0, people.run("cat data.csv")[1])
