"""What one actor may see of the tables of a lakehouse, and the gate that every operation on them goes through."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn, Self, TypeVar

from lakehouse_platform.errors import NotADeltaTableError, PermissionDeniedError, TableNotFoundError
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import OWNER, Actor, ActorKind
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.services.gate import Gate, Note
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import system_table

_T = TypeVar("_T")

_MOST_NAMES = 20  # in a message
_LARGEST_VERSION = 2**63


class TableScope:
    """The tables of one lakehouse for one actor. Safe to share between threads.

    Attributes:
        actor: Who acts.
    """

    def __init__(
        self, store: DeltaStore, gate: Gate, *, actor: Actor = OWNER, origin: Origin | None = None
    ) -> None:
        """Put the parts together.

        Args:
            store: The lakehouse.
            gate: What every operation goes through.
            actor: Who acts.
            origin: Through which door, and for which request; None for the store's.
        """
        self.actor = actor
        self._origin = replace(origin or store.origin, actor=actor.id)
        self._store = store.through(self._origin)
        self._gate = gate.through(self._origin)

    def acting_as(self, actor: Actor, origin: Origin | None = None) -> Self:
        """Return the same tables for another actor or request.

        Args:
            actor: Who acts.
            origin: Through which door, and for which request; None for the same.
        """
        return type(self)(self._store, self._gate, actor=actor, origin=origin or self._origin)

    @property
    def _is_owner(self) -> bool:
        return self.actor.kind is ActorKind.OWNER

    def _run(
        self, permission: Permission, name: str, act: Callable[[Note], _T], *, details: str | None = None
    ) -> _T:
        """Do an operation on a table that is there."""

        def guarded(note: Note) -> _T:
            with self._known(name):
                return act(note)

        return self._gate.run(self.actor, permission, name, guarded, details=details)

    def _table(self, name: str) -> Table:
        """Return a table as the actor may see it."""
        return self._store.table(name).hiding(self._hidden(name))

    def _hidden(self, name: str) -> Collection[str]:
        """Return the columns of a table that do not exist for the actor."""
        spec = system_table(name)
        return () if spec is None or self._is_owner else spec.secret_columns

    def _readable(self) -> list[str]:
        """Return the names of the tables that the actor may read."""
        return [
            name for name in self._store.tables() if self._gate.may(self.actor, Permission.READ_TABLE, name)
        ]

    def _refuse_system_table(self, name: str, permission: Permission) -> None:
        """Refuse what the roles allow on tables, but not on the platform's own.

        Raises:
            PermissionDeniedError: It is one of them, and the actor is not the owner.
        """
        if system_table(name) is not None and not self._is_owner:
            raise PermissionDeniedError(
                f"{name} is the platform's own table, which only the owner of the files may make, change or delete.",
                permission=permission.value,
            )

    def _refuse_to_rewind(self, name: str) -> None:
        """Refuse to bring back an old version of a table that only grows.

        Raises:
            PermissionDeniedError: It is one.
        """
        spec = system_table(name)
        if spec is not None and spec.append_only:
            raise PermissionDeniedError(
                f"{name} only grows: it is never brought back to an old version, by nobody.",
                permission=Permission.RESTORE_TABLE.value,
            )

    @contextmanager
    def _known(self, name: str | None = None) -> Generator[None]:
        """Say of a table that is not there only what the actor may know.

        Args:
            name: The table; None for the one that the error names.
        """
        try:
            yield
        except (TableNotFoundError, NotADeltaTableError) as error:
            self._fail_missing(name or str(error.details.get("table", "?")), error)

    def _fail_missing(self, name: str, error: TableNotFoundError | NotADeltaTableError) -> NoReturn:
        if isinstance(error, NotADeltaTableError) and self._is_owner:
            raise error
        names = self._readable()
        some = ", ".join(names[:_MOST_NAMES]) + (" …" if len(names) > _MOST_NAMES else "")
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"Did you mean {', '.join(near)}?" if near else f"You may read {some or 'none yet'}."
        raise TableNotFoundError(f"There is no table {name!r}. {hint}", table=name) from error


def numbered(what: str, *numbers: object) -> str:
    """Return what an entry says of versions; only numbers, and none of any length, for it is kept for ever."""
    shown = [str(one) if isinstance(one, int) and abs(one) < _LARGEST_VERSION else "?" for one in numbers]
    return f"{what} {' to '.join(shown)}"
