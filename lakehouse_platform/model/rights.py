"""Rights on tables, and the scopes that narrow what an API key may of what its account may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Self

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.model.names import check_table_name

EVERY_TABLE = "*"
# The scope of a key that may also do what only administrators may.
ADMINISTRATION = "admin"
# They are kept in one cell and looked through at each use.
_MOST_SCOPES = 100


class Right(StrEnum):
    """What a grant allows on a table; each includes those before it."""

    READ = auto()
    WRITE = auto()
    MAINTAIN = auto()

    def includes(self, other: Right) -> bool:
        """Tell whether who has this right has the other one too."""
        order = list(Right)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Scopes:
    """What an API key may of what its account may; as text `read:rides write:orders admin`.

    Attributes:
        tables: Names of tables, `*` for every one but the platform's own, each with the right there.
        administration: Whether also what only administrators may, as far as the account's role goes.
    """

    tables: tuple[tuple[str, Right], ...] = ()
    administration: bool = False

    @classmethod
    def parse(cls, scopes: str | Iterable[str]) -> Self:
        """Return the scopes that texts like `read:rides`, `write:*` and `admin` mean.

        Args:
            scopes: The texts, or one text with spaces between them.

        Raises:
            InvalidArgumentError: There is none, there are more than 100, or one is none of these.
            InvalidNameError: No table can have this name.
        """
        texts = scopes.split() if isinstance(scopes, str) else list(scopes)
        if not 0 < len(texts) <= _MOST_SCOPES:
            raise InvalidArgumentError(
                f"An API key has 1 to {_MOST_SCOPES} scopes, such as read:rides or write:*; not {len(texts)}.",
                count=len(texts),
            )
        tables: dict[str, Right] = {}
        for name, right in (_table_scope(text) for text in texts if text != ADMINISTRATION):
            tables[name] = max(right, tables.get(name, right), key=list(Right).index)
        return cls(tuple(sorted(tables.items())), ADMINISTRATION in texts)

    def texts(self) -> list[str]:
        """Return the scopes one by one, as they were asked for."""
        tables = [f"{right}:{name}" for name, right in self.tables]
        return [*tables, ADMINISTRATION] if self.administration else tables

    def __str__(self) -> str:
        return " ".join(self.texts())

    def narrowed(self, right: Right | None, table: str) -> Right | None:
        """Return what is left of the account's right on a table of the users."""
        found = [scope for name, scope in self.tables if name in (table, EVERY_TABLE)]
        if right is None or not found:
            return None
        return min(right, max(found, key=list(Right).index), key=list(Right).index)


READ_EVERY_TABLE = Scopes(((EVERY_TABLE, Right.READ),))
"""What a key may for which nothing is asked."""


def _table_scope(text: str) -> tuple[str, Right]:
    right, colon, table = text.partition(":")
    if not colon or right not in set(Right):
        raise InvalidArgumentError(
            "A scope is read, write or maintain with a table, such as read:rides or write:*, or it is admin: "
            "correct it."
        )
    return (table if table == EVERY_TABLE else check_table_name(table)), Right(right)
