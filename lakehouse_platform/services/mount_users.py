"""The users of one mount server: whom a ticket lets in, what each may do, and what the audit log says of it.

Everything here may block: the mount asks from worker threads and keeps what it was told for a moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from lakehouse_platform.errors import AuthenticationFailedError, AuthError, PermissionDeniedError
from lakehouse_platform.identity import grants, sessions, users
from lakehouse_platform.identity.grants import Rights
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import Actor, ActorKind
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.rights import Right
from lakehouse_platform.services.account_parts import AccountParts
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.mount_access import admitted, signed_in
from lakehouse_platform.store.delta_store import DeltaStore

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Standing:
    """What a user may do at one moment.

    Attributes:
        actor: Who it is; without a role if the sign-in has ended, so that nothing is allowed.
        rights: The rights on tables.
    """

    actor: Actor
    rights: Rights

    @property
    def has_ended(self) -> bool:
        """Whether the sign-in has ended."""
        return self.actor.role is None

    def may(self, table: str, right: Right) -> bool:
        """Tell whether the user has a right on a table, whether or not there is one; `*` stands for every one."""
        held = self.rights.on(table)
        return held is not None and held.includes(right)


class MountUsers:
    """Lets the users of a lakehouse use its mount. Safe to share between threads.

    Nothing is opened before a ticket of a user comes, and nothing of a lakehouse that has no accounts. The limits of
    subscriptions are not applied: they count requests, and a mount's client makes those as it likes.
    """

    def __init__(self, store: DeltaStore) -> None:
        self._store = store.through(Origin(door=Door.NFS))
        self._lock = threading.Lock()
        self._parts: AccountParts | None = None

    def admit(self, ticket: str, ip_address: str | None) -> Actor:
        """Return whom a ticket lets in; see `mount_access.admitted`.

        Raises:
            AuthenticationFailedError: The lakehouse has no accounts; and see there.
        """
        return admitted(self._opened(), ticket, ip_address)

    def standing(self, session_id: str, user_id: str) -> Standing:
        """Return what a user may do now.

        Args:
            session_id: The sign-in.
            user_id: The user whose it is or was.
        """
        parts = self._opened()
        try:
            actor = replace(signed_in(parts, session_id), tier=None)
        except AuthError:
            actor = Actor(id=user_id, kind=ActorKind.USER)
        if actor.id != user_id:
            actor = Actor(id=user_id, kind=ActorKind.USER)
        return Standing(actor, parts.grants.rights_of(actor))

    def run(
        self,
        actor: Actor,
        permission: Permission,
        table: str,
        act: Callable[[Note], _T],
        *,
        details: str | None = None,
    ) -> _T:
        """Do something for a user through the gate; see `Gate.run`."""
        return self._opened().gate.run(actor, permission, table, act, details=details)

    def may(self, actor: Actor, permission: Permission, table: str) -> bool:
        """Tell whether a user may do something with a table; see `Gate.may`."""
        return self._opened().gate.may(actor, permission, table)

    def require(self, actor: Actor, permission: Permission, table: str, note: Note) -> None:
        """Refuse to go on with something that a user may not do with a further table; see `Gate.require`.

        Raises:
            PermissionDeniedError: The user may not, whether or not there is such a table.
        """
        self._opened().gate.require(actor, permission, table, note)

    def note_refusal(self, actor: Actor, permission: Permission, table: str | None, left_out: int) -> None:
        """Write down that something was refused.

        Args:
            actor: Who was.
            permission: What for.
            table: On which table, `*` for every one; None if it does not matter.
            left_out: How many more such refusals are not written down.

        Raises:
            AuditWriteFailedError: The audit log cannot be written.
        """

        def refuse(_: Note) -> None:
            raise PermissionDeniedError("This was refused before.")

        details = f"refused by the mount, {left_out} more left out" if left_out else "refused by the mount"
        with suppress(PermissionDeniedError):
            self._opened().gate.run(actor, permission, table, refuse, details=details)

    def check_writable(self) -> None:
        """Refuse to go on if what is done now could not be written down; see `Gate.check_writable`.

        Raises:
            AuditWriteFailedError, StoragePermissionError, StorageIoError: It could not.
        """
        self._opened().gate.check_writable()

    def note_done(self, user_id: str, permission: Permission, table: str, note: Note) -> None:
        """Write down what a user has done that could not be written down then; see `Gate.note_done`.

        Raises:
            AuditWriteFailedError, StoragePermissionError, StorageIoError: It cannot be yet.
        """
        self._opened().gate.note_done(Actor(id=user_id, kind=ActorKind.USER), permission, table, note)

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            parts, self._parts = self._parts, None
        if parts is not None:
            parts.close()

    def _opened(self) -> AccountParts:
        with self._lock:
            if self._parts is None:
                # Opening accounts would make the tables that are missing.
                if not all(
                    self._store.table(name).exists() for name in (users.TABLE, sessions.TABLE, grants.TABLE)
                ):
                    raise AuthenticationFailedError(
                        "This lakehouse has no accounts: use the server's own ticket."
                    )
                self._parts = AccountParts(
                    self._store, self._store.config, None, None, lambda: datetime.now(UTC)
                )
            return self._parts
