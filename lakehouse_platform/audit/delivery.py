"""From the journal to the tables: every entry once, in one chain, whatever crashes and whoever else writes.

Each writer numbers its entries, and each commit carries, as the writer's application transaction, the number of the
last entry in it. So the table itself tells which entries it has, and how they were cut into batches does not matter.
A commit lands only right after the version that its chain was computed on, so the chain cannot fork.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pyarrow as pa

from lakehouse_platform.audit.chain import Chained, Head, extend
from lakehouse_platform.audit.entries import Recorded
from lakehouse_platform.audit.heads import RememberedHead, find_head, has_entry, head_metadata
from lakehouse_platform.errors import CommitConflictError, StorageIoError
from lakehouse_platform.model.actions import BILLABLE, Outcome
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import SYSTEM_TABLES

AUDIT_LOG, USER_ACTIONS = "audit_log", "user_actions"
_APP_PREFIX = "lakehouse.audit/"
# As in the store's own retries: writers that collide spread over about half a second.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.01, 0.5

Numbered = tuple[int, Recorded]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Brings entries into the audit log and what is billed into the user actions.

    Attributes:
        store: The lakehouse.
        remembered: Where this machine keeps the end of the chain.
    """

    store: DeltaStore
    remembered: RememberedHead

    def deliver(self, writer: str, entries: Sequence[Numbered]) -> None:
        """Return when both tables have the entries; those that they have already are left out.

        Args:
            writer: Who numbered them.
            entries: Ascending by number, from the first that the tables are not known to have.

        Raises:
            LakehouseError: The storage refused; whether the entries landed is found out the next time.
        """
        if not entries:
            return
        app_id, last = _APP_PREFIX + writer, entries[-1][0]
        self._swap(AUDIT_LOG, AppTransaction(app_id, last), entries, self._append_chained)
        billed = [(number, recorded) for number, recorded in entries if is_billed(recorded)]
        if billed:
            self._swap(USER_ACTIONS, AppTransaction(app_id, billed[-1][0]), billed, _append_actions)

    def _swap(
        self, name: str, transaction: AppTransaction, entries: Sequence[Numbered], append: _Append
    ) -> None:
        """Append what is missing after the version at which it was missing, until no other writer is faster."""
        table = self._table(name)
        for attempt in count():
            version, landed = table.landed(transaction.app_id)
            missing = [recorded for number, recorded in entries if number > (landed or 0)]
            if not missing:
                return
            try:
                append(table, version, missing, transaction)
            except CommitConflictError:
                if attempt >= self.store.config.commit_retries:
                    raise
            else:
                return
            ceiling = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt)
            time.sleep(random.uniform(0, ceiling))  # noqa: S311 - spreads writers, guards nothing

    def _append_chained(
        self, table: Table, version: int, missing: Sequence[Recorded], transaction: AppTransaction
    ) -> None:
        known, head = self._known(), find_head(table, version)
        chained = extend(head, missing)
        made = table.append(
            _rows(AUDIT_LOG, map(_audit_row, chained)),
            transaction=transaction,
            expected_version=version,
            metadata=head_metadata(chained[-1].head),
        )
        # What was remembered before this commit was in the log before it, whoever wrote it. Without this a later end
        # would take its place, and nobody could tell any more that the log was cut off.
        if known is not None and known != head and not has_entry(table, made, known):
            self.remembered.keep_lost(known)
        # Not the end computed here: after an answer that was lost, these entries may stand elsewhere in the chain.
        self.remembered.keep(find_head(table, made))

    def _known(self) -> Head | None:
        try:
            return self.remembered.read()
        except StorageIoError:
            return None  # A damaged file is told when the new end is kept; it must not hold up the log.

    def _table(self, name: str) -> Table:
        table = self.store.table(name)
        # The journal forgets what the table has, so the table must have it on the disk whatever the settings say.
        return replace(table, config=table.config.model_copy(update={"durability": "fsync"}))


_Append = Callable[[Table, int, Sequence[Recorded], AppTransaction], None]


def is_billed(recorded: Recorded) -> bool:
    """Tell whether an entry also becomes a row of the user actions: something billable that was really done."""
    return recorded.entry.action in BILLABLE and recorded.entry.outcome is Outcome.DONE


def _append_actions(
    table: Table, version: int, missing: Sequence[Recorded], transaction: AppTransaction
) -> None:
    rows = _rows(USER_ACTIONS, map(_action_row, missing))
    table.append(rows, transaction=transaction, expected_version=version)


def _rows(name: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SYSTEM_TABLES[name].schema)


def _audit_row(chained: Chained) -> dict[str, Any]:
    recorded, entry = chained.recorded, chained.recorded.entry
    return {
        "audit_id": recorded.audit_id,
        "timestamp": recorded.timestamp,
        "user_id": entry.user_id,
        "action": entry.action.value,
        "details": entry.details,
        "ip_address": entry.ip_address,
        "date_partition": recorded.day,
        "sequence": chained.sequence,
        "outcome": entry.outcome.value,
        "resource": entry.resource,
        "row_count": entry.row_count,
        "door": entry.door.value,
        "request_id": entry.request_id,
        "salt": recorded.salt,
        "commitment": chained.commitment.hex(),
        "entry_hash": chained.hash.hex(),
    }


def _action_row(recorded: Recorded) -> dict[str, Any]:
    entry = recorded.entry
    return {
        "action_id": recorded.audit_id,
        "timestamp": recorded.timestamp,
        "user_id": entry.user_id,
        "action": entry.action.value,
        "resource": entry.resource,
        "row_count": entry.row_count,
        "duration_ms": entry.duration_ms,
        "date_partition": recorded.day,
    }
