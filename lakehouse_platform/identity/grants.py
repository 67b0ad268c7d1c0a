"""Grants: which tables a user may read, write or maintain; kept in the table `grants`, one commit a change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.identity.mirror import Mirror, Row
from lakehouse_platform.identity.permissions import Right
from lakehouse_platform.model.actors import Actor, ActorKind, Role
from lakehouse_platform.model.names import check_table_name
from lakehouse_platform.model.times import parse_rfc3339, to_rfc3339
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES

TABLE = "grants"
EVERY_TABLE = "*"
_BY_USER = "user"
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
            self._table, "grant_id", Grant.from_row, indexes={_BY_USER: lambda grant: grant.user_id}
        )

    def grant(self, user_id: str, table: str, right: Right, by: str) -> Grant:
        """Give a user a right on a table, in place of the one the user has there.

        Args:
            user_id: The user.
            table: Name of the table, which need not exist yet; `*` for every one.
            right: The right.
            by: Id of the one who allows it.

        Raises:
            InvalidArgumentError: It is one of the platform's own tables.
            InvalidNameError: No table can have this name.
        """
        made = Grant(
            user_id=user_id, table=_grantable(table), right=right, granted_by=by, granted_at=self._clock()
        )
        self._table.merge([made.to_row()], ["grant_id"])
        return made

    def revoke(self, user_id: str, table: str) -> bool:
        """Take a user's right on a table away and tell whether there was one."""
        gone = {"grant_id": _grant_id(user_id, table), "_op": "DELETE"}
        return self._table.merge([gone], ["grant_id"]).rows_deleted > 0

    def of(self, user_id: str) -> list[Grant]:
        """Return a user's grants, by the name of the table."""
        return sorted(self._mirror.look().find(_BY_USER, user_id), key=lambda grant: grant.table)

    def right_of(self, actor: Actor, table: str) -> Right | None:
        """Return the strongest right that an actor has on a table, by role or by grant.

        The platform's own tables hold secrets: a superadmin may read them, and nobody changes them through here.
        """
        if actor.kind is ActorKind.OWNER:
            return Right.MAINTAIN
        if actor.role is None:
            return None
        if table in SYSTEM_TABLES:
            return Right.READ if actor.role is Role.SUPERADMIN else None
        return _ROLE_RIGHTS[actor.role] or self._granted(actor.id, table)

    def _granted(self, user_id: str, table: str) -> Right | None:
        granted = self._mirror.current()
        found = (granted.get(_grant_id(user_id, name)) for name in (table, EVERY_TABLE))
        return max((grant.right for grant in found if grant), key=list(Right).index, default=None)


def _grantable(table: str) -> str:
    if table in SYSTEM_TABLES:
        raise InvalidArgumentError(
            f"{table} is the platform's own table: it holds secrets, and no right on it is granted.",
            table=table,
        )
    return table if table == EVERY_TABLE else check_table_name(table)


def _grant_id(user_id: str, table: str) -> str:
    # The length keeps two pairs from running into each other.
    return hashlib.sha256(f"{len(user_id)}:{user_id}\0{table}".encode()).hexdigest()
