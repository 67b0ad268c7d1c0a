"""The state directory and the secrets in it are this user's alone, and the same for every process."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse_platform.errors import StorageIoError, StoragePermissionError
from lakehouse_platform.private_files import (
    load_secret,
    locked,
    private_directory,
    replace_private,
    state_directory,
)
from lakehouse_platform_tests.support.s3_server import ROOT as PROJECT

_MAKER = """
import secrets, sys
from pathlib import Path
from lakehouse_platform.private_files import load_secret

sys.stdin.readline()
print(load_secret(Path(sys.argv[1]), lambda: secrets.token_bytes(32)).hex())
"""


def test_each_lakehouse_has_a_place_of_its_own_unless_the_settings_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, two = state_directory(None, "s3://a/b"), state_directory(None, "s3://a/c")
    assert one.parent == two.parent == tmp_path / "lakehouse"
    assert one != two
    assert state_directory(str(tmp_path / "mine"), "s3://a/b") == tmp_path / "mine"


def test_a_directory_is_made_for_the_owner_only(tmp_path: Path) -> None:
    made = private_directory(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_directory_that_others_can_change_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    with pytest.raises(StoragePermissionError, match="chmod 700"):
        private_directory(tmp_path)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageIoError, match="file"):
        private_directory(tmp_path / "file" / "below")


def test_a_secret_stays_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    assert load_secret(tmp_path / "secret", lambda: b"one!") == b"one!"
    assert load_secret(tmp_path / "secret", lambda: b"two!") == b"one!"
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_secret_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    load_secret(tmp_path / "secret", lambda: b"four")
    (tmp_path / "secret").chmod(0o640)
    with pytest.raises(StoragePermissionError, match="secret"):
        load_secret(tmp_path / "secret", lambda: b"four")


def test_a_secret_of_another_length_is_damaged(tmp_path: Path) -> None:
    load_secret(tmp_path / "secret", lambda: b"four")
    with pytest.raises(StorageIoError, match="secret"):
        load_secret(tmp_path / "secret", lambda: b"five5")


def test_a_secret_half_made_before_a_kill_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "secret.new").write_bytes(b"fo, and more than the secret has")
    assert load_secret(tmp_path / "secret", lambda: b"four") == b"four"
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_processes_that_make_a_secret_at_once_all_get_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _MAKER, str(tmp_path / "secret")]
    makers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=PROJECT)
        for _ in range(4)
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("\n")
        maker.stdin.flush()
    found = {maker.communicate(timeout=60)[0] for maker in makers}
    assert len(found) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_a_private_file_is_replaced_whole_and_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("others could read this")
    path.chmod(0o644)
    replace_private(path, b"one")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"one", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_does_not_follow_a_link_that_somebody_has_put_there(tmp_path: Path) -> None:
    (tmp_path / "kept.new").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageIoError):
        replace_private(tmp_path / "kept", b"one")
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_is_held_against_other_processes_and_given_back(tmp_path: Path) -> None:
    script = "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'rb'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    take = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with locked(tmp_path / "lock"):
        assert b"BlockingIOError" in subprocess.run(take, capture_output=True, check=False).stderr
    assert subprocess.run(take, capture_output=True, check=False).returncode == 0
