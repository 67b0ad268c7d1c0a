"""Settings come from code, variables and a file, in that order; what is wrong is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.errors import ConfigError
from lakehouse_platform.settings import LakehouseConfig

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a settings file."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_defaults_are_the_documented_ones() -> None:
    config = LakehouseConfig()
    assert config.base_path == "./lakehouse"
    assert config.session_duration_hours == 24
    assert config.vacuum_retention_hours == 168
    assert config.z_order_columns == ("user_id", "action")
    assert config.jwt_secret is None
    assert (config.auto_approve, config.refresh_duration_days, config.state_path) == (False, 30, None)


def test_the_builder_takes_every_setting_by_its_name() -> None:
    config = (
        LakehouseConfig.builder()
        .base_path("/data/lakehouse")
        .jwt_secret(SECRET)
        .session_duration_hours(24)
        .vacuum_retention_hours(168)
        .z_order_columns(["user_id", "action"])
        .build()
    )
    assert config.base_path == "/data/lakehouse"
    assert config.jwt_secret is not None
    assert config.jwt_secret.get_secret_value() == SECRET
    assert config.z_order_columns == ("user_id", "action")


def test_the_builder_refuses_a_name_it_does_not_know_and_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"base_pat is unknown.*base_path"):
        LakehouseConfig.builder().base_pat("/data")


def test_variables_set_every_kind_of_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_BASE_PATH", "/data")
    monkeypatch.setenv("LAKEHOUSE_VACUUM_RETENTION_HOURS", "24")
    monkeypatch.setenv("LAKEHOUSE_Z_ORDER_COLUMNS", '["city"]')
    monkeypatch.setenv("LAKEHOUSE_STORAGE_OPTIONS", '{"AWS_REGION": "eu-central-1"}')
    config = LakehouseConfig()
    assert config.base_path == "/data"
    assert config.vacuum_retention_hours == 24
    assert config.z_order_columns == ("city",)
    assert config.plain_storage_options == {"AWS_REGION": "eu-central-1"}


def test_the_short_variable_names_the_base_path_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_URI", "s3://bucket/lake")
    assert LakehouseConfig().base_path == "s3://bucket/lake"


def test_a_toml_file_in_the_working_directory_is_read(empty_directory: Path) -> None:
    (empty_directory / "lakehouse.toml").write_text('base_path = "/from-file"\ntarget_file_mb = 64\n')
    config = LakehouseConfig()
    assert config.base_path == "/from-file"
    assert config.target_file_mb == 64


def test_a_named_toml_file_is_read_from_anywhere(
    empty_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = empty_directory / "other.toml"
    elsewhere.write_text("target_file_mb = 32\n")
    monkeypatch.setenv("LAKEHOUSE_CONFIG", str(elsewhere))
    assert LakehouseConfig().target_file_mb == 32


def test_code_beats_variables_and_variables_beat_the_file(
    empty_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_directory / "lakehouse.toml").write_text(
        "target_file_mb = 1\ncommit_retries = 1\nfreshness_hours = 1"
    )
    monkeypatch.setenv("LAKEHOUSE_TARGET_FILE_MB", "2")
    monkeypatch.setenv("LAKEHOUSE_COMMIT_RETRIES", "2")
    config = LakehouseConfig(target_file_mb=3)
    assert (config.target_file_mb, config.commit_retries, config.freshness_hours) == (3, 2, 1)


@pytest.mark.parametrize("source", ["code", "variable", "file"])
def test_an_unknown_setting_is_refused_wherever_it_stands(
    source: str, empty_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {}
    if source == "code":
        values = {"vacum_retention_hours": 1}
    elif source == "variable":
        monkeypatch.setenv("LAKEHOUSE_VACUM_RETENTION_HOURS", "1")
    else:
        (empty_directory / "lakehouse.toml").write_text("vacum_retention_hours = 1\n")
    with pytest.raises(ConfigError, match=r"(?i)vacum_retention_hours is unknown.*vacuum_retention_hours"):
        LakehouseConfig(**values)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("session_duration_hours", 0, "greater than or equal to 1"),
        ("vacuum_retention_hours", -1, "greater than or equal to 0"),
        ("durability", "maybe", "'fsync' or 'os'"),
        ("base_path", "", "at least 1 character"),
        ("commit_retries", "many", "valid integer"),
        ("jwt_secret", "short", "at least 32 bytes"),
        ("buffer_max_seconds", 0, "greater than 0"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_name_and_what_is_allowed(
    name: str, value: object, allowed: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        LakehouseConfig(**{name: value})
    assert name in caught.value.message
    assert allowed in caught.value.message


def test_contradictory_retentions_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"log_retention_hours .* contradicts vacuum_retention_hours"):
        LakehouseConfig(vacuum_retention_hours=200, log_retention_hours=100)


def test_broken_toml_is_refused_with_the_place(empty_directory: Path) -> None:
    (empty_directory / "lakehouse.toml").write_text("base_path = \n")
    with pytest.raises(ConfigError, match="line 1"):
        LakehouseConfig()


def test_a_named_file_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONFIG", "nowhere.toml")
    with pytest.raises(ConfigError, match=r"nowhere\.toml, which is no file"):
        LakehouseConfig()


def test_secrets_are_shown_neither_in_text_nor_in_errors() -> None:
    config = LakehouseConfig(jwt_secret=SECRET, storage_options={"AWS_SECRET_ACCESS_KEY": "hunter2"})
    assert SECRET not in repr(config)
    assert "hunter2" not in f"{config!r} {config.model_dump_json()}"
    with pytest.raises(ConfigError) as caught:
        LakehouseConfig(jwt_secret="hunter2")
    assert "hunter2" not in str(caught.value)


def test_settings_cannot_be_changed_afterwards() -> None:
    config = LakehouseConfig()
    with pytest.raises(ValueError, match="frozen"):
        config.base_path = "/elsewhere"


def test_a_list_that_is_no_json_is_told_how_to_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_API_TRUSTED_PROXIES", "10.0.0.1")
    with pytest.raises(ConfigError, match=r"api_trusted_proxies.*Write a list as JSON"):
        LakehouseConfig()
