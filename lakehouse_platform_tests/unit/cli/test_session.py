from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakehouse_platform.cli.session import Session
from lakehouse_platform.model.origin import Door


def test_the_door_is_the_command_line_and_the_reason_is_kept(tmp_path: Path) -> None:
    origin = Session(base_path=str(tmp_path), reason="why").lakehouse.store.origin
    assert (origin.door, origin.reason) == (Door.CLI, "why")


def test_options_win_over_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('base_path = "from-file"\nvacuum_retention_hours = 24\n')
    config = Session(config_file="mine.toml", base_path="from-option").lakehouse.config
    assert (config.base_path, config.vacuum_retention_hours) == ("from-option", 24)


def test_storage_options_are_added_to_those_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lakehouse.toml").write_text('[storage_options]\nAWS_REGION = "eu"\nAWS_ENDPOINT_URL = "a"\n')
    config = Session(storage_options={"AWS_ENDPOINT_URL": "b"}).lakehouse.config
    assert config.plain_storage_options == {"AWS_REGION": "eu", "AWS_ENDPOINT_URL": "b"}


@pytest.mark.parametrize("before", [None, "other.toml"])
def test_the_environment_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").touch()
    if before:
        monkeypatch.setenv("LAKEHOUSE_CONFIG", before)
    assert Session(config_file="mine.toml").lakehouse
    assert os.environ.get("LAKEHOUSE_CONFIG") == before


def test_secrets_are_not_shown() -> None:
    assert "hunter2" not in repr(Session(storage_options={"AWS_SECRET_ACCESS_KEY": "hunter2"}))
