"""What changes and questions about tables answer with, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lakehouse_platform.api.views import View


class TablesView(View):
    """The tables that the one who asks may read."""

    tables: list[str]


class VersionView(View):
    """A change: the version that it made."""

    version: int


class WrittenView(VersionView):
    """Rows that were written."""

    rows: int | None = Field(description="How many; null if that is not known any more.")
    repeated: bool = Field(
        description="Whether the same request was done before, so that nothing was written now."
    )


class DeletedView(VersionView):
    """Rows that were deleted; the version is the newest, unchanged if there were none."""

    rows_deleted: int


class UpdatedView(VersionView):
    """Rows that were updated; the version is the newest, unchanged if there were none."""

    rows_updated: int


class MergedView(VersionView):
    """Rows that were merged; the version is the newest, unchanged if nothing matched."""

    rows_inserted: int
    rows_updated: int
    rows_deleted: int


class ColumnView(View):
    """One column."""

    name: str
    type: str
    nullable: bool


class TableView(View):
    """A table at its newest version."""

    name: str
    uri: str = Field(description="Where it stands, without credentials.")
    version: int
    created: datetime | None
    modified: datetime
    rows: int | None = Field(description="Null if the table's log does not say.")
    files: int
    bytes: int
    primary_key: list[str]
    partition_columns: list[str]
    properties: dict[str, str]
    constraints: dict[str, str]
    description: str
    reader_features: list[str]
    writer_features: list[str]
    columns: list[ColumnView]


class CommitView(View):
    """One commit."""

    version: int
    timestamp: str
    timestamp_ms: int
    operation: str
    parameters: dict[str, Any]
    metrics: dict[str, Any]
    actor: str | None
    door: str | None
    reason: str | None


class HistoryView(View):
    """Commits, newest first."""

    history: list[CommitView]


class SkippingView(View):
    """How much a condition lets the engine leave unread."""

    total_files: int
    files_read: int
    files_skipped: int
    bytes_scanned: int
    bytes_skipped: int


class OptimizedView(VersionView):
    """Files that were rewritten; the version is unchanged if nothing was due."""

    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int


class VacuumedView(View):
    """Files that were deleted, or would be."""

    files: list[str]
    files_deleted: int
    bytes_deleted: int
    dry_run: bool
