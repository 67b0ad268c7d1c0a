"""Where a change comes from: stamped into every Delta commit we make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Door(StrEnum):
    """The front end a change came through."""

    PYTHON = "python"
    CLI = "cli"
    DAGSTER = "dagster"
    HTTP = "http"
    NFS = "nfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who changes a table, through which door and why.

    Attributes:
        actor: Opaque id of the one who acts; `owner` is the local owner of the files.
        door: The front end.
        reason: Free text without personal data, or None.
        run_id: Id of the Dagster run or request that caused the change, or None.
    """

    actor: str = "owner"
    door: Door = Door.PYTHON
    reason: str | None = None
    run_id: str | None = None

    def because(self, reason: str) -> Origin:
        """Return this origin with another reason."""
        return replace(self, reason=reason)

    def commit_metadata(self) -> dict[str, str]:
        """Return the `commitInfo` entries that record this origin."""
        pairs = {
            "lakehouse.actor": self.actor,
            "lakehouse.door": self.door.value,
            "lakehouse.reason": self.reason,
            "lakehouse.runId": self.run_id,
        }
        return {key: value for key, value in pairs.items() if value is not None}
