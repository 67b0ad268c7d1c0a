"""The tables that are served: one, or all of a lakehouse as they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from lakehouse_platform.model.names import is_table_name
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.images import table_key
from lakehouse_platform.nfs.tree.served import ServedTable
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import SYSTEM_TABLES

if TYPE_CHECKING:
    from lakehouse_platform.services.lakehouse import Lakehouse

# A table that is new shows, and one that is gone vanishes, within this time.
_LISTING_SECONDS = 1.0


class Catalog(Protocol):
    """Finds tables by name and by key. Used on the event loop's thread."""

    @property
    def is_lake(self) -> bool:
        """Whether there is a root that lists tables."""
        ...

    @property
    def changed_ns(self) -> int:
        """When tables last came or went."""
        ...

    @property
    def served(self) -> Sequence[ServedTable]:
        """All tables that were served so far."""
        ...

    @property
    def now(self) -> Sequence[ServedTable]:
        """The tables that are served now, as far as that is known."""
        ...

    def known(self, key: bytes) -> ServedTable | None:
        """Return a table that is served now, without looking at the store."""
        ...

    async def find(self, key: bytes) -> ServedTable:
        """Return a table by its key.

        Raises:
            NfsError: STALE: there is none.
        """
        ...

    async def named(self, name: bytes) -> ServedTable:
        """Return a table by its name.

        Raises:
            NfsError: NOENT: there is none.
        """
        ...

    async def tables(self) -> Sequence[ServedTable]:
        """Return all tables, at most a second old."""
        ...

    async def system(self, name: bytes) -> ServedTable:
        """Return one of the platform's own tables, without what is secret in it, by its name.

        Raises:
            NfsError: NOENT: there is none.
        """
        ...

    async def system_tables(self) -> Sequence[ServedTable]:
        """Return the platform's own tables."""
        ...

    def forget(self, key: bytes) -> None:
        """Note that a table is gone."""
        ...


class OneTable(Catalog):
    """A catalog of one table."""

    def __init__(self, table: Table, make: Callable[[Table], ServedTable], now_ns: int) -> None:
        self._table = table
        self._served = make(table)
        self._is_gone = False
        self._changed_ns = now_ns

    @property
    def is_lake(self) -> bool:
        """False: the table is the root."""
        return False

    @property
    def changed_ns(self) -> int:
        """When the server started."""
        return self._changed_ns

    @property
    def served(self) -> Sequence[ServedTable]:
        """The table."""
        return [self._served]

    @property
    def now(self) -> Sequence[ServedTable]:
        """The table, unless it is gone."""
        return [] if self._is_gone else [self._served]

    def known(self, key: bytes) -> ServedTable | None:
        """Return the table."""
        return None if self._is_gone or self._served.key != key else self._served

    async def find(self, key: bytes) -> ServedTable:
        """Return the table; it is looked for anew if it was gone."""
        await self._look_again()
        if found := self.known(key):
            return found
        raise NfsError(Status.STALE)

    async def named(self, name: bytes) -> ServedTable:
        """Return the table."""
        await self._look_again()
        if self._is_gone or self._served.name != name:
            raise NfsError(Status.NOENT)
        return self._served

    async def tables(self) -> Sequence[ServedTable]:
        """Return the table."""
        await self._look_again()
        return self.now

    async def system(self, name: bytes) -> ServedTable:
        """Return none: the table is all that is served."""
        raise NfsError(Status.NOENT)

    async def system_tables(self) -> Sequence[ServedTable]:
        """Return none."""
        return []

    def forget(self, key: bytes) -> None:
        """Note that the table is gone."""
        if self.known(key):
            self._is_gone = True

    async def _look_again(self) -> None:
        if self._is_gone and await asyncio.to_thread(self._table.exists):
            self._is_gone = False


class LakeTables(Catalog):
    """The tables of a lakehouse. Those of the platform stand apart: they hold secrets, and only it changes them."""

    def __init__(
        self,
        lakehouse: Lakehouse,
        make: Callable[[Table], ServedTable],
        now: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        self._store = lakehouse.store
        self._make = make
        self._now, self._now_ns = now, now_ns
        self._by_key: dict[bytes, ServedTable] = {}
        self._by_name: Mapping[bytes, ServedTable] = {}
        # Kept although a table is dropped: edits and clients refer to it, and it may come back.
        self._made: dict[str, ServedTable] = {}
        self._system: dict[bytes, ServedTable] = {}
        self._listed_at = -_LISTING_SECONDS
        self._changed_ns = now_ns()
        self._listing: asyncio.Task[list[str]] | None = None

    @property
    def is_lake(self) -> bool:
        """True: the root lists tables."""
        return True

    @property
    def changed_ns(self) -> int:
        """When tables last came or went."""
        return self._changed_ns

    @property
    def served(self) -> Sequence[ServedTable]:
        """All tables that were served so far."""
        return [*self._made.values(), *self._system.values()]

    @property
    def now(self) -> Sequence[ServedTable]:
        """The tables that are served now, as far as that is known."""
        return list(self._by_key.values())

    def known(self, key: bytes) -> ServedTable | None:
        """Return a table that is served now."""
        return self._by_key.get(key) or self._system.get(key)

    async def find(self, key: bytes) -> ServedTable:
        """Return a table by its key, listing the lakehouse if need be."""
        await self._refresh()
        if found := self.known(key):
            return found
        # Their handles outlive a restart too.
        for name in SYSTEM_TABLES:
            if table_key(self._store.table(name).location) == key:
                return await self.system(name.encode())
        raise NfsError(Status.STALE)

    async def named(self, name: bytes) -> ServedTable:
        """Return a table by its name, listing the lakehouse if need be."""
        await self._refresh()
        if name not in self._by_name and await self._is_new(name):
            self._show([name.decode(), *(known.decode() for known in self._by_name)])
        if found := self._by_name.get(name):
            return found
        raise NfsError(Status.NOENT)

    async def system(self, name: bytes) -> ServedTable:
        """Return one of the platform's own tables, without what is secret in it."""
        if found := await self._system_table(name.decode("ascii", "replace")):
            return found
        raise NfsError(Status.NOENT)

    async def system_tables(self) -> Sequence[ServedTable]:
        """Return the platform's own tables."""
        found = [await self._system_table(name) for name in SYSTEM_TABLES]
        return [served for served in found if served is not None]

    async def _system_table(self, name: str) -> ServedTable | None:
        spec = SYSTEM_TABLES.get(name)
        if spec is None:
            return None
        table = self._store.table(spec.name)
        if found := self._system.get(table_key(table.location)):
            return found
        if not await asyncio.to_thread(table.exists):
            return None
        made = self._make(table.hiding(spec.secret_columns))
        made.is_system = True
        return self._system.setdefault(made.key, made)

    async def _is_new(self, name: bytes) -> bool:
        """Tell whether there is a table of a name that was not there when tables were listed."""
        text = name.decode("ascii", "replace")
        if not is_table_name(text) or text in SYSTEM_TABLES:
            return False
        return await asyncio.to_thread(self._store.table(text).exists)

    async def tables(self) -> Sequence[ServedTable]:
        """Return all tables."""
        await self._refresh()
        return list(self._by_name.values())

    def forget(self, key: bytes) -> None:
        """Note that a table is gone; if its name comes back, it is a new one."""
        self._system.pop(key, None)
        if self._by_key.pop(key, None):
            self._by_name = {served.name: served for served in self._by_key.values()}
            self._changed_ns = max(self._now_ns(), self._changed_ns + 1)
            self._listed_at = -_LISTING_SECONDS

    async def _refresh(self) -> None:
        if self._now() - self._listed_at < _LISTING_SECONDS:
            return
        if self._listing is None:
            self._listing = asyncio.create_task(asyncio.to_thread(self._store.tables))
            self._listing.add_done_callback(self._listed)
        await asyncio.shield(self._listing)

    def _listed(self, task: asyncio.Task[list[str]]) -> None:
        self._listing = None
        if task.cancelled() or task.exception():
            return
        self._listed_at = self._now()
        self._show([name for name in task.result() if name not in SYSTEM_TABLES])

    def _show(self, names: Sequence[str]) -> None:
        if {name.encode() for name in names} == set(self._by_name):
            return
        self._by_name = {name.encode(): self._served_as(name) for name in names}
        self._by_key = {served.key: served for served in self._by_name.values()}
        self._changed_ns = max(self._now_ns(), self._changed_ns + 1)

    def _served_as(self, name: str) -> ServedTable:
        if name not in self._made:
            self._made[name] = self._make(self._store.table(name))
        return self._made[name]
