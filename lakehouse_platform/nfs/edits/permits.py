"""As whom edits become commits, and whether they may: the edits' side of a mount's users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from lakehouse_platform.nfs.edits.view import View

Tell: TypeAlias = Callable[[int], None]
"""Takes how many rows a commit adds, changes and deletes."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that was made for a mount.

    Attributes:
        mount: The mount.
        view: The table.
        version: The version that holds it.
        rows: How many rows it added, changed and deleted; None if that is not known any more.
    """

    mount: bytes
    view: View
    version: int
    rows: int | None = None


class Permits(Protocol):
    """Decides over the commits of each mount."""

    def view(self, mount: bytes, view: View) -> View:
        """Return a table as whoever a mount belongs to changes it: commits name who made them."""
        ...

    def publish(self, mount: bytes, view: View, act: Callable[[Tell], int]) -> int:
        """Commit for a mount, if whoever it belongs to may, and return the version. Blocks.

        Raises:
            PermissionDeniedError: They may not, or not any more; nothing was committed.
            AuditError, InfrastructureError: It cannot be written down. If `act` has returned, it is committed all the
                same, and `write_down` is to be called until it succeeds.
        """
        ...

    def write_down(self, commit: Commit) -> None:
        """Write down a commit that could not be when it was made, whatever may be done now. Blocks.

        Raises:
            AuditError, InfrastructureError: It cannot be written down.
        """
        ...


class OwnersPermits(Permits):
    """Every mount is the server's owner's, who may everything."""

    def view(self, mount: bytes, view: View) -> View:
        """Return the table as it is."""
        del mount
        return view

    def publish(self, mount: bytes, view: View, act: Callable[[Tell], int]) -> int:
        """Commit."""
        del mount, view
        return act(untold)

    def write_down(self, commit: Commit) -> None:
        """Do nothing: of what the owner does there is no record but the table's history."""
        del commit


def untold(rows: int) -> None:
    """Take a number of rows that nobody asks for."""
    del rows


OWNERS: Final = OwnersPermits()
