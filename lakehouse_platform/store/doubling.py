"""Takes back a compaction whose files another one had rewritten already: all their rows would be there twice.

The engine sees no conflict between two compactions or Z-orders of the same files, not even if told to compare and swap
(deltalake 1.6.6). On one machine a lock keeps ours apart; this is for other machines' and for foreign ones.
"""

from __future__ import annotations

import time
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.transaction import RemoveAction

from lakehouse_platform.errors import CommitConflictError, DeltaTableError
from lakehouse_platform.store.commit import Committer, Stamp
from lakehouse_platform.store.log import Action, read_commit
from lakehouse_platform.store.snapshot import add_actions


def withdraw_if_doubled(committer: Committer, base: int, version: int) -> None:
    """Take a compaction's files out again if a commit since its snapshot had removed the files that it rewrote.

    Args:
        committer: Commits on the table.
        base: The version that the compaction read.
        version: The version that it made.

    Raises:
        CommitConflictError: It was taken back; the table has every row once.
    """
    if version <= base + 1:
        return
    location = committer.location
    ours = read_commit(location, version)
    rewritten = _paths(ours, "remove")
    if not any(
        rewritten & _paths(read_commit(location, between), "remove") for between in range(base + 1, version)
    ):
        return
    added = [action["add"] for action in ours if "add" in action]

    def act(table: DeltaTable, stamp: Stamp) -> None:
        _require_live(table, added, base, location.name)
        table.create_write_transaction(
            [_removal(add) for add in added],
            "append",
            table.schema(),
            partition_by=table.metadata().partition_columns,
            commit_properties=stamp(exact=True),
        )

    committer.commit(act, silent=True)
    raise CommitConflictError(
        f"Another compaction of {location.name} rewrote the same files meanwhile; this one was taken back. "
        "Run it again if files are still small.",
        table=location.name,
    )


def _require_live(table: DeltaTable, added: list[Action], base: int, name: str) -> None:
    """Refuse to guess if somebody has rewritten the doubled rows before they could be taken back.

    Raises:
        DeltaTableError: Some file is no longer there; its rows live on in another.
    """
    live = set(add_actions(table).column("path").to_pylist())
    if not {add["path"] for add in added} <= live:
        raise DeltaTableError(
            f"Two compactions of {name} doubled its rows, and a change has rewritten some of them since: rows may be "
            f"there twice. Restore version {base} and repeat the changes after it.",
            table=name,
            version=base,
        )


def _paths(actions: list[Action], kind: str) -> set[str]:
    return {action[kind]["path"] for action in actions if kind in action}


def _removal(add: Action) -> RemoveAction:
    return RemoveAction(
        path=unquote(add["path"]),
        data_change=False,
        deletion_timestamp=time.time_ns() // 1_000_000,
        size=add["size"],
        partition_values=add["partitionValues"],
    )
