"""Maintenance of one table: compaction, Z-order, vacuum, checkpoint, log clean-up."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, cast

import pyarrow.fs as pafs
from deltalake import DeltaTable

from lakehouse_platform.errors import InvalidArgumentError, InvalidPredicateError, SchemaMismatchError
from lakehouse_platform.model.results import OptimizeResult, VacuumResult
from lakehouse_platform.store.commit import Committed, Committer, Stamp
from lakehouse_platform.store.doubling import withdraw_if_doubled
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY
from lakehouse_platform.store.memory_sql import query_arrow
from lakehouse_platform.store.partitions import partition_text, partition_values
from lakehouse_platform.store.predicates import parse_predicate, quote_identifier
from lakehouse_platform.store.snapshot import arrow_schema, require_known_paths, require_plain_columns

_MB = 1_000_000
# More makes no sense, and the engine crashes on numbers that are too large for its types (deltalake 1.6.6).
_MOST_MB = 1_000_000
_MOST_HOURS = 100 * 366 * 24
# deltalake spills a Z-order's sort to disk beyond this; 0.9 GB peak at 10 M rows (measured), so it fits small machines.
_Z_ORDER_SPILL_BYTES = 512 * _MB


def compact(
    committer: Committer, target_file_mb: int | None = None, where: str | None = None
) -> OptimizeResult:
    """Merge small data files into large ones; rows and their order within partitions stay.

    Args:
        committer: Commits on the table.
        target_file_mb: Size to aim at, in MB; None for the table's or the configured size.
        where: Condition over partition columns, such as `day = '2026-02-01'`; None for all files.

    Raises:
        InvalidPredicateError: `where` is not a conjunction of comparisons over partition columns.
        UnsupportedFeatureError: The table uses column mapping.
        CommitConflictError: Another writer kept changing the same files.
    """
    target = _target_bytes(target_file_mb or committer.config.target_file_mb)

    def act(table: DeltaTable, stamp: Stamp) -> Mapping[str, Any]:
        require_plain_columns(table, "compaction", committer.location.name)
        require_known_paths(table, "compaction", committer.location.name)
        filters = _filters(table, where)
        return table.optimize.compact(
            partition_filters=filters, target_size=target, commit_properties=stamp()
        )

    return _rewritten(committer, act)


def z_order(
    committer: Committer, columns: Sequence[str], target_file_mb: int | None = None, where: str | None = None
) -> OptimizeResult:
    """Rewrite all files with rows clustered by columns, so that filters on any of them skip files.

    Args:
        committer: Commits on the table.
        columns: Columns to cluster by, most important first; no partition column.
        target_file_mb: Size to aim at, in MB.
        where: Condition over partition columns; None for all files.

    Raises:
        SchemaMismatchError: A column is unknown, repeated or a partition column, or none is named.
    """
    target = _target_bytes(target_file_mb or committer.config.target_file_mb)

    def act(table: DeltaTable, stamp: Stamp) -> Mapping[str, Any]:
        require_plain_columns(table, "Z-order", committer.location.name)
        require_known_paths(table, "Z-order", committer.location.name)
        _check_z_order(table, columns, committer.location.name)
        return table.optimize.z_order(
            list(columns),
            partition_filters=_filters(table, where),
            target_size=target,
            max_spill_size=_Z_ORDER_SPILL_BYTES,
            commit_properties=stamp(),
        )

    return _rewritten(committer, act)


def vacuum(committer: Committer, retention_hours: int | None = None, dry_run: bool = False) -> VacuumResult:
    """Delete data files that no version within the retention needs; older versions can then not be read any more.

    Only files that the log says were removed are deleted ("lite"): a full vacuum can destroy what a concurrent
    writer is just writing, and live deletion vectors (deltalake 1.6.6).

    Args:
        committer: Commits on the table.
        retention_hours: Age a removed file must have, in hours; None for the configured one, 0 for at once.
        dry_run: Only tell what would be deleted.

    Raises:
        InvalidArgumentError: The retention is negative, or longer than a century.
    """
    hours = committer.config.vacuum_retention_hours if retention_hours is None else retention_hours
    if not 0 <= hours <= _MOST_HOURS:
        raise InvalidArgumentError(
            f"Retention is {hours} hours; give 0 to {_MOST_HOURS}.", retention_hours=hours
        )
    location = committer.location
    table = open_table(location)
    with translated(location):
        candidates = sorted(table.vacuum(hours, dry_run=True, enforce_retention_duration=False))
    sizes = _sizes(location.filesystem(), candidates)
    if not dry_run and candidates:
        with translated(location):
            properties = Stamp(committer.config, committer.origin)()
            table.vacuum(hours, dry_run=False, enforce_retention_duration=False, commit_properties=properties)
        committer.make_durable(table.version())
    return VacuumResult(
        files=tuple(candidates), files_deleted=len(candidates), bytes_deleted=sum(sizes), dry_run=dry_run
    )


def checkpoint(committer: Committer) -> int:
    """Write a checkpoint of the newest version and return that version; opening then reads one file."""
    table = open_table(committer.location)
    with translated(committer.location):
        table.create_checkpoint()
    committer.make_durable(table.version())
    return table.version()


def clean_up_log(committer: Committer) -> int:
    """Delete log entries older than the table's log retention and before the last checkpoint; return how many."""
    location = committer.location
    before = _log_files(location)
    table = open_table(location)
    with translated(location):
        table.cleanup_metadata()
    return before - _log_files(location)


def _rewritten(committer: Committer, act: Callable[[DeltaTable, Stamp], Mapping[str, Any]]) -> OptimizeResult:
    """Rewrite files as one commit that no other rewriting doubles."""
    base = 0

    def act_on(table: DeltaTable, stamp: Stamp) -> Mapping[str, Any]:
        nonlocal base
        base = table.version()
        return act(table, stamp)

    with _alone(committer.location):
        result = _result(committer, committer.commit(act_on))
        if result.files_removed:
            withdraw_if_doubled(committer, base, result.version)
        return result


@contextmanager
def _alone(location: Location) -> Generator[None]:
    """Wait until no other compaction of a local table runs, and keep others waiting.

    The engine does not see that another one has rewritten the same files, not even if told to compare and swap,
    and all rows would be there twice (deltalake 1.6.6). The operating system ends the lock with its process.
    """
    if not location.is_local or not (location.path / LOG_DIRECTORY).is_dir():
        yield
        return
    descriptor = os.open(location.path / LOG_DIRECTORY, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _target_bytes(megabytes: int) -> int:
    if not 1 <= megabytes <= _MOST_MB:
        raise InvalidArgumentError(
            f"Target file size is {megabytes} MB; give 1 to {_MOST_MB}.", target_file_mb=megabytes
        )
    return megabytes * _MB


def _filters(table: DeltaTable, where: str | None) -> Any:
    """Return the engine's partition filters for a condition: the values each partition column takes where it holds."""
    if where is None:
        return None
    columns = table.metadata().partition_columns
    condition = parse_predicate(where, arrow_schema(table))
    if not columns or not condition.columns <= set(columns):
        raise InvalidPredicateError(
            f"{where!r} cannot choose files: it may use partition columns only, "
            f"which are {', '.join(columns) or 'none'}."
        )
    query = f"SELECT DISTINCT {', '.join(map(quote_identifier, columns))} FROM f WHERE {condition.sql()}"  # noqa: S608
    chosen = query_arrow(partition_values(table), query)
    values = {column: set(map(partition_text, chosen.column(column).to_pylist())) for column in columns}
    if prod(map(len, values.values())) != chosen.num_rows or any(None in texts for texts in values.values()):
        raise InvalidPredicateError(
            f"{where!r} chooses partitions that one pass cannot: name one value or list per partition column, not NULL."
        )
    return [(column, "in", sorted(cast("set[str]", texts))) for column, texts in values.items()]


def _check_z_order(table: DeltaTable, columns: Sequence[str], name: str) -> None:
    schema, partitions = arrow_schema(table), table.metadata().partition_columns
    usable = [column for column in schema.names if column not in partitions]
    if not columns or len(set(columns)) != len(columns) or any(column not in usable for column in columns):
        raise SchemaMismatchError(
            f"Z-order of {name} by {', '.join(columns) or '(nothing)'} is not possible: "
            f"name each column once, from {', '.join(usable)}.",
            columns=list(columns),
        )


def _result(committer: Committer, done: Committed[Mapping[str, Any]]) -> OptimizeResult:
    metrics = committer.metrics(done)
    added, removed = _figures(metrics.get("filesAdded")), _figures(metrics.get("filesRemoved"))
    return OptimizeResult(
        version=done.version,
        files_added=int(metrics.get("numFilesAdded", 0)),
        files_removed=int(metrics.get("numFilesRemoved", 0)),
        bytes_added=int(added.get("totalSize", 0)),
        bytes_removed=int(removed.get("totalSize", 0)),
    )


def _figures(value: Any) -> Mapping[str, Any]:
    # The engine returns these figures as JSON text inside its metrics.
    return json.loads(value) if isinstance(value, str) else value or {}


def _sizes(filesystem: pafs.FileSystem, paths: Sequence[str]) -> list[int]:
    return [info.size or 0 for info in filesystem.get_file_info(list(paths))] if paths else []


def _log_files(location: Location) -> int:
    return len(location.entries(LOG_DIRECTORY))
