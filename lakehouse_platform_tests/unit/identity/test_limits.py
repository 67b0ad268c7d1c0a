"""Limits: exactly as many requests as a subscription allows, in fixed minutes and days, across processes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.errors import InvalidArgumentError, RateLimitedError
from lakehouse_platform.identity.limits import QUOTAS, Limits, Quota, Usage
from lakehouse_platform.model.actors import SubscriptionTier
from lakehouse_platform_tests.support.identity_worker import together

FREE, PRO, ENTERPRISE = SubscriptionTier.FREE, SubscriptionTier.PRO, SubscriptionTier.ENTERPRISE
NOW = datetime(2026, 3, 1, 12, 0, 15, tzinfo=UTC)


@pytest.fixture
def limits(tmp_path: Path) -> Iterator[Limits]:
    with Limits(tmp_path / "state") as opened:
        yield opened


def granted(limits: Limits, tier: SubscriptionTier, now: datetime, tries: int, user_id: str = "u") -> int:
    count = 0
    for _ in range(tries):
        try:
            limits.take(user_id, tier, now)
        except RateLimitedError:
            break
        count += 1
    return count


def test_the_tiers_are_those_of_the_contract() -> None:
    assert {
        FREE: Quota(per_minute=10, per_day=100),
        PRO: Quota(per_minute=100, per_day=10_000),
        ENTERPRISE: Quota(per_minute=None, per_day=None),
    } == QUOTAS


@pytest.mark.parametrize(("tier", "allowed"), [(FREE, 10), (PRO, 100), (ENTERPRISE, 150)])
def test_a_minute_allows_what_the_tier_says(limits: Limits, tier: SubscriptionTier, allowed: int) -> None:
    assert granted(limits, tier, NOW, 150) == allowed
    assert limits.usage("u", tier, NOW) == Usage(quota=QUOTAS[tier], minute=allowed, day=allowed)


def test_a_refusal_says_when_the_minute_is_over_and_counts_nothing(limits: Limits) -> None:
    granted(limits, FREE, NOW, 10)
    for _ in range(3):
        with pytest.raises(RateLimitedError, match="10 requests per minute") as caught:
            limits.take("u", FREE, NOW)
        assert caught.value.retry_after == 45
    assert limits.usage("u", FREE, NOW).day == 10
    with pytest.raises(RateLimitedError):
        limits.take("u", FREE, NOW + timedelta(seconds=44, milliseconds=999))
    assert limits.take("u", FREE, NOW + timedelta(seconds=45)) == Usage(quota=QUOTAS[FREE], minute=1, day=11)


def test_the_day_ends_at_midnight_in_utc(limits: Limits) -> None:
    start = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)
    for minute in range(10):
        assert granted(limits, FREE, start + timedelta(minutes=minute), 11) == 10
    with pytest.raises(RateLimitedError, match="100 requests per day") as caught:
        limits.take("u", FREE, start + timedelta(hours=12))
    assert caught.value.retry_after == 12 * 3600
    assert caught.value.details["window"] == "day"
    with pytest.raises(RateLimitedError):
        limits.take("u", FREE, start + timedelta(days=1, milliseconds=-1))
    assert limits.take("u", FREE, start + timedelta(days=1)).day == 1


def test_another_zone_is_the_same_time(limits: Limits) -> None:
    granted(limits, FREE, NOW, 10)
    zoned = datetime.fromisoformat("2026-03-01T17:30:15+05:30")
    assert zoned == NOW
    with pytest.raises(RateLimitedError):
        limits.take("u", FREE, zoned)


def test_one_users_requests_do_not_count_for_another(limits: Limits) -> None:
    granted(limits, FREE, NOW, 10)
    assert granted(limits, FREE, NOW, 20, "v") == 10


def test_a_better_tier_counts_at_once(limits: Limits) -> None:
    granted(limits, FREE, NOW, 10)
    assert limits.take("u", PRO, NOW).minute == 11
    with pytest.raises(RateLimitedError):
        limits.take("u", FREE, NOW)


def test_looking_counts_nothing(limits: Limits) -> None:
    assert (
        limits.usage("u", FREE, NOW)
        == limits.usage("u", FREE, NOW)
        == Usage(quota=QUOTAS[FREE], minute=0, day=0)
    )


def test_a_reset_forgets_what_was_used_up(limits: Limits) -> None:
    granted(limits, FREE, NOW, 10)
    granted(limits, FREE, NOW, 10, "v")
    limits.reset("u")
    assert granted(limits, FREE, NOW, 20) == 10
    assert granted(limits, FREE, NOW, 20, "v") == 0


def test_an_override_counts_in_place_of_the_tier_until_it_is_taken_back(limits: Limits) -> None:
    limits.override("u", 2, None)
    assert granted(limits, FREE, NOW, 20) == 2
    assert limits.usage("u", ENTERPRISE, NOW).quota == Quota(per_minute=2, per_day=None)
    limits.override("u", 3, 3)
    assert granted(limits, FREE, NOW, 20) == 1
    with pytest.raises(RateLimitedError, match="3 requests per day"):
        limits.take("u", ENTERPRISE, NOW)
    limits.reset("u")
    assert limits.usage("u", FREE, NOW).quota == Quota(per_minute=3, per_day=3)
    limits.follow_tier("u")
    assert granted(limits, FREE, NOW, 20) == 10


def test_an_override_of_nothing_stops_a_user(limits: Limits) -> None:
    limits.override("u", 0, 0)
    with pytest.raises(RateLimitedError):
        limits.take("u", ENTERPRISE, NOW)


@pytest.mark.parametrize("limit", [-1, 2**63, 1.5, True, "5"])
def test_a_limit_that_is_no_number_of_requests_is_refused(limits: Limits, limit: Any) -> None:
    for own in ((limit, None), (None, limit)):
        with pytest.raises(InvalidArgumentError, match="whole number"):
            limits.override("u", *own)
    assert limits.usage("u", FREE, NOW).quota == QUOTAS[FREE]


def test_nothing_is_kept_of_a_forgotten_user(limits: Limits, tmp_path: Path) -> None:
    limits.override("erased-user", 5, 5)
    limits.take("erased-user", FREE, NOW)
    limits.forget("erased-user")
    with limits._file.transaction() as connection:
        for table in ("taken", "overrides"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_counts_outlive_the_process(tmp_path: Path) -> None:
    with Limits(tmp_path) as first:
        granted(first, FREE, NOW, 7)
    with Limits(tmp_path) as second:
        assert granted(second, FREE, NOW, 20) == 3


def test_a_clock_that_is_a_little_behind_does_not_reset_a_minute(limits: Limits) -> None:
    before, after = NOW.replace(second=59), NOW.replace(minute=1, second=0)
    assert granted(limits, FREE, before, 6) == 6
    assert granted(limits, FREE, after, 6) == 6
    assert granted(limits, FREE, before, 20) == 4
    assert granted(limits, FREE, after, 20) == 4


def test_old_windows_do_not_pile_up(limits: Limits) -> None:
    for minute in range(200):
        limits.take("u", ENTERPRISE, NOW + timedelta(minutes=minute))
    for day in range(10):
        limits.take("u", ENTERPRISE, NOW + timedelta(days=1 + day))
    with limits._file.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM taken").fetchone()[0] <= 4


@pytest.mark.slow
def test_three_processes_together_get_exactly_what_the_tier_allows(tmp_path: Path) -> None:
    answers = together("take", [[str(tmp_path / "state"), "60"]] * 3)
    assert sum(answers) == 100
