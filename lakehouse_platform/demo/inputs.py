"""Writes the town's data the way it would arrive: stations and trips as CSV, riders as Parquet files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_platform.demo.bikes import Rider, Station, Town, Trip, riders, stations

_SEED = 20260501
_FIRST_DAY = date(2026, 5, 1)
_DAYS = 92
_TRIPS_PER_DAY = 600
_RIDERS = 4_000
_RIDER_FILES = 4


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the tour works on.

    Attributes:
        stations: CSV file of the stations.
        trips: CSV file of three months of trips.
        riders: Pattern of the Parquet files of the riders.
        next_day: The trips of the day after, hour by hour, still to arrive.
    """

    stations: Path
    trips: Path
    riders: str
    next_day: Sequence[list[dict[str, Any]]]


def write_inputs(directory: Path) -> Inputs:
    """Write the files into an existing directory; the same bytes every time."""
    random = Random(_SEED)  # noqa: S311 - repeatable on purpose, and nothing here is a secret
    town_stations = stations(random)
    town_riders = riders(random, _RIDERS)
    town = Town(random, town_stations, town_riders)
    days = [_FIRST_DAY + timedelta(days=number) for number in range(_DAYS)]
    _write_csv(directory / "stations.csv", Station, town_stations)
    _write_csv(
        directory / "trips.csv", Trip, (trip for day in days for trip in town.trips_of(day, _TRIPS_PER_DAY))
    )
    _write_parquet(directory / "riders", town_riders)
    following = [asdict(trip) for trip in town.trips_of(days[-1] + timedelta(days=1), _TRIPS_PER_DAY)]
    by_hour = [[trip for trip in following if trip["started_at"].hour == hour] for hour in range(24)]
    return Inputs(
        directory / "stations.csv",
        directory / "trips.csv",
        str(directory / "riders" / "*.parquet"),
        [trips for trips in by_hour if trips],
    )


def _write_csv(
    path: Path, kind: type[Station] | type[Trip], records: Iterable[Station] | Iterable[Trip]
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(kind))
        writer.writerows(map(_text, asdict(record).values()) for record in records)


def _text(value: object) -> object:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else value


def _write_parquet(directory: Path, records: Sequence[Rider]) -> None:
    directory.mkdir()
    schema = pa.schema(
        {"rider_id": pa.int64(), "plan": pa.string(), "birth_year": pa.int32(), "joined_on": pa.date32()}
    )
    table = pa.Table.from_pylist([asdict(rider) for rider in records], schema)
    share = -(-len(records) // _RIDER_FILES)
    for number in range(_RIDER_FILES):
        pq.write_table(table.slice(number * share, share), directory / f"part-{number}.parquet")
