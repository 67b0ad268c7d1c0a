"""What maintenance is due: facts about a table in, a decision with its reason out. No clock, no disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.tables import TableSpec

SESSIONS_TABLE = "sessions"
# Two files of half the target fit into one of the target: below that, merging makes fewer files.
_SMALL_SHARE = 0.5


class Task(StrEnum):
    """A kind of maintenance."""

    SESSION_CLEANUP = "session_cleanup"
    COMPACT = "compact"
    CHECKPOINT = "checkpoint"
    Z_ORDER = "z_order"
    VACUUM = "vacuum"
    LOG_CLEANUP = "log_cleanup"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What the decisions are made from.

    Attributes:
        name: The table.
        version: Its newest version.
        rows: Number of rows, None if the log does not know it.
        files: Live data files.
        bytes: Their size.
        small_files: Live files below half the target size.
        mergeable_files: Small files that have another small file in their partition.
        commits_since_z_order: Content-changing commits after the last Z-order, or all that were looked at.
        was_z_ordered: Whether a Z-order was among the commits that were looked at.
        removable_files: Files on the storage that no version within the retention needs.
        removable_bytes: Their size.
        commits_since_checkpoint: Log entries that a reader must replay.
        checkpoint: Version of the newest checkpoint, None if there is none.
        oldest_commit: Version of the oldest entry in the log.
        oldest_commit_time: When that entry's file was written, by which the engine decides to clean it up.
        expired_rows: Sessions past their end; 0 for other tables.
        columns: Column names.
        partition_columns: Columns the table is partitioned by.
        properties: Table properties.
        spec: The registered definition, if this is a table of the platform.
    """

    name: str
    version: int = 0
    rows: int | None = None
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    mergeable_files: int = 0
    commits_since_z_order: int = 0
    was_z_ordered: bool = False
    removable_files: int = 0
    removable_bytes: int = 0
    commits_since_checkpoint: int = 0
    checkpoint: int | None = None
    oldest_commit: int = 0
    oldest_commit_time: datetime | None = None
    expired_rows: int = 0
    columns: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    spec: TableSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Whether one kind of maintenance is due for one table, and why.

    Attributes:
        task: The kind of maintenance.
        table: The table.
        is_due: Whether it should be done now.
        reason: The numbers behind the decision, as one sentence.
        columns: What to Z-order by; empty for other tasks.
    """

    task: Task
    table: str
    is_due: bool
    reason: str
    columns: tuple[str, ...] = ()


def decide(task: Task, facts: TableFacts, config: LakehouseConfig, now: datetime) -> Due:
    """Return whether `task` is due for the table that the facts describe."""
    return _RULES[task](facts, config, now)


def small_file_limit(config: LakehouseConfig) -> int:
    """Return the size in bytes below which a data file counts as small."""
    return int(config.target_file_mb * 1_000_000 * _SMALL_SHARE)


def z_order_columns(facts: TableFacts, config: LakehouseConfig) -> tuple[str, ...]:
    """Return the columns to Z-order the table by: its registered ones, else those of the settings."""
    wanted = (facts.spec.z_order_by if facts.spec else ()) or config.z_order_columns
    # Rows of one partition share its value, and the engine refuses to sort by it.
    return tuple(name for name in wanted if name in facts.columns and name not in facts.partition_columns)


def _session_cleanup(facts: TableFacts, config: LakehouseConfig, now: datetime) -> Due:
    del config, now
    if facts.name != SESSIONS_TABLE:
        return Due(
            task=Task.SESSION_CLEANUP, table=facts.name, is_due=False, reason="It does not hold sessions."
        )
    return Due(
        task=Task.SESSION_CLEANUP,
        table=facts.name,
        is_due=facts.expired_rows > 0,
        reason=f"{_count(facts.expired_rows, 'session')} past the end.",
    )


def _compact(facts: TableFacts, config: LakehouseConfig, now: datetime) -> Due:
    del now
    limit_mb = small_file_limit(config) / 1_000_000
    return Due(
        task=Task.COMPACT,
        table=facts.name,
        is_due=facts.mergeable_files >= config.compact_min_small_files,
        reason=f"{_count(facts.mergeable_files, 'file')} below {limit_mb:g} MB can be merged; "
        f"compaction starts at {config.compact_min_small_files}.",
    )


def _checkpoint(facts: TableFacts, config: LakehouseConfig, now: datetime) -> Due:
    del now
    # Our own commits write checkpoints at this interval; foreign writers may not.
    return Due(
        task=Task.CHECKPOINT,
        table=facts.name,
        is_due=facts.commits_since_checkpoint >= config.checkpoint_interval,
        reason=f"{_count(facts.commits_since_checkpoint, 'commit')} since the last checkpoint; "
        f"one is written at {config.checkpoint_interval}.",
    )


def _z_order(facts: TableFacts, config: LakehouseConfig, now: datetime) -> Due:
    del now
    columns = z_order_columns(facts, config)
    due, reason = _z_order_reason(facts, config, columns)
    return Due(task=Task.Z_ORDER, table=facts.name, is_due=due, reason=reason, columns=columns)


def _z_order_reason(facts: TableFacts, config: LakehouseConfig, columns: tuple[str, ...]) -> tuple[bool, str]:
    if not columns:
        return False, f"It has none of the Z-order columns {', '.join(config.z_order_columns)}."
    if facts.files < 2:
        return False, f"{_count(facts.files, 'data file')}: there is nothing to skip yet."
    since = "since the last Z-order" if facts.was_z_ordered else "and never Z-ordered"
    threshold = config.z_order_min_new_versions
    reason = f"{_count(facts.commits_since_z_order, 'commit')} {since}; Z-order starts at {threshold}."
    return facts.commits_since_z_order >= threshold, reason


def _vacuum(facts: TableFacts, config: LakehouseConfig, now: datetime) -> Due:
    del now
    return Due(
        task=Task.VACUUM,
        table=facts.name,
        is_due=facts.removable_files > 0,
        reason=f"{_count(facts.removable_files, 'file')} ({facts.removable_bytes / 1_000_000:.1f} MB) "
        f"removed from the table more than {config.vacuum_retention_hours} hours ago.",
    )


def _log_cleanup(facts: TableFacts, config: LakehouseConfig, now: datetime) -> Due:
    due, reason = _log_cleanup_reason(facts, config, now)
    return Due(task=Task.LOG_CLEANUP, table=facts.name, is_due=due, reason=reason)


def _log_cleanup_reason(facts: TableFacts, config: LakehouseConfig, now: datetime) -> tuple[bool, str]:
    if (
        facts.checkpoint is None
        or facts.oldest_commit_time is None
        or facts.oldest_commit >= facts.checkpoint
    ):
        return False, "No log entry is covered by a later checkpoint."
    age = now - facts.oldest_commit_time
    expired = age > timedelta(hours=config.log_retention_hours)
    hours = age.total_seconds() / 3600
    return (
        expired,
        f"The oldest log entry is {hours:.0f} hours old; entries are kept for {config.log_retention_hours}.",
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_RULES: Mapping[Task, Callable[[TableFacts, LakehouseConfig, datetime], Due]] = {
    Task.SESSION_CLEANUP: _session_cleanup,
    Task.COMPACT: _compact,
    Task.CHECKPOINT: _checkpoint,
    Task.Z_ORDER: _z_order,
    Task.VACUUM: _vacuum,
    Task.LOG_CLEANUP: _log_cleanup,
}
