"""The commands of the mount where nothing can be mounted: servers start, tell, are listed and end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform_tests.support.nfs_client import NfsClient

PROGRAM = [sys.executable, "-m", "lakehouse_platform"]
SIXTY_SECONDS = 60.0


@contextmanager
def serving(source: str, directory: Path) -> Generator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    words = ["nfs", "serve", source, "--port", "0", "--state", str(directory / "server"), "--json"]
    with subprocess.Popen([*PROGRAM, *words], cwd=directory, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def run(*words: str, directory: Path) -> subprocess.CompletedProcess[str]:
    # Not in this process: a mount's server is the child of a command that has ended.
    return subprocess.run(
        [*PROGRAM, *words], cwd=directory, capture_output=True, text=True, check=False, timeout=SIXTY_SECONDS
    )


def document(*words: str, directory: Path) -> Any:
    done = run(*words, "--json", directory=directory)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_serve_tells_in_one_line_how_to_mount_and_ends_with_success(workplace: Path) -> None:
    with serving("customers", workplace) as (process, told):
        assert told["exports"].keys() == {"sync", "bulk"}
        assert f"port={told['port']}" in told["mount_command"]
        assert told["exports"]["sync"] in told["mount_command"]
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=SIXTY_SECONDS)[0] == ""
        assert process.returncode == 0


def test_a_server_that_is_told_to_end_publishes_what_is_complete(workplace: Path) -> None:
    with serving("customers", workplace) as (process, told):
        with NfsClient(told["port"]) as client:
            client.mount(told["exports"]["sync"])
            view = client.walk("data/data.csv")
            client.write(view, client.getattr(view).size, b"5,Eve\n")
            process.send_signal(signal.SIGTERM)
        assert process.wait(SIXTY_SECONDS) == 0
    rows = document("query", "customers", "SELECT name FROM data WHERE id = 5", directory=workplace)
    assert rows == [{"name": "Eve"}]


def test_a_mount_by_hand_is_listed_until_it_is_undone(workplace: Path) -> None:
    mounted = document("mount", "./lakehouse", "files", "--print", directory=workplace)
    place = str(workplace / "files")
    assert (mounted["mountpoint"], mounted["mounted"]) == (place, False)
    assert mounted["commands"].keys() == {"linux", "macos", "windows"}
    (listed,) = document("mounts", directory=workplace)
    assert listed == {
        "source": "./lakehouse", "mountpoint": place, "profile": "sync",
        "port": mounted["port"], "pid": mounted["pid"], "state": "not mounted",
    }  # fmt: skip
    again = run("mount", "orders", "files", "--print", directory=workplace)
    assert (again.returncode, "in use" in again.stderr) == (2, True)
    assert document("unmount", "files", directory=workplace)["mounted"] is False
    assert document("mounts", directory=workplace) == []
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", mounted["port"])):
        pass


def test_a_mount_whose_server_was_killed_is_listed_and_undone(workplace: Path) -> None:
    mounted = document("mount", "orders", "files", "--profile", "bulk", "--print", directory=workplace)
    subprocess.run(["kill", "-KILL", str(mounted["pid"])], check=True)
    (listed,) = document("mounts", directory=workplace)
    assert (listed["profile"], listed["state"]) == ("bulk", "server is gone")
    document("unmount", "files", directory=workplace)
    assert document("mounts", directory=workplace) == []


def test_mounting_what_is_not_there_tells_why_and_leaves_nothing(workplace: Path) -> None:
    done = run("mount", "nothing", "files", "--print", directory=workplace)
    assert done.returncode != 0
    assert "nothing" in done.stderr
    assert document("mounts", directory=workplace) == []


def test_a_directory_with_files_is_no_mount_point(workplace: Path) -> None:
    done = run("mount", "orders", "more", "--print", directory=workplace)
    assert (done.returncode, "not empty" in done.stderr) == (2, True)


def test_unmounting_what_is_not_mounted_is_an_error(workplace: Path) -> None:
    done = run("unmount", "files", directory=workplace)
    assert done.returncode != 0
    assert "lakehouse mounts" in done.stderr


def test_a_file_is_no_place_to_mount_at(workplace: Path) -> None:
    (workplace / "notes.txt").write_text("mine")
    done = run("mount", "customers", "notes.txt", "--json", directory=workplace)
    assert (done.returncode, json.loads(done.stderr)["code"]) == (2, "invalid_argument")
    assert (workplace / "notes.txt").read_text() == "mine"
    assert document("mounts", directory=workplace) == []
