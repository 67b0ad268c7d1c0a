"""What one run of the command line knows: the common options, and the lakehouse once it is needed."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakehouse_platform.cli.output import JsonOutput, Output, TextOutput

if TYPE_CHECKING:  # the engine takes a third of a second to import: only commands that use it pay
    from lakehouse_platform.services.lakehouse import Lakehouse

_CONFIG_VARIABLE = "LAKEHOUSE_CONFIG"


@dataclass
class Session:
    """The common options of one run, and what follows from them.

    Attributes:
        as_json: Whether results and errors are JSON documents.
        debug: Whether an unexpected error shows its traceback.
        base_path: Directory or URI of the lakehouse, or None for the setting.
        config_file: TOML file of settings, or None for the usual places.
        storage_options: Object store options that override the settings.
        reason: Why the change is made, for the commit.
    """

    as_json: bool = False
    debug: bool = False
    base_path: str | None = None
    config_file: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    reason: str | None = None

    @cached_property
    def output(self) -> Output:
        """Where results go: text, or one JSON document."""
        return JsonOutput() if self.as_json else TextOutput()

    @cached_property
    def lakehouse(self) -> Lakehouse:
        """The configured lakehouse, opened for this door.

        Raises:
            ConfigError: A setting is wrong.
        """
        from lakehouse_platform.model.origin import Door, Origin
        from lakehouse_platform.services.lakehouse import Lakehouse
        from lakehouse_platform.settings import LakehouseConfig

        with _settings_file(self.config_file):
            config = LakehouseConfig(**self._overrides())
        return Lakehouse.open(config, origin=Origin(door=Door.CLI, reason=self.reason))

    def _overrides(self) -> dict[str, Any]:
        given = {"base_path": self.base_path, "storage_options": self.storage_options}
        return {name: value for name, value in given.items() if value}


@contextmanager
def _settings_file(path: str | None) -> Generator[None]:
    """Name the settings file the way settings expect it, for the time that they are read."""
    if path is None:
        yield
        return
    before = os.environ.get(_CONFIG_VARIABLE)
    os.environ[_CONFIG_VARIABLE] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CONFIG_VARIABLE]
        else:
            os.environ[_CONFIG_VARIABLE] = before
