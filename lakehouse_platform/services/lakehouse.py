"""The composition root: one lakehouse, opened, with its services wired together."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

from lakehouse_platform.errors import SourceNotFoundError
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import OWNER, Actor, ActorKind
from lakehouse_platform.model.names import is_table_name
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.audit_access import AuditAccess
from lakehouse_platform.services.gate import Gate
from lakehouse_platform.services.owner_gate import OwnerGate, has_audit_log
from lakehouse_platform.services.preparing import prepare
from lakehouse_platform.services.table_work import TableWork
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import looks_like_location
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import system_table
from lakehouse_platform.upkeep.tasks import Upkeep


class Lakehouse:
    """One lakehouse and what can be done with it.

    Attributes:
        config: Its settings.
        store: Its tables.
        upkeep: Their maintenance.
    """

    def __init__(
        self, store: DeltaStore, *, passwords: Passwords | None = None, lender: Lakehouse | None = None
    ) -> None:
        """Take the store; nothing is opened before it is asked for.

        Args:
            store: Its tables.
            passwords: What hashes passwords, which stays open; None for one of its own.
            lender: The same lakehouse, whose accounts are used and stay open; None for some of its own.
        """
        self.config = store.config
        self.store = store
        self.upkeep = Upkeep(store)
        self._passwords = passwords
        self._lender = lender
        self._accounts: AuthActor | None = None
        self._owner_gate: OwnerGate | None = None
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        config: LakehouseConfig | str | None = None,
        *,
        origin: Origin | None = None,
        passwords: Passwords | None = None,
    ) -> Self:
        """Open a lakehouse; nothing is created or read before it is asked for.

        Args:
            config: Settings, or the base path; None for settings from the environment.
            origin: Who acts, through which door.
            passwords: What hashes passwords, which stays open; None for one of its own.

        Raises:
            ConfigError: A setting is not allowed.
        """
        return cls(DeltaStore(config, origin=origin), passwords=passwords)

    def through(self, origin: Origin) -> Lakehouse:
        """Return this lakehouse for another door or request, with the same accounts, which stay this one's.

        Args:
            origin: Who acts, through which door, in which request or run.
        """
        return Lakehouse(self.store.through(origin), lender=self._lender or self)

    @property
    def accounts(self) -> AuthActor:
        """Its accounts, opened when first asked for."""
        if self._lender is not None:
            return self._lender.accounts
        with self._lock:
            if self._accounts is None:
                self._accounts = AuthActor(self.store, passwords=self._passwords)
            return self._accounts

    @property
    def audit(self) -> AuditAccess:
        """Its audit log, through the gate."""
        accounts = self.accounts
        return AuditAccess(accounts.audit, accounts.gate.through(self.store.origin))

    @property
    def tables(self) -> TableAccess:
        """Its tables, through the gate, for the owner of the files; `acting_as` for others."""
        return TableAccess(self.store, self.accounts.gate)

    def gate_of(self, actor: Actor = OWNER) -> Gate | None:
        """Return what an actor's operations go through, without making anything in the lakehouse for the owner.

        Args:
            actor: Who acts.

        Returns:
            For the owner of a lakehouse that never was initialised None: there is no audit log.
        """
        if actor.kind is not ActorKind.OWNER:
            return self.accounts.gate
        with self._lock:
            if self._accounts is not None:
                return self._accounts.gate
            if self._owner_gate is None and has_audit_log(self.store):
                self._owner_gate = OwnerGate(self.store)
            return None if self._owner_gate is None else self._owner_gate.gate

    def work_of(self, actor: Actor = OWNER) -> TableWork | None:
        """Return its tables for the commands of an actor; see `gate_of` for when there is nothing to go through."""
        gate = self.gate_of(actor)
        return None if gate is None else TableWork(self.store, gate, actor=actor)

    def drop(self, name: str, actor: Actor = OWNER) -> None:
        """Delete a table for an actor, and take away every right that was granted on it; see `TableAccess.drop`."""
        work = self.work_of(actor)
        if work is None:
            self.store.table(name).drop()
        elif system_table(name) is None:
            self.tables.acting_as(actor).drop(name)
        else:
            # No right is granted on these, and nothing that stands on them may be open.
            with work.using(name, Permission.DROP_TABLE, "drop") as use:
                use.table.drop()

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            accounts, self._accounts = self._accounts, None
            owner_gate, self._owner_gate = self._owner_gate, None
        if owner_gate is not None:
            owner_gate.close()
        if accounts is not None:
            accounts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def name_of(self, table: Table) -> str | None:
        """Return the name of a table in this lakehouse, however it was reached; None if it stands elsewhere."""
        place, base = table.location, self.store.base
        if place.uri == base.child(place.name).uri:
            name = place.name
        elif place.is_local and base.is_local and place.path.resolve().parent == base.path.resolve():
            # By a symbolic link it is the same table.
            name = place.path.resolve().name
        else:
            return None
        return name if is_table_name(name) else None

    def is_same(self, other: Lakehouse) -> bool:
        """Tell whether another one is this lakehouse, however it was reached."""
        one, two = self.store.base, other.store.base
        if one.is_local and two.is_local:
            return one.path.resolve() == two.path.resolve()
        return one.uri == two.uri

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
