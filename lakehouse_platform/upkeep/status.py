"""What people want to see of a table: its state, its commits, its growth, and what is new since a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse_platform.model.results import TableInfo, VersionInfo
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES, TableSpec
from lakehouse_platform.upkeep.history import RowCount, row_counts

# Enough for a picture of growth and a list of operations; reading more would slow tables with long logs.
_RECENT = 100
# A burst of commits elsewhere is summed up, not listed without end.
_MOST_NEW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """A table as it is now.

    Attributes:
        info: Its state at the newest version.
        commits: The newest commits, newest first.
        growth: Rows after each of them, oldest first, as far back as that can be known.
        spec: Its registered definition, or None for a table of the user.
    """

    info: TableInfo
    commits: tuple[VersionInfo, ...]
    growth: tuple[RowCount, ...]
    spec: TableSpec | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommits:
    """What happened to a table since a version that was seen.

    Attributes:
        table: The table.
        version: Its newest version.
        commits: The new commits, newest first; only the newest if they are very many.
    """

    table: str
    version: int
    commits: tuple[VersionInfo, ...]


def registered_tables() -> Mapping[str, TableSpec]:
    """Return the platform's own tables by name."""
    return SYSTEM_TABLES


def table_status(store: DeltaStore, name: str) -> TableStatus:
    """Return the state of a table.

    Raises:
        StorageError: The table cannot be read.
    """
    table = store.table(name)
    info = table.info()
    # Commits that landed after `info` was taken would belong to other figures.
    commits = tuple(commit for commit in table.history(limit=_RECENT) if commit.version <= info.version)
    growth = () if info.rows is None else tuple(row_counts(commits, info.rows))
    return TableStatus(info=info, commits=commits, growth=growth, spec=SYSTEM_TABLES.get(name))


def new_commits(store: DeltaStore, name: str, seen: int | None) -> NewCommits | None:
    """Return the commits after version `seen`, or None if there are none.

    Args:
        store: The lakehouse's tables.
        name: The table.
        seen: The last version known; None if the table is new to the caller.

    Raises:
        StorageError: The table cannot be read.
    """
    table = store.table(name)
    version = table.version()
    if version == seen:
        return None
    # A lower version means that the table was dropped and made anew.
    limit = _RECENT if seen is None or version < seen else min(version - seen, _MOST_NEW)
    return NewCommits(table=name, version=version, commits=tuple(table.history(limit=limit)))
