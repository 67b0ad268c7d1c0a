"""The resource holds configuration only, and every process of Dagster comes to the same settings with it."""

import json
from pathlib import Path

import dagster as dg
import pytest

from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.errors import ConfigError
from lakehouse_platform.model.origin import Door
from lakehouse_platform.settings import LakehouseConfig


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
