"""The lakehouse as a Dagster resource: holds configuration only and opens the lakehouse where it is used.

In an asset of your own:

    @dg.asset
    def orders(lakehouse: LakehouseResource) -> None:
        lakehouse.open().store.append("orders", rows)
"""

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
        return Lakehouse.open(self.config(), origin=Origin(door=Door.DAGSTER, run_id=run_id))


def absolute(base_path: str) -> str:
    """Return a base path that means the same in every working directory."""
    return base_path if "://" in base_path else str(Path(base_path).expanduser().absolute())
