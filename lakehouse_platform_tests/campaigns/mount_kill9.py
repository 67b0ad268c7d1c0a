"""Kills the mount's server at random moments under appends and overwrites through a real kernel client.

    python -m lakehouse_platform_tests.campaigns.mount_kill9 --kills 200 --profile sync

Holds afterwards: each line whose command returned 0 is in the table exactly once, no other line is, each edit was one
version, and the client carried on without mounting again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.kernel_guest import KernelGuest, guest_image
from lakehouse_platform_tests.support.mounted_lake import MountedLake

_AT = "/mnt/killed"
_APPENDER = """cd {directory}; i=1000
while [ ! -e /tmp/stop ]; do
    i=$((i+1))
    if env echo "$i,n$i,1,x" >> data.csv; then echo $i >> /tmp/appended; else echo $i >> /tmp/append-failed; fi
done; echo done > /tmp/appender-done"""
_OVERWRITER = """cd {directory}; i=0
while [ ! -e /tmp/stop ]; do
    i=$((i+1))
    if sed -i "s/^1,.*/1,Alice,$i,NYC/" data.csv; then echo $i >> /tmp/overwritten
    else echo $i >> /tmp/overwrite-failed; fi
done; echo done > /tmp/overwriter-done"""


def main() -> None:
    """Run the campaign and print what was acknowledged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--profile", choices=("sync", "bulk"), default="sync")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, KernelGuest(guest_image()) as guest:
        chance = random.Random(arguments.seed)
        sys.stdout.write(run(Path(directory), guest, arguments.kills, arguments.profile, chance) + "\n")


def run(directory: Path, guest: KernelGuest, kills: int, profile: str, chance: random.Random) -> str:
    """Kill the server so many times; return a line about what held."""
    lake = MountedLake(directory)
    try:
        appended, overwritten = lake.table(), lake.table()
        starts = appended.version(), overwritten.version()
        _start_load(lake, guest, profile, appended, overwritten)
        for _ in range(kills):
            time.sleep(chance.uniform(0.05, 1.5))
            lake.server.kill()
            lake.server.start()
        _stop_load(guest)
        complaints = guest.run("cat /tmp/*-load.log")[1]
        assert not complaints, complaints
        return "; ".join(
            [
                f"{kills} kills",
                _check_appends(guest, appended, starts[0]),
                _check_overwrites(guest, overwritten, starts[1]),
            ]
        )
    finally:
        guest.run(f"touch /tmp/stop; umount -f -l {_AT}")
        lake.close()


def _start_load(
    lake: MountedLake, guest: KernelGuest, profile: str, appended: Table, overwritten: Table
) -> None:
    lake.mount(guest, profile, _AT)
    guest.run("rm -f /tmp/stop /tmp/append* /tmp/overwr*")
    for name, script, table in (("append", _APPENDER, appended), ("overwrite", _OVERWRITER, overwritten)):
        text = script.format(directory=f"{_AT}/{table.name}/data")
        guest.run(f"setsid bash -c {_quoted(text)} > /tmp/{name}-load.log 2>&1 &")
    for made in ("appended", "overwritten"):
        assert _appears(guest, f"/tmp/{made}"), f"nothing was ever {made}"


def _appears(guest: KernelGuest, path: str) -> bool:
    return (
        guest.run(f"for i in $(seq 1200); do [ -e {path} ] && exit 0; sleep 0.1; done; exit 1", 180)[0] == 0
    )


def _stop_load(guest: KernelGuest) -> None:
    guest.run("touch /tmp/stop")
    for name in ("appender", "overwriter"):
        assert _appears(guest, f"/tmp/{name}-done"), f"the {name} hangs: the client did not carry on"
    time.sleep(3)  # longer than any quiet time: what waits is published


def _check_appends(guest: KernelGuest, table: Table, start: int) -> str:
    acknowledged, failed = _numbers(guest, "/tmp/appended"), _numbers(guest, "/tmp/append-failed")
    found = Counter(row["id"] for row in table.scan().to_arrow().to_pylist() if row["id"] >= 1000)
    lost = [number for number in acknowledged if number not in found]
    doubled = [number for number, times in found.items() if times > 1]
    foreign = sorted(set(found) - set(acknowledged))
    wrong = {"lost": lost, "doubled": doubled, "foreign": foreign}
    assert not any(wrong.values()), f"{wrong}, failed {failed}"
    versions = table.version() - start
    assert versions == len(acknowledged), f"{versions} versions for {len(acknowledged)} appends"
    return (
        f"{len(acknowledged)} appends acknowledged, all there once, one version each, {len(failed)} refused"
    )


def _check_overwrites(guest: KernelGuest, table: Table, start: int) -> str:
    acknowledged, failed = _numbers(guest, "/tmp/overwritten"), _numbers(guest, "/tmp/overwrite-failed")
    rows = {row["id"]: row["age"] for row in table.scan().to_arrow().to_pylist()}
    assert rows == {1: acknowledged[-1], 2: 25, 3: 35}, f"after {acknowledged[-3:]}, failed {failed}"
    versions = table.version() - start
    assert versions == len(acknowledged), f"{versions} versions for {len(acknowledged)} overwrites"
    return f"{len(acknowledged)} overwrites acknowledged, the last one stands, one version each, {len(failed)} refused"


def _numbers(guest: KernelGuest, path: str) -> list[int]:
    return [int(line) for line in guest.run(f"cat {path} 2>/dev/null")[1].split()]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


if __name__ == "__main__":
    main()
