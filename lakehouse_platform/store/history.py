"""A table's past: its commits, and which version a time names.

The engine resolves times by the log files' modification times, which a copy or restore changes; we use the time inside
each commit, made monotone as the Delta protocol does for readers ("In-Commit Timestamps" where a table has them).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from deltalake import DeltaTable

from lakehouse_platform.errors import InvalidTimestampError, TimestampOutOfRangeError
from lakehouse_platform.model.results import VersionInfo
from lakehouse_platform.model.times import from_epoch_ms, parse_rfc3339, to_epoch_ms, to_rfc3339
from lakehouse_platform.store.commit import Committer, Stamp
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import commit_info, list_log, read_commit
from lakehouse_platform.store.snapshot import require_known_paths

# A clock that was set back is evened out over as many commits before the first one shown.
_CONTEXT = 20


def history(location: Location, limit: int | None = None) -> list[VersionInfo]:
    """Return the newest commits, newest first; older log entries may have been cleaned up.

    Args:
        location: The table.
        limit: The most commits to return; None for all.
    """
    if limit is not None and limit < 1:
        return []
    with translated(location):
        entries = open_table(location).history(None if limit is None else limit + _CONTEXT)
    infos: list[VersionInfo] = []
    latest_ms = 0
    for entry in reversed(entries):
        latest_ms = max(latest_ms + bool(infos), _time_ms(entry))
        infos.append(_info(entry, latest_ms))
    return infos[::-1][:limit]


def commit_info_at(location: Location, version: int) -> Mapping[str, Any] | None:
    """Return what one commit says about itself; None if the log has no entry for it (any more)."""
    with translated(location):
        try:
            return commit_info(read_commit(location, version))
        except FileNotFoundError:
            return None


def last_modified(table: DeltaTable, location: Location) -> datetime:
    """Return the time of the newest commit."""
    with translated(location):
        entries = table.history(1)
    return from_epoch_ms(_time_ms(entries[0])) if entries else from_epoch_ms(0)


def version_at(location: Location, moment: str | datetime) -> int:
    """Return the version that was the newest at a time; a time after the last commit names the newest version.

    Raises:
        InvalidTimestampError: The text is no RFC 3339 time with a zone, or the datetime has none.
        TableNotFoundError, NotADeltaTableError: There is no table.
        TimestampOutOfRangeError: The time lies before the first version that can still be read.
    """
    instant = parse_rfc3339(moment) if isinstance(moment, str) else moment
    if instant.tzinfo is None:
        raise InvalidTimestampError(
            f"{instant.isoformat()} has no time zone: make it aware, for example with tzinfo=UTC.",
            timestamp=instant.isoformat(),
        )
    wanted = to_epoch_ms(instant)
    log = list_log(location)
    if log.is_empty:
        open_table(location)  # tells why there is none
    first = log.first_readable
    past = [info for info in history(location) if info.version >= first]
    for info in past:
        if to_epoch_ms(info.timestamp) <= wanted:
            return info.version
    if not past:
        raise TimestampOutOfRangeError(
            f"The log of table {location.name} holds no commit times any more: read it by version.",
            table=location.name,
        )
    oldest = past[-1]
    raise TimestampOutOfRangeError(
        f"Table {location.name} was not there at {to_rfc3339(instant)}: its first readable version is "
        f"{oldest.version} of {to_rfc3339(oldest.timestamp)}.",
        table=location.name,
        version=oldest.version,
    )


def restore(committer: Committer, version: int) -> int:
    """Make an old version's rows and columns the newest version and return that; the newest itself stays as it is.

    Raises:
        VersionNotFoundError: There is no such version.
        DataFilesMissingError: Its files were vacuumed.
    """
    open_table(committer.location, version)

    def act(table: DeltaTable, stamp: Stamp) -> None:
        if table.version() != version:
            require_known_paths(table, "restoring", committer.location.name)
            table.restore(version, commit_properties=stamp())

    return committer.commit(act).version


def _time_ms(entry: Mapping[str, Any]) -> int:
    return int(entry.get("inCommitTimestamp") or entry.get("timestamp") or 0)


def _info(entry: Mapping[str, Any], time_ms: int) -> VersionInfo:
    return VersionInfo(
        version=int(entry["version"]),
        timestamp=from_epoch_ms(time_ms),
        operation=str(entry.get("operation", "UNKNOWN")),
        parameters=cast("Mapping[str, Any]", entry.get("operationParameters") or {}),
        metrics=cast("Mapping[str, Any]", entry.get("operationMetrics") or {}),
        actor=entry.get("lakehouse.actor"),
        door=entry.get("lakehouse.door"),
        reason=entry.get("lakehouse.reason"),
    )
