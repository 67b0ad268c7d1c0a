"""What one run of the command line knows: the common options, and the lakehouse once it is needed."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakehouse_platform.cli.output import JsonOutput, Output, TextOutput

if TYPE_CHECKING:  # the engine takes a third of a second to import: only commands that use it pay
    from lakehouse_platform.cli.accounts import Accounts, Reports
    from lakehouse_platform.cli.local_sign_in import LocalSignIn
    from lakehouse_platform.cli.server_sign_in import ServerSignIn
    from lakehouse_platform.model.actors import Actor
    from lakehouse_platform.services.lakehouse import Lakehouse
    from lakehouse_platform.services.table_work import TableWork
    from lakehouse_platform.settings import LakehouseConfig

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
        server: Address of the HTTP API to ask instead of the lakehouse, or None for the setting.
        reason: Why the change is made, for the commit.
    """

    as_json: bool = False
    debug: bool = False
    base_path: str | None = None
    config_file: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    server: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        self._opened = ExitStack()

    @cached_property
    def output(self) -> Output:
        """Where results go: text, or one JSON document."""
        return JsonOutput() if self.as_json else TextOutput()

    @cached_property
    def config(self) -> LakehouseConfig:
        """The settings.

        Raises:
            ConfigError: A setting is wrong.
        """
        return self.config_with()

    def config_with(self, **values: Any) -> LakehouseConfig:
        """Return the settings with some values in place of what is set elsewhere.

        Raises:
            ConfigError: A setting is wrong.
        """
        from lakehouse_platform.settings import LakehouseConfig

        with _settings_file(self.config_file):
            return LakehouseConfig(**self._overrides(), **values)

    @cached_property
    def lakehouse(self) -> Lakehouse:
        """The configured lakehouse, opened for this door.

        Raises:
            ConfigError: A setting is wrong.
        """
        from lakehouse_platform.model.origin import Door, Origin
        from lakehouse_platform.services.lakehouse import Lakehouse

        opened = Lakehouse.open(self.config, origin=Origin(door=Door.CLI, reason=self.reason))
        self._opened.callback(opened.close)
        return opened

    @cached_property
    def sign_in(self) -> LocalSignIn:
        """Who is signed in at the lakehouse itself."""
        from lakehouse_platform.cli.local_sign_in import LocalSignIn

        return LocalSignIn(self.lakehouse)

    @cached_property
    def actor(self) -> Actor:
        """As whom commands act on the lakehouse itself: who is signed in, else the owner of the files.

        Raises:
            AuthError: Somebody has signed in, but the sign-in does not count any more.
        """
        return self.sign_in.actor()

    @cached_property
    def work(self) -> TableWork | None:
        """The tables of the lakehouse, as who acts; None if the owner does and it was never initialised.

        Raises:
            AuthError: See `actor`.
        """
        return self.lakehouse.work_of(self.actor)

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts of the lakehouse, or those of the server that is named.

        Raises:
            ConfigError: A setting is wrong.
        """
        if (sign_in := self._server_sign_in) is not None:
            from lakehouse_platform.cli.server_accounts import ServerAccounts

            return ServerAccounts(sign_in)
        from lakehouse_platform.cli.local_accounts import LocalAccounts

        return LocalAccounts(self.sign_in)

    @cached_property
    def reports(self) -> Reports:
        """The audit log of the lakehouse, or that of the server that is named.

        Raises:
            ConfigError: A setting is wrong.
        """
        if (sign_in := self._server_sign_in) is not None:
            from lakehouse_platform.cli.server_reports import ServerReports

            return ServerReports(sign_in)
        from lakehouse_platform.cli.local_reports import LocalReports

        return LocalReports(self.sign_in)

    def close(self) -> None:
        """Write what the audit log still holds, and close what was opened."""
        self._opened.close()

    @cached_property
    def _server_sign_in(self) -> ServerSignIn | None:
        address = self.server or self.config.server
        if address is None:
            return None
        from lakehouse_platform.cli.server_sign_in import ServerSignIn

        opened = ServerSignIn(address)
        self._opened.callback(opened.close)
        return opened

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
