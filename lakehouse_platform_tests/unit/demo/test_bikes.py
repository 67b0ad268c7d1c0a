"""The invented town is the same every time, and its proportions are believable."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from itertools import pairwise
from random import Random
from statistics import median

import pytest

from lakehouse_platform.demo.bikes import Rider, Station, Town, Trip, fare, riders, stations

MONDAY = date(2026, 6, 1)


def _town(seed: int = 1) -> tuple[list[Station], list[Rider], Town]:
    random = Random(seed)
    places, people = stations(random), riders(random, 500)
    return places, people, Town(random, places, people)


def _trips(days: int = 14, seed: int = 1) -> list[Trip]:
    _, _, town = _town(seed)
    return [trip for day in range(days) for trip in town.trips_of(MONDAY + timedelta(days=day), 300)]


def test_the_same_seed_invents_the_same_summer() -> None:
    assert _trips(2) == _trips(2)
    assert _trips(2) != _trips(2, seed=2)


def test_stations_have_distinct_names_and_ids_that_keep_their_zeros() -> None:
    places, _, _ = _town()
    assert len({place.name for place in places}) == len({place.station_id for place in places}) == 60
    assert all(len(place.station_id) == 4 for place in places)


def test_trips_come_in_the_order_of_their_start_with_growing_ids() -> None:
    trips = _trips()
    assert all(a.started_at <= b.started_at and a.trip_id < b.trip_id for a, b in pairwise(trips))


def test_every_trip_names_stations_and_riders_that_exist() -> None:
    places, people, town = _town()
    ids = {place.station_id for place in places}
    for trip in town.trips_of(MONDAY, 500):
        assert trip.start_station in ids
        assert trip.end_station is None or trip.end_station in ids
        assert 1 <= trip.rider_id <= len(people)


def test_commuters_make_two_peaks_on_working_days() -> None:
    hours = Counter(trip.started_at.hour for trip in _trips(5))
    assert hours[8] > hours[11] < hours[17]
    assert hours[3] < hours[8] / 5


def test_rides_are_as_long_as_rides_are() -> None:
    trips = _trips()
    assert 5 < median(trip.seconds for trip in trips) / 60 < 25
    assert all(0 <= trip.distance_km < 40 for trip in trips)


def test_a_few_test_rides_are_there_to_be_deleted() -> None:
    trips = _trips()
    share = sum(trip.seconds < 60 for trip in trips) / len(trips)
    assert 0.002 < share < 0.05


@pytest.mark.parametrize(
    ("plan", "bike", "minutes", "price"),
    [
        ("annual", "classic", 30, 0.0),
        ("annual", "classic", 40, 1.0),
        ("monthly", "electric", 10, 0.6),
        ("day pass", "classic", 10, 2.2),
        ("day pass", "electric", 10, 2.8),
    ],
)
def test_prices_follow_the_plan_and_the_bicycle(plan: str, bike: str, minutes: float, price: float) -> None:
    assert fare(plan, bike, minutes) == price
