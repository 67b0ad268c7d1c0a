"""The lakehouse as a Dagster resource: holds configuration only and opens the lakehouse where it is used.

In an asset of your own:

    @dg.asset
    def orders(lakehouse: LakehouseResource) -> None:
        lakehouse.open().store.append("orders", rows)
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from lakehouse_platform.errors import ConfigError
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig

_SECRET_OR_NAMED = {"base_path", "storage_options", "jwt_secret"}


class LakehouseResource(dg.ConfigurableResource[Lakehouse]):
    """One lakehouse. What is not given here comes from `LAKEHOUSE_*` variables or `lakehouse.toml`."""

    base_path: str = Field(
        default="", description="Directory or URI that holds every table; empty for what LAKEHOUSE_URI says."
    )
    storage_options: dict[str, str] = Field(
        default_factory=dict,
        description="Object-store options in delta-rs's names. "
        "Give secrets as dg.EnvVar: plain text is shown in the UI.",
    )
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Further settings of the lakehouse by name, such as vacuum_retention_hours.",
    )

    @classmethod
    def from_config(cls, config: LakehouseConfig) -> "LakehouseResource":
        """Return the resource for settings made in code; every process of Dagster then uses the same.

        Raises:
            ConfigError: The settings hold storage options that other processes could not know.
        """
        if config.storage_options and config.storage_options != LakehouseConfig().storage_options:
            raise ConfigError(
                "Setting storage_options was given in code, where Dagster's processes do not see it: "
                "set LAKEHOUSE_STORAGE_OPTIONS, or give LakehouseResource storage_options of dg.EnvVar."
            )
        return cls(
            base_path=absolute(config.base_path),
            settings=config.model_dump(mode="json", exclude_unset=True, exclude=_SECRET_OR_NAMED),
        )

    def config(self) -> LakehouseConfig:
        """Return the settings in force.

        Raises:
            ConfigError: A setting is unknown or not allowed.
        """
        given: dict[str, Any] = dict(self.settings)
        if self.base_path:
            given["base_path"] = self.base_path
        if self.storage_options:
            given["storage_options"] = self.storage_options
        return LakehouseConfig(**given)

    def open(self, run_id: str | None = None) -> Lakehouse:
        """Open the lakehouse; its commits carry the run's id and say that they came from Dagster.

        Raises:
            ConfigError: A setting is unknown or not allowed.
        """
        origin = Origin(door=Door.DAGSTER, run_id=run_id)
        shared = _shared.get()
        if shared is not None:
            return shared.lakehouse(self.config, origin).through(origin)
        return Lakehouse.open(self.config(), origin=origin)


class _Shared:
    """One lakehouse for all steps of a run in this process. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: Lakehouse | None = None

    def lakehouse(self, config: Callable[[], LakehouseConfig], origin: Origin) -> Lakehouse:
        with self._lock:
            if self._opened is None:
                self._opened = Lakehouse.open(config(), origin=origin)
            return self._opened

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()


_shared: ContextVar[_Shared | None] = ContextVar("lakehouse_of_all_steps", default=None)


@contextmanager
def one_lakehouse() -> Generator[None]:
    """Let all steps that this process executes in the block use one opened lakehouse.

    Opening the accounts asks every system table, and closing them commits the audit log: once in place of once for
    each step. In the block there must be resources of one lakehouse only.

    Raises:
        AuditWriteFailedError: In the end; the entries are kept for the next audit log.
    """
    shared = _Shared()
    token = _shared.set(shared)
    try:
        yield
    finally:
        _shared.reset(token)
        shared.close()


def absolute(base_path: str) -> str:
    """Return a base path that means the same in every working directory."""
    return base_path if "://" in base_path else str(Path(base_path).expanduser().absolute())
