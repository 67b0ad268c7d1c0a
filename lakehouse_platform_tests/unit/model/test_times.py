from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import InvalidTimestampError
from lakehouse_platform.model.times import from_epoch_ms, parse_rfc3339, to_epoch_ms, to_rfc3339

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
INSTANTS = st.datetimes(datetime(1970, 1, 2), datetime(9998, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-01T12:00:00Z",
        "2026-02-01t12:00:00z",
        "2026-02-01 12:00:00Z",
        "2026-02-01T12:00:00.000000000Z",
        "2026-02-01T13:00:00+01:00",
        "2026-02-01T06:30:00-05:30",
    ],
)
def test_every_spelling_of_rfc_3339_names_the_same_instant(text: str) -> None:
    assert parse_rfc3339(text) == NOON


def test_digits_beyond_the_microsecond_are_cut_off() -> None:
    assert parse_rfc3339("2026-02-01T12:00:00.123456789Z") == NOON + timedelta(microseconds=123_456)


@pytest.mark.parametrize("digits", range(1, 10))
def test_a_fraction_may_have_one_to_nine_digits(digits: int) -> None:
    assert parse_rfc3339(f"2026-02-01T12:00:00.{'5'.ljust(digits, '0')}Z") == NOON + timedelta(
        milliseconds=500
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "yesterday", "2026-02-01", "2026-02-01T12:00:00", "2026-02-01T12:00Z", "2026-02-30T12:00:00Z",
        "2026-02-01T25:00:00Z", "2026-02-01T12:00:00Z ", "20260201T120000Z", "2026-02-01T12:00:00+0100",
        "0001-01-01T00:00:00+23:59", "2026-02-01T12:00:00.Z", "2026-02-01T12:00:00Z\n",
    ],
)  # fmt: skip
def test_a_text_without_a_zone_or_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidTimestampError) as caught:
        parse_rfc3339(text)
    assert "2026-02-01T12:00:00Z" in caught.value.message


@given(INSTANTS)
def test_text_brings_back_the_instant_to_the_millisecond(instant: datetime) -> None:
    back = parse_rfc3339(to_rfc3339(instant))
    assert timedelta() <= instant - back < timedelta(milliseconds=1)


@given(INSTANTS)
def test_milliseconds_bring_back_the_instant_rounded_down(instant: datetime) -> None:
    assert from_epoch_ms(to_epoch_ms(instant)) == instant.replace(
        microsecond=instant.microsecond // 1000 * 1000
    )


@given(st.integers(0, 253_000_000_000_000))
def test_every_count_of_milliseconds_survives_a_round_trip(milliseconds: int) -> None:
    assert to_epoch_ms(from_epoch_ms(milliseconds)) == milliseconds


def test_text_is_always_utc() -> None:
    assert to_rfc3339(NOON.astimezone(timezone(timedelta(hours=9)))) == "2026-02-01T12:00:00.000Z"
