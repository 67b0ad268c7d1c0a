"""The composition root: one lakehouse, opened, with its services wired together."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from lakehouse_platform.errors import SourceNotFoundError
from lakehouse_platform.model.names import is_table_name
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.services.preparing import prepare
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import looks_like_location
from lakehouse_platform.store.table import Table
from lakehouse_platform.upkeep.tasks import Upkeep


class Lakehouse:
    """One lakehouse and what can be done with it.

    Attributes:
        config: Its settings.
        store: Its tables.
        upkeep: Their maintenance.
    """

    def __init__(self, store: DeltaStore) -> None:
        self.config = store.config
        self.store = store
        self.upkeep = Upkeep(store)

    @classmethod
    def open(cls, config: LakehouseConfig | str | None = None, *, origin: Origin | None = None) -> Self:
        """Open a lakehouse; nothing is created or read before it is asked for.

        Args:
            config: Settings, or the base path; None for settings from the environment.
            origin: Who acts, through which door.

        Raises:
            ConfigError: A setting is not allowed.
        """
        return cls(DeltaStore(config, origin=origin))

    def init(self) -> list[str]:
        """Create the lakehouse's directory and its system tables where they are missing; return all their names.

        Raises:
            StoragePermissionError: The place cannot be written to.
        """
        return prepare(self.store)

    def resolve(self, source: str) -> Table:
        """Return the table that a text means: a name in this lakehouse, a path or a URI.

        A bare word is a table of the lakehouse; if the lakehouse has none of that name, a directory of that name.

        Raises:
            InvalidNameError: It can be neither.
        """
        if looks_like_location(source):
            return self.store.at(source)
        if not is_table_name(source) and Path(source).is_dir():
            return self.store.at(source)
        table = self.store.table(source)
        elsewhere = self.store.at(source)
        return elsewhere if not table.exists() and elsewhere.location.path.is_dir() else table

    def source(self, text: str) -> Table | Lakehouse:
        """Return the table or the lakehouse that a text means, for what can serve either.

        Args:
            text: A table's name, path or URI, or the path or URI of a lakehouse.

        Raises:
            SourceNotFoundError: Nothing stands there.
            InvalidNameError: It can be neither.
        """
        table = self.resolve(text)
        if table.exists():
            return table
        place = table.location
        if place.is_local and not place.path.is_dir():
            raise SourceNotFoundError(
                f"{text!r} is neither a table nor a lakehouse: there is no directory {place.uri}.",
                source=text,
            )
        config = self.config.model_copy(update={"base_path": place.uri})
        return Lakehouse.open(config, origin=self.store.origin)
