"""The resource holds configuration only, and every process of Dagster comes to the same settings with it."""

import json
from pathlib import Path

import dagster as dg
import pytest

from lakehouse_platform.defs.resources import LakehouseResource, one_lakehouse
from lakehouse_platform.errors import AuditWriteFailedError, ConfigError
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import OWNER
from lakehouse_platform.model.origin import Door
from lakehouse_platform.services.upkeep_access import maintained
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore


def test_settings_made_in_code_arrive_unchanged(tmp_path: Path) -> None:
    config = LakehouseConfig(base_path=str(tmp_path), vacuum_retention_hours=99, z_order_columns=("a", "b"))

    assert LakehouseResource.from_config(config).config() == config


def test_without_anything_given_the_environment_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAKEHOUSE_URI", str(tmp_path))
    monkeypatch.setenv("LAKEHOUSE_COMPACT_MIN_SMALL_FILES", "77")
    config = LakehouseResource().config()

    assert (config.base_path, config.compact_min_small_files) == (str(tmp_path), 77)


def test_relative_paths_become_absolute_so_that_every_process_means_the_same() -> None:
    resource = LakehouseResource.from_config(LakehouseConfig(base_path="./lakehouse"))

    assert resource.base_path == str(Path("lakehouse").absolute())


def test_secrets_come_from_named_variables_and_are_not_in_the_resource(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_SECRET", "hush")
    resource = LakehouseResource(
        base_path="s3://bucket/lake", storage_options={"AWS_SECRET_ACCESS_KEY": dg.EnvVar("MY_SECRET")}
    )

    assert "hush" not in repr(resource)
    ready = resource.process_config_and_initialize()
    assert ready.config().plain_storage_options == {"AWS_SECRET_ACCESS_KEY": "hush"}


def test_secrets_of_the_environment_stay_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_STORAGE_OPTIONS", json.dumps({"AWS_SECRET_ACCESS_KEY": "hush"}))
    monkeypatch.setenv("LAKEHOUSE_JWT_SECRET", "x" * 40)
    resource = LakehouseResource.from_config(LakehouseConfig(base_path="s3://bucket/lake"))

    assert "hush" not in repr(resource)
    assert "x" * 40 not in repr(resource)
    assert resource.config().plain_storage_options == {"AWS_SECRET_ACCESS_KEY": "hush"}


def test_a_wrong_setting_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="vacuum_retention"):
        LakehouseResource(settings={"vacuum_retention": 3}).config()


def test_the_opened_lakehouse_stamps_its_commits_with_the_run(lakehouse: LakehouseResource) -> None:
    origin = lakehouse.open("run-1").store.origin

    assert (origin.door, origin.run_id) == (Door.DAGSTER, "run-1")


def test_opening_creates_nothing(lakehouse: LakehouseResource, config: LakehouseConfig) -> None:
    lakehouse.open()

    assert not Path(config.base_path).exists()


def test_all_steps_of_a_process_share_accounts_that_are_opened_once_and_closed_in_the_end(
    lakehouse: LakehouseResource, store: DeltaStore
) -> None:
    with one_lakehouse():
        with lakehouse.open("run-1") as first, lakehouse.open("run-2") as second:
            assert first.accounts is second.accounts
            maintained(first, "orders", "a look", lambda: None)
        with lakehouse.open("run-3") as third:
            maintained(third, "orders", "another look", lambda: None)
            accounts = third.accounts
    # Nothing is lost: the end of the execution has moved everything to the table.
    rows = sorted(store.scan("audit_log").to_pylist(), key=lambda row: row["sequence"])
    assert [(row["details"], row["request_id"], row["door"]) for row in rows] == [
        ("a look", "run-1", "dagster"),
        ("another look", "run-3", "dagster"),
    ]
    with pytest.raises(AuditWriteFailedError):
        accounts.gate.run(OWNER, Permission.LIST_TABLES, None, lambda _: None)


def test_a_process_that_asks_for_no_accounts_makes_nothing(
    lakehouse: LakehouseResource, config: LakehouseConfig
) -> None:
    with one_lakehouse():
        lakehouse.open("run-1").store.tables()
    assert not Path(config.base_path).exists()


def test_otherwise_each_opened_lakehouse_is_its_own(lakehouse: LakehouseResource) -> None:
    with lakehouse.open() as first, lakehouse.open() as second:
        assert first.accounts is not second.accounts
