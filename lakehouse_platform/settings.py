"""Settings: every knob, its unit, its default; from code, `LAKEHOUSE_*` variables or a TOML file, in that order.

The TOML file is `lakehouse.toml` in the working directory, or the file that `LAKEHOUSE_CONFIG` names.
This is the only module that reads environment variables of ours.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, cast

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from lakehouse_platform.errors import ConfigError

_PREFIX = "LAKEHOUSE_"
_CONFIG_VARIABLE = "LAKEHOUSE_CONFIG"
_EXTRA_VARIABLES = {_CONFIG_VARIABLE, "LAKEHOUSE_URI"}
# RFC 6454 §6.2. No `*`: whoever may read any answer should be named.
_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+")


class LakehouseConfig(BaseSettings):
    """The settings of one lakehouse.

    Raises:
        ConfigError: A setting is unknown, malformed or contradicts another; the message names it and what is allowed.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True
    )

    base_path: str = Field(
        default="./lakehouse",
        min_length=1,
        validation_alias=AliasChoices("base_path", "LAKEHOUSE_BASE_PATH", "LAKEHOUSE_URI"),
        description="Directory or URI (s3://, az://, abfss://) that holds every table. Also read from LAKEHOUSE_URI.",
    )
    storage_options: dict[str, SecretStr] = Field(
        default_factory=dict[str, SecretStr],
        description="Credentials and endpoint of the object store, in delta-rs's names, such as AWS_ENDPOINT_URL.",
    )
    jwt_secret: SecretStr | None = Field(
        default=None,
        description="Key that signs session tokens: at least 32 bytes. None until one is made or given.",
    )
    session_duration_hours: int = Field(
        default=24, ge=1, le=8760, description="Life of a session token, in hours."
    )
    refresh_duration_days: int = Field(
        default=30,
        ge=1,
        le=3650,
        description="How long a sign-in can be renewed with its refresh token, in days; each renewal starts it anew.",
    )
    auto_approve: bool = Field(
        default=False,
        description="Whether who registers can sign in at once, without an administrator's approval; "
        "for development.",
    )
    registrations_per_hour: int = Field(
        default=10,
        ge=1,
        le=1_000_000,
        description="Accounts that may be asked for from one address in an hour; the network that one customer has "
        "counts as one address. Administrators may ask for more.",
    )
    server: str | None = Field(
        default=None,
        min_length=1,
        description="Address of the HTTP API that the commands about accounts, keys, tickets and the audit log ask, "
        "such as https://lake.example.com; None for the lakehouse itself.",
    )
    state_path: str | None = Field(
        default=None,
        min_length=1,
        description="Local directory for journals, secrets and counters; None for "
        "$XDG_STATE_HOME/lakehouse/<digest of base_path>.",
    )
    vacuum_retention_hours: int = Field(
        default=168, ge=0, description="How long removed data files are kept for time travel, in hours."
    )
    log_retention_hours: int = Field(
        default=720,
        ge=0,
        description="How long log entries are kept for history and time travel, in hours; "
        "at least vacuum_retention_hours.",
    )
    z_order_columns: tuple[str, ...] = Field(
        default=("user_id", "action"),
        description="Columns to Z-order tables by that declare none of their own and have at least one of these.",
    )
    durability: Literal["fsync", "os"] = Field(
        default="fsync",
        description="When a local commit counts as done: 'fsync' after data, log and directories are on disk, "
        "'os' once the operating system has them.",
    )
    commit_retries: int = Field(
        default=200,
        ge=0,
        le=10_000,
        description="How often a commit is retried that another writer overtook.",
    )
    key_index_path: str | None = Field(
        default=None,
        min_length=1,
        description="Local directory for an index of declared primary keys, so that an append to a large table finds "
        "out fast whether a key is taken; may be deleted at any time. None to ask the table each time.",
    )
    checkpoint_interval: int = Field(
        default=100, ge=1, le=10_000, description="Commits between two checkpoints of a new table's log."
    )
    target_file_mb: int = Field(
        default=100, ge=1, le=10_000, description="Size that compaction aims at for a data file, in MB."
    )
    compact_min_small_files: int = Field(
        default=16, ge=2, description="Small files a table must have before scheduled compaction touches it."
    )
    z_order_min_new_versions: int = Field(
        default=20,
        ge=1,
        description="Commits since the last Z-order before scheduled Z-order touches a table again.",
    )
    freshness_hours: int = Field(
        default=36,
        ge=1,
        description="Age of a table's newest commit at which its freshness check fails, in hours.",
    )
    sql_max_rows: int | None = Field(
        default=None, ge=1, description="Rows that one SQL query may return; None for no limit."
    )
    sql_memory_mb: int = Field(default=2048, ge=16, description="Memory that one SQL query may use, in MB.")
    sql_timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        description="Time one SQL query may take, in seconds; with a limit queries run in a process of their own "
        "that is ended when it is over. None for no limit.",
    )
    buffer_max_rows: int = Field(
        default=10_000, ge=1, description="Rows that make a write buffer commit by itself."
    )
    buffer_max_mb: int = Field(
        default=64, ge=1, description="Size that makes a write buffer commit by itself, in MB."
    )
    buffer_max_seconds: float = Field(
        default=1.0,
        gt=0,
        description="Age of the oldest buffered row that makes a write buffer commit, in seconds.",
    )
    api_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that the HTTP API listens on; 0.0.0.0 or :: for every one of the machine.",
    )
    api_port: int = Field(
        default=8080, ge=0, le=65_535, description="Port of the HTTP API; 0 for any that is free."
    )
    api_tls_cert: str | None = Field(
        default=None,
        min_length=1,
        description="File with the certificate chain (PEM) of the HTTP API; together with api_tls_key.",
    )
    api_tls_key: str | None = Field(
        default=None, min_length=1, description="File with the private key (PEM) of the certificate."
    )
    api_trusted_proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses and networks of proxies that are believed when X-Forwarded-For says where a request "
        "comes from; with none the header means nothing.",
    )
    api_cors_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins such as https://app.example.com whose pages may use the HTTP API from a browser.",
    )
    api_max_body_mb: int = Field(
        default=256, ge=1, le=1_048_576, description="Size of the rows that one request may send, in MB."
    )
    api_max_json_mb: int = Field(
        default=16,
        ge=1,
        le=1024,
        description="Size of rows sent as one JSON array, in MB: it is held in memory as a whole.",
    )
    api_max_rows: int | None = Field(
        default=None, ge=1, description="Rows that one answer of the HTTP API may hold; None for no limit."
    )
    api_request_timeout_seconds: float = Field(
        default=60.0,
        gt=0,
        description="Time until the answer to a request begins, in seconds; a body that keeps arriving extends it.",
    )
    api_shutdown_seconds: int = Field(
        default=30,
        ge=0,
        le=3600,
        description="Time that running requests have to end when the server is told to stop, in seconds.",
    )

    def __init__(self, **values: Any) -> None:
        try:
            _refuse_unknown_variables(os.environ, set(type(self).model_fields))
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(_explain(error, type(self))) from None
        except SettingsError as error:
            # Without its cause, which repeats what was given.
            raise ConfigError(f'Settings: {error}. Write a list as JSON, such as ["10.0.0.1"].') from None
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"The settings file is not valid TOML: {error}.") from error

    @classmethod
    def builder(cls) -> LakehouseConfigBuilder:
        """Return a builder: `LakehouseConfig.builder().base_path("/data").build()`."""
        return LakehouseConfigBuilder()

    @property
    def plain_storage_options(self) -> dict[str, str]:
        """The storage options with their secrets readable, for the storage engine only."""
        return {key: value.get_secret_value() for key, value in self.storage_options.items()}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read code first, then variables, then the TOML file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, _toml_file())

    @field_validator("jwt_secret")
    @classmethod
    def _long_enough(cls, secret: SecretStr | None) -> SecretStr | None:
        # RFC 7518 §3.2: an HS256 key has at least 256 bits.
        if secret is not None and len(secret.get_secret_value().encode()) < 32:
            raise ValueError("needs at least 32 bytes (256 bits)")
        return secret

    @field_validator("api_trusted_proxies")
    @classmethod
    def _networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                raise ValueError(f"{proxy!r} is neither an address nor a network like 10.0.0.0/8") from error
        return proxies

    @field_validator("api_cors_origins")
    @classmethod
    def _origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if _ORIGIN.fullmatch(origin) is None:
                raise ValueError(f"{origin!r} is no origin like https://app.example.com")
        return origins

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.api_tls_cert is None) != (self.api_tls_key is None):
            raise ValueError("api_tls_cert and api_tls_key belong together: give both or neither")
        if self.log_retention_hours < self.vacuum_retention_hours:
            raise ValueError(
                f"log_retention_hours ({self.log_retention_hours}) contradicts vacuum_retention_hours "
                f"({self.vacuum_retention_hours}): data would be kept that no log entry leads to; "
                "allowed is a log retention of at least the vacuum retention"
            )
        return self


class LakehouseConfigBuilder:
    """Collects settings by name and builds the config: one method per setting, each returns the builder."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in LakehouseConfig.model_fields:
            raise ConfigError(_unknown(name, LakehouseConfig.model_fields))

        def set_value(value: Any) -> LakehouseConfigBuilder:
            self._values[name] = value
            return self

        return set_value

    def build(self) -> LakehouseConfig:
        """Return the config.

        Raises:
            ConfigError: A value is not allowed.
        """
        return LakehouseConfig(**self._values)


def _toml_file() -> Path | None:
    named = os.environ.get(_CONFIG_VARIABLE)
    if named and not Path(named).is_file():
        raise ConfigError(f"{_CONFIG_VARIABLE} names {named}, which is no file: correct it or unset it.")
    path = Path(named or "lakehouse.toml")
    return path if path.is_file() else None


def _refuse_unknown_variables(environment: Mapping[str, str], fields: set[str]) -> None:
    known = {_PREFIX + name.upper() for name in fields} | _EXTRA_VARIABLES
    for variable in environment:
        if variable.upper().startswith(_PREFIX) and variable.upper() not in known:
            raise ConfigError(_unknown(variable, known))


def _unknown(name: str, known: Mapping[str, Any] | set[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Known settings: {', '.join(sorted(known))}."
    return f"Setting {name} is unknown. {hint}"


def _explain(error: ValidationError, config: type[LakehouseConfig]) -> str:
    return " ".join(_explain_one(cast("Mapping[str, Any]", item), config) for item in error.errors())


def _explain_one(item: Mapping[str, Any], config: type[LakehouseConfig]) -> str:
    name = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return _unknown(name, config.model_fields)
    reason = str(item["msg"]).removeprefix("Value error, ")
    return f"Setting {name}: {reason}." if name else f"Settings: {reason}."
