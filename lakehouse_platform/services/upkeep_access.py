"""Maintenance through the gate: each change of a table is allowed to its actor, or is not done, and is audited."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.identity.sessions import Sessions
from lakehouse_platform.identity.users import Users
from lakehouse_platform.model.actors import OWNER, Actor
from lakehouse_platform.services.gate import Gate
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.policy import Task
from lakehouse_platform.upkeep.tasks import Act, Result, Upkeep

_T = TypeVar("_T")


def gated_upkeep(lakehouse: Lakehouse, *, actor: Actor = OWNER, gate: Gate | None = None) -> Upkeep:
    """Return the maintenance of a lakehouse of which every change goes through the gate.

    What only looks does not; the accounts are opened with the first change. A change that the actor may not make, or
    that the audit log cannot take, is reported as the failure of its table.

    Args:
        lakehouse: The lakehouse; the door and the request or run are those of its origin.
        actor: Who maintains.
        gate: What it goes through; None for that of the accounts.
    """

    def surround(task: Task, table: str, act: Act) -> Result:
        return maintained(lakehouse, table, task.value, act, actor=actor, gate=gate)

    return Upkeep(lakehouse.store, surround=surround, clean_up_sessions=_clean_up)


def maintained(
    lakehouse: Lakehouse,
    table: str,
    what: str,
    act: Callable[[], _T],
    *,
    actor: Actor = OWNER,
    gate: Gate | None = None,
) -> _T:
    """Do something to a table that changes none of its rows, and return its result.

    Args:
        lakehouse: The lakehouse.
        table: The table.
        what: What is done, for the audit log.
        act: Does it.
        actor: Who does it.
        gate: What it goes through; None for that of the accounts.

    Raises:
        PermissionDeniedError: The actor may not; nothing was done.
        AuditWriteFailedError: It could not be written into the audit log.
    """
    gated = (gate or lakehouse.accounts.gate).through(lakehouse.store.origin)
    return gated.run(actor, Permission.MAINTAIN_TABLE, table, lambda _: act(), details=what)


def _clean_up(store: DeltaStore, now: datetime) -> int:
    return Sessions(store, ending=Users(store).signed_in).clean_up(now)
