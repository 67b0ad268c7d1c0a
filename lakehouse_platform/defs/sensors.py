"""Tells the catalogue of commits made elsewhere: through the command line, Python, NFS, HTTP, Spark."""

import json
import time
from collections.abc import Sequence

import dagster as dg

from lakehouse_platform.defs import keys
from lakehouse_platform.defs.metadata import operations_table, table_metadata
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.model.origin import Door
from lakehouse_platform.model.results import VersionInfo
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.upkeep.history import changes_content
from lakehouse_platform.upkeep.status import NewCommits, new_commits, table_status

# Dagster gives up on a tick after 60 s; tables not reached come first in the next one.
_TICK_BUDGET_S = 25.0

_Event = dg.AssetMaterialization | dg.AssetObservation


@dg.sensor(
    name="delta_commit_sensor",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    tags={"lakehouse/kind": "catalog"},
    description="Reports commits that Dagster did not make, at most one event for each table and tick: a "
    "materialization when content changed, an observation after maintenance.",
)
def delta_commit_sensor(context: dg.SensorEvaluationContext, lakehouse: LakehouseResource) -> dg.SensorResult:
    """Compare every table's version with the one in the cursor."""
    watch = _Watch(lakehouse.open(), json.loads(context.cursor or "{}"))
    watch.look(deadline=time.monotonic() + _TICK_BUDGET_S)
    for line in watch.problems:
        context.log.warning(line)
    return dg.SensorResult(
        asset_events=watch.events, cursor=json.dumps(watch.seen), skip_reason=dg.SkipReason(watch.summary)
    )


class _Watch:
    """One look over all tables: what was seen before, and what is new."""

    def __init__(self, lakehouse: Lakehouse, seen: dict[str, int]) -> None:
        self._lakehouse = lakehouse
        self._tables = lakehouse.store.tables()
        self.seen = {table: version for table, version in seen.items() if table in self._tables}
        self.events: list[_Event] = []
        self.problems: list[str] = []
        self._news: list[str] = []

    def look(self, deadline: float) -> None:
        """Compare every table with what was seen, until the deadline."""
        # Oldest look first: the cursor keeps the order in which tables were looked at.
        order = [table for table in self._tables if table not in self.seen] + list(self.seen)
        for table in order:
            if time.monotonic() > deadline:
                break
            try:
                self._look_at(table)
            except LakehouseError as error:
                self.problems.append(f"{table}: {error.message}")

    @property
    def summary(self) -> str:
        """What the tick found, for the list of ticks."""
        problems = [f"{len(self.problems)} tables could not be read"] if self.problems else []
        if self._news or problems:
            return "; ".join([*self._news, *problems])
        return f"{len(self._tables)} tables looked at, no commits from elsewhere."

    def _look_at(self, table: str) -> None:
        before = self.seen.get(table)
        news = new_commits(self._lakehouse.store, table, before)
        elsewhere = [commit for commit in news.commits if commit.door != Door.DAGSTER] if news else []
        if news and elsewhere:
            self.events.append(_event(self._lakehouse, news, elsewhere, before))
            self._news.append(f"{table} {_range(news, before)}")
        version = news.version if news else before
        self.seen.pop(table, None)
        if version is not None:
            self.seen[table] = version


def _event(
    lakehouse: Lakehouse, news: NewCommits, elsewhere: Sequence[VersionInfo], before: int | None
) -> _Event:
    key = keys.table_key(news.table)
    metadata = {
        "versions": _range(news, before),
        "commits": len(elsewhere),
        "doors": ", ".join(sorted({commit.door or "elsewhere" for commit in elsewhere})),
        "operations": operations_table(elsewhere),
    }
    if not any(changes_content(commit) for commit in elsewhere):
        return dg.AssetObservation(key, description="Maintenance from elsewhere", metadata=metadata)
    state = table_metadata(table_status(lakehouse.store, news.table))
    return dg.AssetMaterialization(
        key,
        description="Commits from elsewhere",
        metadata={**state, **metadata},
        tags={"dagster/data_version": str(news.version)},
    )


def _range(news: NewCommits, before: int | None) -> str:
    return f"v{before} to v{news.version}" if before is not None else f"first seen at v{news.version}"


SENSORS = (delta_commit_sensor,)
