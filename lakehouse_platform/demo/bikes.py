"""Invents a summer of bicycle-share in a harbour town: the same rows for the same seed.

The proportions are believable: commuters make two peaks on working days, weekends peak after noon, rain keeps
people at home, some stations are much busier than others, and rides lead nearby. Nobody real is in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random

_STREETS = (
    "Harbour",
    "Mill",
    "Castle",
    "Garden",
    "Market",
    "Chapel",
    "Bridge",
    "River",
    "Station",
    "College",
    "Tannery",
    "Orchard",
)
_PLACES = ("Square", "Street", "Gate", "Park", "Quay")
# Share of a day's trips that start in each hour, on working days and at the weekend.
_WORKDAY = (1, 1, 0, 0, 1, 3, 9, 20, 24, 12, 8, 9, 12, 11, 9, 11, 17, 26, 21, 14, 9, 7, 5, 3)
_WEEKEND = (4, 3, 2, 1, 1, 1, 2, 4, 7, 11, 15, 18, 20, 21, 21, 20, 18, 16, 14, 11, 9, 8, 7, 5)
_PLANS = {"annual": 45, "monthly": 25, "day pass": 30}
_RAINY_SHARE = 0.27
_TEST_RIDE_SHARE = 0.012  # a mechanic unlocks the bicycle and puts it back
_LOST_SHARE = 0.003  # never put back at a station
_KM_PER_DEGREE = 111.2


@dataclass(frozen=True, slots=True)
class Station:
    """A docking station; its id keeps its leading zeros."""

    station_id: str
    name: str
    latitude: float
    longitude: float
    docks: int


@dataclass(frozen=True, slots=True)
class Rider:
    """A customer."""

    rider_id: int
    plan: str
    birth_year: int
    joined_on: date


@dataclass(frozen=True, slots=True)
class Trip:
    """One ride; `end_station` is None for a bicycle that was never put back."""

    trip_id: int
    started_at: datetime
    seconds: int
    start_station: str
    end_station: str | None
    rider_id: int
    bike: str
    distance_km: float
    fare: float


def stations(random: Random) -> list[Station]:
    """Return the town's sixty stations."""
    names = [f"{street} {place}" for place in _PLACES for street in _STREETS]
    return [
        Station(
            f"{number:04d}",
            name,
            round(54.32 + random.gauss(0, 0.018), 5),
            round(10.14 + random.gauss(0, 0.030), 5),
            random.choice((12, 16, 20, 24, 32)),
        )
        for number, name in enumerate(names, start=7)
    ]


def riders(random: Random, count: int) -> list[Rider]:
    """Return that many riders, the oldest customers first."""
    opening = date(2023, 4, 1)
    joined = sorted(int(1100 * random.random() ** 0.7) for _ in range(count))
    return [
        Rider(
            number,
            random.choices(tuple(_PLANS), tuple(_PLANS.values()))[0],
            int(min(2010, max(1940, random.gauss(1989, 12)))),
            opening + timedelta(days=days),
        )
        for number, days in enumerate(joined, start=1)
    ]


class Town:
    """The town with its stations, riders and habits; deals out trips in the order of their start."""

    def __init__(self, random: Random, stations: Sequence[Station], riders: Sequence[Rider]) -> None:
        self._random = random
        self._stations = stations
        self._riders = riders
        # The busiest station sees about twenty times the trips of the quietest, as in real towns.
        self._busy = [1 / (rank + 3) for rank in range(len(stations))]
        random.shuffle(self._busy)
        every = range(len(stations))
        self._reach = [[self._pull(start, end) for end in every] for start in every]
        self._next_id = 100_001

    def trips_of(self, day: date, about: int) -> Iterator[Trip]:
        """Yield a day's trips, about that many if the weather is fair."""
        weekend = day.weekday() >= 5
        rain = 0.55 if self._random.random() < _RAINY_SHARE else 1.0
        wanted = int(about * rain * (0.85 if weekend else 1.0) * self._random.uniform(0.9, 1.1))
        hours = self._random.choices(range(24), _WEEKEND if weekend else _WORKDAY, k=wanted)
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        starts = sorted(
            midnight + timedelta(hours=hour, seconds=self._random.randrange(3600)) for hour in hours
        )
        yield from map(self._trip, starts)

    def _trip(self, start: datetime) -> Trip:
        random = self._random
        rider = random.choice(self._riders)
        origin = random.choices(range(len(self._stations)), self._busy)[0]
        bike = "electric" if random.random() < 0.38 else "classic"
        trip_id, self._next_id = self._next_id, self._next_id + 1
        here = self._stations[origin].station_id
        if random.random() < _TEST_RIDE_SHARE:
            return Trip(trip_id, start, random.randint(8, 55), here, here, rider.rider_id, bike, 0.0, 0.0)
        target = random.choices(range(len(self._stations)), self._reach[origin])[0]
        kilometres = self._ridden(origin, target, rider)
        minutes = max(
            2.0, kilometres / (17.5 if bike == "electric" else 13.0) * 60 * random.lognormvariate(0, 0.18)
        )
        there = None if random.random() < _LOST_SHARE else self._stations[target].station_id
        return Trip(
            trip_id,
            start,
            int(minutes * 60),
            here,
            there,
            rider.rider_id,
            bike,
            round(kilometres, 2),
            fare(rider.plan, bike, minutes),
        )

    def _ridden(self, origin: int, target: int, rider: Rider) -> float:
        """Return the kilometres on the road: streets are not straight, and visitors make detours."""
        detour = self._random.lognormvariate(0.55 if rider.plan == "day pass" else 0.25, 0.2)
        loop = self._random.uniform(1.5, 6) if origin == target else 0.0
        return self._distance(origin, target) * detour + loop

    def _pull(self, start: int, end: int) -> float:
        return self._busy[end] * math.exp(-self._distance(start, end) / 1.8) * (0.3 if start == end else 1.0)

    def _distance(self, start: int, end: int) -> float:
        a, b = self._stations[start], self._stations[end]
        north = (b.latitude - a.latitude) * _KM_PER_DEGREE
        east = (b.longitude - a.longitude) * _KM_PER_DEGREE * math.cos(math.radians(a.latitude))
        return math.hypot(north, east)


def fare(plan: str, bike: str, minutes: float) -> float:
    """Return the price of a ride: subscribers have half an hour free, electric bicycles cost more."""
    surcharge = 0.06 * minutes if bike == "electric" else 0.0
    if plan == "day pass":
        return round(1.0 + 0.12 * minutes + surcharge, 2)
    return round(max(0.0, minutes - 30) * 0.10 + surcharge, 2)
