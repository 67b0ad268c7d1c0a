"""Grants: which tables a user may read, write or maintain; kept in the table `grants`, one commit a change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.identity.mirror import Mirror, Row
from lakehouse_platform.model.actors import Actor, ActorKind, Role, member_of
from lakehouse_platform.model.names import check_table_name
from lakehouse_platform.model.rights import EVERY_TABLE, Right
from lakehouse_platform.model.times import parse_rfc3339, to_rfc3339
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import system_table

TABLE = "grants"
_BY_USER, _BY_TABLE = "user", "table"
# What a role may do on every table of the users, without any grant.
_ROLE_RIGHTS = {Role.USER: None, Role.ADMIN: Right.MAINTAIN, Role.SUPERADMIN: Right.MAINTAIN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One user's right on one table.

    Attributes:
        user_id: Who may.
        table: On which table; `*` for every one but the platform's own.
        right: What.
        granted_by: Id of the one who allowed it.
        granted_at: When.
    """

    user_id: str
    table: str
    right: Right
    granted_by: str
    granted_at: datetime

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Return the grant that a row of the table holds."""
        return cls(
            user_id=row["user_id"],
            table=row["table_name"],
            right=Right(row["right"]),
            granted_by=row["granted_by"],
            granted_at=parse_rfc3339(row["granted_at"]),
        )

    def to_row(self) -> dict[str, Any]:
        """Return the row that holds the grant."""
        return {
            "grant_id": _grant_id(self.user_id, self.table),
            "user_id": self.user_id,
            "table_name": self.table,
            "right": self.right.value,
            "granted_by": self.granted_by,
            "granted_at": to_rfc3339(self.granted_at),
        }


class Grants:
    """The grants of a lakehouse. Safe to share between threads."""

    def __init__(
        self, store: DeltaStore, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._table = store.table(TABLE)
        self._clock = clock
        self._mirror: Mirror[Grant] = Mirror(
            self._table,
            "grant_id",
            Grant.from_row,
            indexes={_BY_USER: lambda grant: grant.user_id, _BY_TABLE: lambda grant: grant.table},
        )

    def grant(self, user_id: str, table: str, right: Right, by: str) -> Grant:
        """Give a user a right on a table, in place of the one the user has there.

        Args:
            user_id: The user.
            table: Name of the table, which need not exist yet; `*` for every one.
            right: The right.
            by: Id of the one who allows it.

        Raises:
            InvalidArgumentError: It is one of the platform's own tables, or the right is none.
            InvalidNameError: No table can have this name.
        """
        made = Grant(
            user_id=user_id,
            table=_grantable(table),
            right=member_of(Right, right),
            granted_by=by,
            granted_at=self._clock(),
        )
        self._table.merge([made.to_row()], ["grant_id"])
        return made

    def revoke(self, user_id: str, table: str) -> bool:
        """Take a user's right on a table away and tell whether there was one."""
        gone = {"grant_id": _grant_id(user_id, table), "_op": "DELETE"}
        return self._table.merge([gone], ["grant_id"]).rows_deleted > 0

    def revoke_all(self, table: str, *, learn: Callable[[list[str]], object] = lambda _: None) -> list[str]:
        """Take away every right that was granted on a table, but for those on every table, in one commit.

        Args:
            table: The table.
            learn: Is told the ids of the users before anything is changed.

        Returns:
            The ids of the users who had one, sorted.
        """
        found = sorted(grant.user_id for grant in self._mirror.newest().find(_BY_TABLE, table))
        if found:
            learn(found)
            gone = [{"grant_id": _grant_id(user_id, table), "_op": "DELETE"} for user_id in found]
            self._table.merge(gone, ["grant_id"])
        return found

    def of(self, user_id: str) -> list[Grant]:
        """Return a user's grants, by the name of the table."""
        return sorted(self._mirror.look().find(_BY_USER, user_id), key=lambda grant: grant.table)

    def right_of(self, actor: Actor, table: str) -> Right | None:
        """Return the strongest right that an actor has on a table, by role or by grant, and within a key's scopes.

        The platform's own tables hold secrets: administrators may read the rest, and nobody changes them through here.
        An API key may only if it may administer: no scope names them, and `*` does not mean them.
        """
        return _right(actor, table, lambda: self._granted(actor.id, table))

    def rights_of(self, actor: Actor) -> Rights:
        """Return what an actor has on any table, as it stands now: for who asks about many at once."""
        granted: Mapping[str, Right] = {}
        if actor.role is not None and _ROLE_RIGHTS[actor.role] is None:
            granted = {grant.table: grant.right for grant in self._mirror.look().find(_BY_USER, actor.id)}
        return Rights(actor, granted)

    def _granted(self, user_id: str, table: str) -> Right | None:
        granted = self._mirror.current()
        found = (granted.get(_grant_id(user_id, name)) for name in (table, EVERY_TABLE))
        return _strongest(grant.right for grant in found if grant)


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of one actor at one moment.

    Attributes:
        actor: Who it is.
        granted: What was granted, by the name of the table; `*` for every one.
    """

    actor: Actor
    granted: Mapping[str, Right]

    def on(self, table: str) -> Right | None:
        """Return the strongest right on a table; see `Grants.right_of`."""
        names = (name for name in (table, EVERY_TABLE) if name in self.granted)
        return _right(self.actor, table, lambda: _strongest(self.granted[name] for name in names))


def _right(actor: Actor, table: str, granted: Callable[[], Right | None]) -> Right | None:
    if actor.kind is ActorKind.OWNER:
        return Right.MAINTAIN
    if actor.role is None:
        return None
    if system_table(table) is not None:
        may_administer = actor.scopes is None or actor.scopes.administration
        return Right.READ if _ROLE_RIGHTS[actor.role] and may_administer else None
    right = _ROLE_RIGHTS[actor.role] or granted()
    return right if actor.scopes is None else actor.scopes.narrowed(right, table)


def _strongest(rights: Iterable[Right]) -> Right | None:
    return max(rights, key=list(Right).index, default=None)


def _grantable(table: str) -> str:
    if system_table(table) is not None:
        raise InvalidArgumentError(
            f"{table} is the platform's own table: it holds secrets, and no right on it is granted.",
            table=table,
        )
    return table if table == EVERY_TABLE else check_table_name(table)


def _grant_id(user_id: str, table: str) -> str:
    # The length keeps two pairs from running into each other.
    return hashlib.sha256(f"{len(user_id)}:{user_id}\0{table}".encode()).hexdigest()
