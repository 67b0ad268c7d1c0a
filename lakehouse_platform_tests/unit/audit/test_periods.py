from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from lakehouse_platform.audit.periods import Moment, Period
from lakehouse_platform.errors import InvalidArgumentError, InvalidTimestampError


def test_both_days_belong_to_a_period_of_days() -> None:
    period = Period.of_days("2026-02-01", "2026-02-28")
    assert period == Period(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))


def test_a_period_of_one_day_is_conditions_on_its_partition_alone() -> None:
    assert Period.of_days("2026-02-01", date(2026, 2, 1)).conditions() == [
        "timestamp >= '2026-02-01T00:00:00.000000Z'",
        "date_partition >= '2026-02-01'",
        "timestamp < '2026-02-02T00:00:00.000000Z'",
        "date_partition <= '2026-02-01'",
    ]


def test_the_last_day_that_there_is_can_be_named() -> None:
    assert Period.of_days("9999-12-31", "9999-12-31").conditions()[-1] == "date_partition <= '9999-12-31'"


@pytest.mark.parametrize(
    "day",
    [
        "",
        "2026-2-1",
        "2026-02-30",
        "2026-13-01",
        "yesterday",
        "2026-02-01T00:00:00Z",
        "2026-02-01' OR '1'='1",
        "２０２６-02-01",
    ],
)
def test_what_is_no_day_is_refused(day: str) -> None:
    for start, end in ((day, "2026-02-01"), ("2026-02-01", day)):
        with pytest.raises(InvalidTimestampError, match="not a day"):
            Period.of_days(start, end)


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="exchange the two"):
        Period.of_days("2026-02-02", "2026-02-01")
    with pytest.raises(InvalidArgumentError, match="exchange the two"):
        Period.between("2026-02-02", "2026-02-01T23:59:59Z")


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, []),
        (
            "2026-02-01",
            None,
            ["timestamp >= '2026-02-01T00:00:00.000000Z'", "date_partition >= '2026-02-01'"],
        ),
        (None, "2026-02-01", ["timestamp < '2026-02-02T00:00:00.000000Z'", "date_partition <= '2026-02-01'"]),
        (
            datetime(2026, 2, 1, 1, tzinfo=timezone(timedelta(hours=2))),
            None,
            ["timestamp >= '2026-01-31T23:00:00.000000Z'", "date_partition >= '2026-01-31'"],
        ),
        (
            None,
            "2026-02-01T00:00:00Z",
            ["timestamp < '2026-02-01T00:00:00.000001Z'", "date_partition <= '2026-02-01'"],
        ),
    ],
)
def test_instants_and_days_bound_what_belongs_to_a_period(
    since: Moment | None, until: Moment | None, expected: list[str]
) -> None:
    assert Period.between(since, until).conditions() == expected


def test_one_instant_is_a_period_too() -> None:
    assert Period.between("2026-02-01T12:00:00Z", "2026-02-01T12:00:00Z").conditions()


def test_a_time_without_a_zone_is_refused() -> None:
    for moment in ("2026-02-01T12:00:00", datetime(2026, 2, 1)):  # noqa: DTZ001 - that is the point
        with pytest.raises(InvalidTimestampError, match="zone"):
            Period.between(moment, None)


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_an_instant_that_utc_has_no_year_for_is_refused(moment: datetime) -> None:
    with pytest.raises(InvalidTimestampError, match="year"):
        Period.between(moment, None)
