"""Signing keys: the configured one or private files, made once, and replaced without ending sessions."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse_platform.errors import ConfigError, StorageIoError, StoragePermissionError
from lakehouse_platform.identity.keys import retire, rotate, signing_keys
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.identity_worker import together

SECRET = "a configured secret of 32 bytes!"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_configured_key_is_the_only_one_and_nothing_is_written(tmp_path: Path) -> None:
    state = tmp_path / "state"
    found = signing_keys(LakehouseConfig(jwt_secret=SECRET), state)
    assert found.keys == {found.current: SECRET.encode()}
    assert not state.exists()
    other = signing_keys(LakehouseConfig(jwt_secret=SECRET + "2"), state)
    assert other.current != found.current
    assert SECRET not in repr(found)


def test_the_first_key_is_made_private_and_stays(tmp_path: Path, config: LakehouseConfig) -> None:
    first = signing_keys(config, tmp_path / "state")
    assert len(first.keys[first.current]) == 32
    assert signing_keys(config, tmp_path / "state") == first
    assert signing_keys(config, tmp_path / "other").keys != first.keys
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").rglob("*")}
    assert modes == {"signing-keys": 0o700, f"{first.current}.key": 0o600}


def test_a_new_key_signs_and_the_old_one_verifies_until_it_is_retired(
    tmp_path: Path, config: LakehouseConfig
) -> None:
    first = signing_keys(config, tmp_path)
    new = rotate(tmp_path, clock=lambda: NOW)
    both = signing_keys(config, tmp_path)
    assert both.current == new
    assert both.keys[first.current] == first.keys[first.current]
    assert len(set(both.keys.values())) == 2
    newest = rotate(tmp_path, clock=lambda: NOW + timedelta(microseconds=1))
    assert signing_keys(config, tmp_path).current == newest
    retire(tmp_path, first.current)
    assert set(signing_keys(config, tmp_path).keys) == {new, newest}


def test_the_key_in_use_and_unknown_keys_cannot_be_retired(tmp_path: Path, config: LakehouseConfig) -> None:
    current = signing_keys(config, tmp_path).current
    with pytest.raises(ConfigError, match="in use"):
        retire(tmp_path, current)
    with pytest.raises(ConfigError, match="no signing key"):
        retire(tmp_path, "../other")
    assert signing_keys(config, tmp_path).current == current


def test_a_key_that_others_can_read_is_refused(tmp_path: Path, config: LakehouseConfig) -> None:
    found = signing_keys(config, tmp_path)
    path = tmp_path / "signing-keys" / f"{found.current}.key"
    path.chmod(0o640)
    with pytest.raises(StoragePermissionError, match="Others can read") as caught:
        signing_keys(config, tmp_path)
    assert found.keys[found.current].hex() not in str(caught.value.to_dict())


def test_a_directory_that_others_can_change_is_refused(tmp_path: Path, config: LakehouseConfig) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    with pytest.raises(StoragePermissionError, match="Others can change"):
        signing_keys(config, state)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(StoragePermissionError, match="not a directory"):
        signing_keys(config, link)


def test_a_short_key_is_refused(tmp_path: Path, config: LakehouseConfig) -> None:
    current = signing_keys(config, tmp_path).current
    os.truncate(tmp_path / "signing-keys" / f"{current}.key", 31)
    with pytest.raises(ConfigError, match="31 bytes"):
        signing_keys(config, tmp_path)


def test_what_is_no_key_file_is_told(tmp_path: Path, config: LakehouseConfig) -> None:
    signing_keys(config, tmp_path)
    (tmp_path / "signing-keys" / "z.key").mkdir(mode=0o700)
    with pytest.raises(StorageIoError, match=r"z\.key cannot be used"):
        signing_keys(config, tmp_path)


def test_a_longer_key_that_an_administrator_adds_is_used(tmp_path: Path, config: LakehouseConfig) -> None:
    first = signing_keys(config, tmp_path)
    added = tmp_path / "signing-keys" / "kz-own.key"
    added.touch(mode=0o600)
    added.write_bytes(bytes(range(64)))
    found = signing_keys(config, tmp_path)
    assert found.current == "kz-own"
    assert found.keys == {**first.keys, "kz-own": bytes(range(64))}


@pytest.mark.slow
def test_processes_that_start_together_use_one_key(tmp_path: Path) -> None:
    answers = together("key", [[str(tmp_path / "lake"), str(tmp_path / "state")]] * 6)
    assert all(answer == answers[0] for answer in answers)
    assert len(answers[0]) == 1
    assert len(list((tmp_path / "state" / "signing-keys").iterdir())) == 1
