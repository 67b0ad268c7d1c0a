"""What store operations return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lakehouse_platform.model.times import to_epoch_ms, to_rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInfo:
    """One commit of a table.

    Attributes:
        version: The Delta version that the commit made.
        timestamp: When it was committed (UTC), never before the version preceding it.
        operation: Delta's name of the operation, such as WRITE, MERGE, OPTIMIZE.
        parameters: The operation's parameters as the writer recorded them.
        metrics: The operation's metrics as the writer recorded them.
        actor: Who changed the table, if the commit says so.
        door: Through which front end, if the commit says so.
        reason: Why, if the commit says so.
    """

    version: int
    timestamp: datetime
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metrics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    actor: str | None = None
    door: str | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the time as RFC 3339 text and as milliseconds since 1970."""
        return {
            "version": self.version,
            "timestamp": to_rfc3339(self.timestamp),
            "timestamp_ms": to_epoch_ms(self.timestamp),
            "operation": self.operation,
            "parameters": dict(self.parameters),
            "metrics": dict(self.metrics),
            "actor": self.actor,
            "door": self.door,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Rows that were written.

    Attributes:
        version: The version that holds them.
        rows: Their number; None if it is not known any more.
        repeated: Whether an earlier request with the same idempotency key wrote them, and this one nothing.
    """

    version: int
    rows: int | None
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult:
    """A delete: the version that it made (unchanged if no row matched) and its rows."""

    version: int
    rows_deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """An update: the version that it made (unchanged if no row matched) and its rows."""

    version: int
    rows_updated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """A merge: the version that it made (unchanged if nothing matched) and its rows."""

    version: int
    rows_inserted: int
    rows_updated: int
    rows_deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeResult:
    """A compaction or Z-order: the version that it made (unchanged if nothing was due), files and bytes."""

    version: int
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumResult:
    """A vacuum: the files that it deleted, or with `dry_run` would delete.

    Attributes:
        files: Paths relative to the table, sorted.
        files_deleted: Their number.
        bytes_deleted: Their size.
        dry_run: True if nothing was deleted.
    """

    files: tuple[str, ...]
    files_deleted: int
    bytes_deleted: int
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """A table at its newest version.

    Attributes:
        name: The table's name in its lakehouse, or the last part of its location.
        uri: Where it stands, without credentials.
        version: Newest Delta version.
        created: When the table was created, if its metadata says so.
        modified: Time of the newest commit.
        rows: Number of rows, or None if the log does not know it (foreign writers without statistics).
        files: Number of live data files.
        bytes: Their size.
        primary_key: Declared key columns; empty if none is declared.
        partition_columns: Columns it is partitioned by.
        properties: Table properties.
        constraints: CHECK constraints by name.
        description: The table's description, or an empty text.
        reader_features: Delta reader features the table demands.
        writer_features: Delta writer features the table demands.
        columns: (name, type text, nullable) in table order.
    """

    name: str
    uri: str
    version: int
    created: datetime | None
    modified: datetime
    rows: int | None
    files: int
    bytes: int
    primary_key: tuple[str, ...]
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    constraints: Mapping[str, str]
    description: str
    reader_features: tuple[str, ...]
    writer_features: tuple[str, ...]
    columns: tuple[ColumnInfo, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON output."""
        plain = asdict(self)
        plain["created"] = to_rfc3339(self.created) if self.created else None
        plain["modified"] = to_rfc3339(self.modified)
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnInfo:
    """One column: its name, our type text and whether it may be NULL."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippingStats:
    """How much of a table a predicate lets the engine skip, measured on one query.

    Attributes:
        total_files: Live data files.
        files_read: Files the engine opened.
        files_skipped: Files it left alone.
        bytes_scanned: Size of the files it opened.
        bytes_skipped: Size of the files it left alone.
    """

    total_files: int
    files_read: int
    files_skipped: int
    bytes_scanned: int
    bytes_skipped: int


class ChangeKind(StrEnum):
    """Delta's names of row changes, as in the change data feed."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
