"""What a table's commits tell: which changed its content, and how its rows grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakehouse_platform.model.results import VersionInfo

# Names from the Delta engines delta-rs and Spark for commits that leave every row as it was.
_UPKEEP_OPERATIONS = frozenset(
    {"OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD CONSTRAINT",
     "DROP CONSTRAINT", "COMPUTE STATS", "FSCK", "ADD FEATURE", "UPGRADE PROTOCOL", "CHANGE COLUMN"}
)  # fmt: skip

# Per operation the metrics that count rows added and rows removed: delta-rs's name, then Spark's.
_ADDED = {
    "WRITE": ("num_added_rows", "numOutputRows"),
    "STREAMING UPDATE": ("numOutputRows",),
    "MERGE": ("num_target_rows_inserted", "numTargetRowsInserted"),
}
_REMOVED = {
    "DELETE": ("num_deleted_rows", "numDeletedRows"),
    "MERGE": ("num_target_rows_deleted", "numTargetRowsDeleted"),
}
_UNCHANGED = _UPKEEP_OPERATIONS | {"UPDATE", "ADD COLUMN", "ADD COLUMNS", "CREATE TABLE"}


@dataclass(frozen=True, slots=True)
class RowCount:
    """How many rows the table had once a version was committed."""

    version: int
    timestamp: datetime
    rows: int


def changes_content(commit: VersionInfo) -> bool:
    """Tell whether a commit may have changed rows or columns, rather than how they are stored."""
    return commit.operation.upper() not in _UPKEEP_OPERATIONS


def is_z_order(commit: VersionInfo) -> bool:
    """Tell whether a commit is a Z-order."""
    if commit.operation != "OPTIMIZE":
        return False
    # delta-rs names the planner in the metrics, Spark the columns in the parameters.
    by = str(commit.parameters.get("zOrderBy") or "[]")
    return commit.metrics.get("plannerStrategy") == "zOrder" or by not in {"[]", ""}


def row_counts(commits: Sequence[VersionInfo], rows_now: int) -> list[RowCount]:
    """Return the rows after each commit, oldest first, counted back from today's number.

    Goes back as far as the commits say what they added and removed; an overwrite or a restore ends it.

    Args:
        commits: The newest commits, newest first.
        rows_now: Rows after the newest of them.
    """
    counts: list[RowCount] = []
    rows = rows_now
    for commit in commits:
        counts.append(RowCount(commit.version, commit.timestamp, rows))
        change = _row_change(commit)
        if change is None or rows - change < 0:
            break
        rows -= change
    return counts[::-1]


def _row_change(commit: VersionInfo) -> int | None:
    if commit.operation in _UNCHANGED:
        return 0
    if commit.operation == "WRITE" and str(commit.parameters.get("mode")) not in {"Append", "ErrorIfExists"}:
        return None
    if commit.operation not in _ADDED and commit.operation not in _REMOVED:
        return None
    added = _metric(commit.metrics, _ADDED.get(commit.operation, ()))
    removed = _metric(commit.metrics, _REMOVED.get(commit.operation, ()))
    return None if added is None or removed is None else added - removed


def _metric(metrics: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the first metric present; 0 if the operation has none of this kind, None if it recorded none."""
    if not names:
        return 0
    found = [metrics[name] for name in names if name in metrics]
    return int(found[0]) if found else None
