"""Commits made elsewhere appear in the catalogue once, and commits of Dagster's own runs are not repeated."""

import json
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.defs.sensors import delta_commit_sensor
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE, people
from lakehouse_platform_tests.unit.upkeep.builders import break_log, scattered

Tick = Callable[..., dg.SensorResult]


@pytest.fixture
def tick(lakehouse: LakehouseResource, instance: dg.DagsterInstance) -> Tick:
    def evaluate(cursor: str | None = None) -> dg.SensorResult:
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, resources={"lakehouse": lakehouse}
        )
        result = delta_commit_sensor(context)
        assert isinstance(result, dg.SensorResult)
        return result

    return evaluate


def why(result: dg.SensorResult) -> str:
    reason = result.skip_reason
    return reason.skip_message or "" if isinstance(reason, dg.SkipReason) else str(reason)


def told(result: dg.SensorResult) -> dict[str, dict[str, Any]]:
    return {
        event.asset_key.path[-1]: {
            key: getattr(value, "value", value) for key, value in event.metadata.items()
        }
        for event in result.asset_events
        if isinstance(event, dg.AssetMaterialization | dg.AssetObservation)
    }


def test_without_a_lakehouse_the_tick_says_that_there_is_nothing(tick: Tick) -> None:
    result = tick()

    assert (result.asset_events, result.cursor) == ([], "{}")
    assert why(result) == "0 tables looked at, no commits from elsewhere."


def test_a_table_made_elsewhere_is_materialized_with_its_state(tick: Tick, store: DeltaStore) -> None:
    store.create("orders", PEOPLE)
    store.append("orders", people(1, 2))
    result = tick()
    event = told(result)["orders"]

    assert isinstance(result.asset_events[0], dg.AssetMaterialization)
    assert event["dagster/row_count"] == 2
    assert (event["versions"], event["commits"], event["doors"]) == ("first seen at v1", 2, "python")
    assert why(result) == "orders first seen at v1"
    assert json.loads(result.cursor or "") == {"orders": 1}


def test_the_next_tick_tells_only_what_is_new_since(tick: Tick, store: DeltaStore) -> None:
    store.create("orders", PEOPLE)
    store.create("items", PEOPLE)
    first = tick()
    store.append("orders", people(1))
    store.append("orders", people(2))
    second = tick(first.cursor)
    third = tick(second.cursor)

    assert list(told(second)) == ["orders"]
    assert told(second)["orders"]["versions"] == "v0 to v2"
    assert [record.data["version"] for record in told(second)["orders"]["operations"].records] == [2, 1]
    assert third.asset_events == []
    assert json.loads(third.cursor or "") == {"orders": 2, "items": 0}


def test_commits_of_dagster_runs_are_not_told_again(tick: Tick, store: DeltaStore) -> None:
    by_dagster = store.through(Origin(door=Door.DAGSTER, run_id="r"))
    by_dagster.create("orders", PEOPLE)
    result = tick()

    assert result.asset_events == []
    assert json.loads(result.cursor or "") == {"orders": 0}


def test_of_mixed_commits_those_from_elsewhere_are_told(tick: Tick, store: DeltaStore) -> None:
    store.create("orders", PEOPLE)
    cursor = tick().cursor
    store.through(Origin(door=Door.DAGSTER)).append("orders", people(1))
    store.through(Origin(door=Door.CLI)).append("orders", people(2))
    event = told(tick(cursor))["orders"]

    assert (event["commits"], event["doors"], event["versions"]) == (1, "cli", "v0 to v2")


def test_maintenance_from_elsewhere_is_an_observation_because_no_row_changed(
    tick: Tick, store: DeltaStore
) -> None:
    scattered(store, "orders", files=3)
    cursor = tick().cursor
    store.compact("orders")
    result = tick(cursor)

    assert [type(event) for event in result.asset_events] == [dg.AssetObservation]


def test_a_table_dropped_and_made_anew_is_told_anew(tick: Tick, store: DeltaStore) -> None:
    scattered(store, "orders", files=3)
    cursor = tick().cursor
    store.drop("orders")
    gone = tick(cursor)
    store.create("orders", PEOPLE)
    again = tick(gone.cursor)

    assert json.loads(gone.cursor or "") == {}
    assert list(told(again)) == ["orders"]


def test_a_broken_table_does_not_hide_the_others_and_is_looked_at_again(
    tick: Tick, store: DeltaStore
) -> None:
    store.create("a", PEOPLE)
    store.create("b", PEOPLE)
    break_log(store, "a")
    result = tick()

    assert list(told(result)) == ["b"]
    assert why(result) == "b first seen at v0; 1 tables could not be read"
    assert json.loads(result.cursor or "") == {"b": 0}


def test_the_events_are_stored_without_a_run(
    tick: Tick, store: DeltaStore, instance: dg.DagsterInstance
) -> None:
    store.create("orders", PEOPLE)
    for event in tick().asset_events:
        instance.report_runless_asset_event(event)
    latest = instance.get_latest_materialization_event(dg.AssetKey(["lakehouse", "orders"]))

    assert latest is not None
    assert latest.asset_materialization is not None
    assert (latest.asset_materialization.tags or {})["dagster/data_version"] == "0"
