from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import PermissionDeniedError
from lakehouse_platform.model.actors import OWNER, ActorKind, Role
from lakehouse_platform.model.origin import Door
from lakehouse_platform_tests.unit.cli.running import PASSWORD, Run


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


def test_without_a_sign_in_commands_act_as_the_owner_and_nothing_is_made(tmp_path: Path) -> None:
    session = Session(base_path=str(tmp_path / "lake"))
    assert session.actor == OWNER
    session.close()
    assert list(tmp_path.iterdir()) == []


def test_tables_are_asked_as_who_is_signed_in(run: Run, workplace: Path) -> None:
    run("login", "alice", "--password-stdin", stdin=f"{PASSWORD}\n")
    session = Session(base_path=str(workplace / "lakehouse"))
    with contextlib.closing(session):
        assert (session.actor.kind, session.actor.role) == (ActorKind.USER, Role.USER)
        assert session.work is not None
        with pytest.raises(PermissionDeniedError):
            session.work.describe("orders")


def test_the_server_is_an_option_or_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKEHOUSE_SERVER", "http://localhost:1")
    with contextlib.closing(Session()) as session:
        assert session.accounts.whoami()["place"] == "http://localhost:1"
    with contextlib.closing(Session(server="http://localhost:2/")) as session:
        assert session.accounts.whoami()["place"] == "http://localhost:2"
