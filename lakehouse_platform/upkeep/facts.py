"""Gathers from the store what the maintenance decisions are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

import pyarrow.fs as pafs

from lakehouse_platform.model.results import VersionInfo
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import commit_file, list_log
from lakehouse_platform.store.snapshot import DataFile
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform.upkeep.history import changes_content, is_z_order
from lakehouse_platform.upkeep.policy import SESSIONS_TABLE, TableFacts, small_file_limit

# Maintenance's own commits do not count towards the next Z-order, so more are looked at than the threshold.
_LOOK_BACK_FACTOR = 4
_LOOK_BACK_LEAST = 100


def gather_facts(store: DeltaStore, name: str, now: datetime) -> TableFacts:
    """Return the facts about one table as they are now.

    Raises:
        StorageError: The table cannot be read.
        InfrastructureError: The storage does not answer.
    """
    table = store.table(name)
    info = table.info()
    small = _small_files(table.data_files(), store.config)
    commits_since, was_z_ordered = _since_z_order(table.history(limit=_look_back(store.config)))
    removable = _removable(table)
    log = _log_facts(table.location)
    return TableFacts(
        name=name,
        version=info.version,
        rows=info.rows,
        files=info.files,
        bytes=info.bytes,
        small_files=sum(small.values()),
        mergeable_files=sum(count for count in small.values() if count > 1),
        commits_since_z_order=commits_since,
        was_z_ordered=was_z_ordered,
        removable_files=len(removable),
        removable_bytes=sum(removable),
        commits_since_checkpoint=log.commits_since_checkpoint,
        checkpoint=log.checkpoint,
        oldest_commit=log.oldest_commit,
        oldest_commit_time=log.oldest_commit_time,
        expired_rows=_expired_sessions(store, now) if name == SESSIONS_TABLE else 0,
        columns=tuple(column.name for column in info.columns),
        partition_columns=info.partition_columns,
        properties=info.properties,
        spec=SYSTEM_TABLES.get(name),
    )


def expired_sessions(now: datetime) -> str:
    """Return the predicate that is true for sessions past their end.

    `expires_at` is RFC 3339 text in UTC with or without a fraction and with `Z` or `+00:00`. Text up to the
    second sorts before every such form of the same second, so comparing with it is right for all of them.
    """
    return f"expires_at < '{now:%Y-%m-%dT%H:%M:%S}'"


def _expired_sessions(store: DeltaStore, now: datetime) -> int:
    scan = store.scan(SESSIONS_TABLE, columns=["expires_at"], predicate=expired_sessions(now))
    return sum(batch.num_rows for batch in scan.reader())


def _small_files(files: Sequence[DataFile], config: LakehouseConfig) -> Counter[tuple[str, ...]]:
    """Count small files per partition: only files of one partition can be merged."""
    limit = small_file_limit(config)
    return Counter(_partition(file.path) for file in files if file.size < limit)


def _partition(path: str) -> tuple[str, ...]:
    # A file may lie in further directories, such as that of the transaction which wrote it.
    return tuple(part for part in PurePosixPath(path).parent.parts if "=" in part)


def _look_back(config: LakehouseConfig) -> int:
    return max(_LOOK_BACK_LEAST, config.z_order_min_new_versions * _LOOK_BACK_FACTOR)


def _since_z_order(commits: Sequence[VersionInfo]) -> tuple[int, bool]:
    since = 0
    for commit in commits:
        if is_z_order(commit):
            return since, True
        since += changes_content(commit)
    return since, False


def _removable(table: Table) -> list[int]:
    """Return the sizes of the files that a vacuum would really remove.

    The engine lists files again that an earlier vacuum removed, as long as the log has their tombstones.
    """
    candidates = list(table.vacuum(dry_run=True).files)
    if not candidates:
        return []
    with translated(table.location):
        found = table.location.filesystem().get_file_info(candidates)
    return [int(info.size) for info in found if info.type == pafs.FileType.File]


@dataclass(frozen=True, slots=True)
class _LogFacts:
    commits_since_checkpoint: int
    checkpoint: int | None
    oldest_commit: int
    oldest_commit_time: datetime | None


def _log_facts(location: Location) -> _LogFacts:
    with translated(location):
        listing = list_log(location)
        checkpoint = listing.checkpoints[-1] if listing.checkpoints else None
        oldest = listing.commits[0] if listing.commits else 0
        return _LogFacts(
            commits_since_checkpoint=sum(
                checkpoint is None or version > checkpoint for version in listing.commits
            ),
            checkpoint=checkpoint,
            oldest_commit=oldest,
            oldest_commit_time=_written(location, oldest),
        )


def _written(location: Location, version: int) -> datetime | None:
    info = location.filesystem().get_file_info(commit_file(version))
    return info.mtime if info.type == pafs.FileType.File else None
