"""The state directory: private, locked, its secrets kept."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse_platform.errors import ConfigError, StorageIoError, StoragePermissionError
from lakehouse_platform.nfs.state import StateDirectory, default_state_directory, state_home
from lakehouse_platform_tests.support.s3_server import ROOT as PROJECT

_HOLDER = """
import sys
from pathlib import Path
from lakehouse_platform.nfs.state import StateDirectory

held = StateDirectory(Path(sys.argv[1]))
print(held.key.hex(), flush=True)
sys.stdin.read()
"""


def test_the_place_follows_the_system_and_differs_by_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, two = default_state_directory("s3://a/b"), default_state_directory("s3://a/c")
    assert one.parent == two.parent == state_home() == tmp_path / "lakehouse" / "nfs"
    assert one != two
    assert one == default_state_directory("s3://a/b")


@pytest.mark.parametrize("value", ["", "relative"])
def test_a_place_that_is_no_absolute_path_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_home() == tmp_path / ".local" / "state" / "lakehouse" / "nfs"


def test_the_directory_and_its_key_are_for_the_owner_only(tmp_path: Path) -> None:
    with StateDirectory(tmp_path / "a" / "b") as state:
        assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
        assert len(state.key) == 32
        modes = {stat.S_IMODE(path.stat().st_mode) for path in state.path.iterdir()}
        assert modes == {0o600}


def test_the_key_stays_and_belongs_to_one_directory(tmp_path: Path) -> None:
    with StateDirectory(tmp_path / "a") as first, StateDirectory(tmp_path / "b") as other:
        key = first.key
        assert key != other.key
    with StateDirectory(tmp_path / "a") as again:
        assert again.key == key


def test_a_second_server_is_told_which_process_has_the_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT) as holder:
        assert holder.stdout is not None
        key = holder.stdout.readline().decode().strip()
        with pytest.raises(ConfigError, match=f"process id {holder.pid}:"):
            StateDirectory(tmp_path)
        holder.kill()
        holder.wait()
        with StateDirectory(tmp_path) as state:
            assert state.key.hex() == key


def test_a_directory_that_others_can_change_is_refused(tmp_path: Path) -> None:
    for mode in (0o770, 0o702):
        tmp_path.chmod(mode)
        with pytest.raises(StoragePermissionError, match="chmod 700"):
            StateDirectory(tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_a_directory_that_others_can_only_look_into_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with StateDirectory(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(StoragePermissionError):
        StateDirectory(tmp_path)


def test_a_link_to_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoragePermissionError, match="not a directory"):
        StateDirectory(tmp_path / "link")


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageIoError, match="file"):
        StateDirectory(tmp_path / "file" / "below")


def test_a_secret_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    with StateDirectory(tmp_path):
        (tmp_path / "key").chmod(0o640)
    with pytest.raises(StoragePermissionError, match="key"):
        StateDirectory(tmp_path)
    (tmp_path / "key").chmod(0o600)
    with StateDirectory(tmp_path):
        pass
