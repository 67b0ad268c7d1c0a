"""The tokens of a sign-in on the disk: private, whole, and renewed once however many commands need it."""

from __future__ import annotations

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse_platform.cli.sign_in_file import SignIn, SignInFile
from lakehouse_platform.errors import (
    AuthenticationFailedError,
    StorageIoError,
    StoragePermissionError,
    TokenExpiredError,
)

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
KEPT = SignIn(
    place="https://lake.example.com",
    user_id="user-1",
    session_id="session-1",
    access_token="access-1",
    refresh_token="refresh-1",
    expires_at=NOW + timedelta(hours=1),
)
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def file(tmp_path: Path) -> SignInFile:
    return SignInFile(tmp_path / "state", KEPT.place)


def never(refresh_token: str) -> SignIn:
    raise AssertionError(refresh_token)


def path_of(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "state").glob("*.json")
    return found


def test_what_is_kept_is_read_again_until_it_is_forgotten(file: SignInFile) -> None:
    assert file.read() is None
    assert file.forget() is False
    file.keep(KEPT)
    assert file.read() == KEPT
    assert file.forget() is True
    assert file.read() is None


def test_the_file_is_for_this_user_alone_also_when_it_was_not_before(
    file: SignInFile, tmp_path: Path
) -> None:
    file.keep(KEPT)
    path = path_of(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o640)
    with pytest.raises(StoragePermissionError, match="lakehouse logout"):
        file.read()
    file.make_private()
    assert file.read() == KEPT


def test_each_place_has_a_sign_in_of_its_own(tmp_path: Path) -> None:
    one, two = SignInFile(tmp_path, "https://one"), SignInFile(tmp_path, "https://two")
    one.keep(KEPT)
    assert two.read() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"expires_at": 5}',
        '{"expires_at": "soon", "access_token": "a", "user_id": "u"}',
        '{"expires_at": "2026-02-01T12:00:00Z", "access_token": "a", "user_id": "u", "more": 1}',
    ],
)
def test_a_damaged_file_is_told_without_its_text(file: SignInFile, tmp_path: Path, text: str) -> None:
    file.keep(KEPT)
    path_of(tmp_path).write_text(text)
    with pytest.raises(StorageIoError, match="damaged"):
        file.read()


def test_secrets_are_not_shown() -> None:
    assert "access-1" not in repr(KEPT)
    assert "refresh-1" not in repr(KEPT)


def test_a_sign_in_in_its_time_is_not_renewed(file: SignInFile) -> None:
    assert file.current(never, NOW) is None
    file.keep(KEPT)
    assert file.current(never, NOW) == KEPT


def test_a_sign_in_past_its_time_is_renewed_and_kept(file: SignInFile) -> None:
    file.keep(KEPT)
    renewed = replace(KEPT, access_token="access-2", expires_at=LATER + timedelta(hours=1))
    assert file.current(lambda _: renewed, LATER) == renewed
    assert file.read() == renewed
    assert file.current(never, LATER) == renewed


def test_a_token_that_a_server_refuses_is_renewed_whatever_the_clock_says(file: SignInFile) -> None:
    file.keep(KEPT)
    renewed = replace(KEPT, access_token="access-2")
    assert file.current(lambda _: renewed, NOW, refused=KEPT) == renewed
    assert file.current(never, NOW, refused=KEPT) == renewed


def test_after_a_refusal_what_another_command_got_is_tried(file: SignInFile) -> None:
    ended = AuthenticationFailedError("This sign-in has ended.")
    file.keep(KEPT)
    assert file.after_refusal(KEPT, ended, never, NOW) is None
    assert file.after_refusal(None, ended, never, NOW) is None
    newer = replace(KEPT, access_token="access-2")
    file.keep(newer)
    assert file.after_refusal(KEPT, ended, never, NOW) == newer
    assert file.after_refusal(KEPT, TokenExpiredError("Past its time."), never, NOW) == newer


def test_what_cannot_be_renewed_says_so(file: SignInFile) -> None:
    file.keep(replace(KEPT, refresh_token=None))
    with pytest.raises(TokenExpiredError, match="lakehouse login"):
        file.current(never, LATER)


def test_a_renewal_that_fails_leaves_the_file(file: SignInFile) -> None:
    file.keep(KEPT)
    with pytest.raises(AssertionError, match="refresh-1"):
        file.current(never, LATER)
    assert file.read() == KEPT


def test_of_many_at_once_one_renews_and_the_others_take_what_it_got(file: SignInFile) -> None:
    file.keep(KEPT)
    begun = threading.Barrier(8)
    used: list[str] = []

    def renew(refresh_token: str) -> SignIn:
        used.append(refresh_token)
        return replace(KEPT, access_token="access-2", expires_at=LATER + timedelta(hours=1))

    def need(_: int) -> SignIn | None:
        begun.wait()
        return file.current(renew, LATER)

    with ThreadPoolExecutor(8) as threads:
        assert {found.access_token for found in threads.map(need, range(8)) if found} == {"access-2"}
    assert used == ["refresh-1"]
