"""The records of mounts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.mounts import MountRecord, MountRegistry


def _record(mountpoint: str, pid: int = 1) -> MountRecord:
    return MountRecord(
        source="people", mountpoint=mountpoint, profile="sync", read_only=False, pid=pid, port=2049
    )


@given(places=st.sets(st.binary(min_size=1).map(os.fsdecode), max_size=5))
def test_a_mount_is_found_again_by_its_place_whatever_that_is_called(
    tmp_path: Path, places: set[str]
) -> None:
    registry = MountRegistry(tmp_path / "mounts")
    for place in places:
        registry.add(_record(place))
    assert {record.mountpoint for record in registry.all()} == places
    for place in places:
        assert registry.find(place) == _record(place)
        registry.remove(place)
        assert registry.find(place) is None
    assert registry.all() == []


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    registry = MountRegistry(tmp_path)
    registry.add(_record("/mnt"))
    (file,) = tmp_path.glob("*.json")
    for text in ("", "{", "[]", "{}", '{"source": 1, "unknown": 2}'):
        file.write_text(text)
        assert (registry.find("/mnt"), registry.all()) == (None, [])


def test_a_server_runs_until_it_ends() -> None:
    words = ("--mountpoint", "/mnt/ä b")
    program = [sys.executable, "-c", "print(flush=True); input()", *words]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout
        server.stdout.readline()  # its command line is not to be seen before it runs
        assert _record("/mnt/ä b", server.pid).is_alive
        server.kill()
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)  # ended, and not yet reaped
        assert not _record("/mnt/ä b", server.pid).is_alive
    assert not _record("/mnt/ä b", server.pid).is_alive


def test_a_process_that_has_the_number_of_a_server_that_ended_is_let_alone() -> None:
    record = _record("/mnt", os.getpid())
    assert not record.is_alive
    record.stop(0)
