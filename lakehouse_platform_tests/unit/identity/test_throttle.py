"""The throttle: guessing gets slow, nobody is locked out for good, and nothing gets around the count."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import LoginThrottledError, RateLimitedError
from lakehouse_platform.identity.throttle import Failures, Rule, Throttle, one_more, remaining_ms
from lakehouse_platform_tests.support.identity_worker import together

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULE = Rule()
IP = "192.0.2.1"


@pytest.fixture
def throttle(tmp_path: Path) -> Iterator[Throttle]:
    with Throttle(tmp_path / "state") as opened:
        yield opened


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def fail(
    throttle: Throttle, times: int, login: str = "euler", ip: str | None = None, now: datetime = NOW
) -> None:
    for _ in range(times):
        throttle.begin(login, ip, now)


def refused(throttle: Throttle, login: str = "euler", ip: str | None = None, now: datetime = NOW) -> float:
    with pytest.raises(LoginThrottledError, match="Too many failed sign-ins") as caught:
        throttle.begin(login, ip, now)
    return caught.value.retry_after


def test_the_wait_doubles_from_one_second_to_a_quarter_of_an_hour() -> None:
    waits = [RULE.wait_ms(failures) // 1000 for failures in range(17)]
    assert waits == [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert RULE.wait_ms(10**6) == 900_000


def test_five_failures_cost_nothing_and_the_next_attempt_waits(throttle: Throttle) -> None:
    fail(throttle, 5)
    assert refused(throttle) == 1
    assert refused(throttle, now=after(0.999)) == 1
    throttle.begin("euler", None, after(1))
    assert refused(throttle, now=after(1)) == 2


def test_an_attempt_that_is_refused_does_not_make_the_wait_longer(throttle: Throttle) -> None:
    fail(throttle, 5)
    for _ in range(50):
        refused(throttle)
    throttle.begin("euler", None, after(1))


def test_success_forgives_the_name_everything(throttle: Throttle) -> None:
    fail(throttle, 4)
    throttle.begin("euler", None, NOW)
    throttle.succeeded("euler", None)
    fail(throttle, 5)
    refused(throttle)


def test_a_name_counts_in_any_capitals_and_from_any_address(throttle: Throttle) -> None:
    for number, login in enumerate(["euler", "EULER", " Euler ", "eUler", "euler"]):
        throttle.begin(login, f"192.0.2.{number}", NOW)
    assert refused(throttle, "euleR", "192.0.2.99") == 1
    throttle.begin("gauss", "192.0.2.99", NOW)


def test_an_address_counts_under_any_name_and_success_does_not_forgive_it(throttle: Throttle) -> None:
    for number in range(4):
        throttle.begin(f"name{number}", IP, NOW)
    throttle.begin("own-account", IP, NOW)
    throttle.succeeded("own-account", IP)
    throttle.begin("name4", IP, NOW)
    assert refused(throttle, "name5", IP) == 1
    throttle.begin("name5", "192.0.2.2", NOW)


def test_many_people_can_sign_in_from_one_address(throttle: Throttle) -> None:
    for number in range(50):
        throttle.begin(f"user{number}", IP, NOW)
        throttle.succeeded(f"user{number}", IP)
    fail(throttle, 4, "somebody", IP)


def test_a_success_from_an_address_does_not_restart_its_wait(throttle: Throttle) -> None:
    fail(throttle, 5, "guesser", IP)
    throttle.begin("neighbour", IP, after(1))
    throttle.succeeded("neighbour", IP)
    throttle.begin("neighbour", IP, after(1))


@pytest.mark.parametrize(
    ("first", "second"),
    [("2001:db8::1", "2001:db8::ffff:ffff:1"), ("192.0.2.1", "::ffff:192.0.2.1"), ("192.0.2.1", " 192.0.2.1"),
     ("unix:", "unix:")],
)  # fmt: skip
def test_addresses_of_one_customer_count_as_one(throttle: Throttle, first: str, second: str) -> None:
    for number in range(5):
        throttle.begin(f"name{number}", first, NOW)
    assert refused(throttle, "name5", second) == 1


def test_neighbouring_networks_do_not_count_as_one(throttle: Throttle) -> None:
    for number in range(5):
        throttle.begin(f"name{number}", "2001:db8::1", NOW)
    throttle.begin("name5", "2001:db8:0:1::1", NOW)


def test_an_attempt_that_never_came_to_the_password_is_taken_back(throttle: Throttle) -> None:
    for _ in range(50):
        throttle.begin("euler", IP, NOW)
        throttle.withdraw("euler", IP)
    fail(throttle, 5, "euler", IP)
    refused(throttle, "euler", IP)


def test_attempts_at_the_same_time_get_no_further_than_one_after_another(throttle: Throttle) -> None:
    """None of them has failed yet when the next begins."""
    fail(throttle, 5)
    refused(throttle)


def test_quiet_makes_it_forget(throttle: Throttle) -> None:
    fail(throttle, 5, "euler", IP)
    day, hour = 24 * 3600, 3600
    throttle.begin("someone", IP, after(hour))
    throttle.begin("euler", None, after(day))
    fail(throttle, 4, now=after(day))
    refused(throttle, now=after(day))


def test_an_administrator_can_forgive_a_name(throttle: Throttle) -> None:
    fail(throttle, 5)
    throttle.forgive("Euler")
    fail(throttle, 5)
    refused(throttle)


def test_counts_outlive_the_process_and_tell_no_names(tmp_path: Path) -> None:
    with Throttle(tmp_path) as first:
        fail(first, 5, "leonhard@basel.example", IP)
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with Throttle(tmp_path) as second:
        assert refused(second, "leonhard@basel.example") == 1
    assert b"leonhard" not in held
    assert IP.encode() not in held


def test_invented_names_do_not_pile_up(throttle: Throttle) -> None:
    for number in range(300):
        throttle.begin(f"name{number}", None, NOW)
    for number in range(300):
        throttle.begin(f"late{number}", None, after(2 * 24 * 3600))
    with throttle._file.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM failures").fetchone() == (300,)


@given(st.integers(0, 10**9), st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_no_wait_is_longer_than_the_rule_whatever_the_clock_does(count: int, last: int, now: int) -> None:
    assert 0 <= remaining_ms(RULE, Failures(count, last), now) <= RULE.longest_ms


@given(st.lists(st.integers(0, 10**8), max_size=40))
def test_whoever_waits_as_told_gets_in(pauses: list[int]) -> None:
    failures, now = None, 0
    for pause in pauses:
        now += pause
        now += remaining_ms(RULE, failures, now)
        assert remaining_ms(RULE, failures, now) == 0
        failures = one_more(RULE, failures, now)


@pytest.mark.slow
def test_four_processes_together_get_five_attempts(tmp_path: Path) -> None:
    answers = together("guess", [[str(tmp_path / "state"), "4"]] * 4)
    assert sum(answers) == 5


# ── Registrations ───────────────────────────────────────────────────────────────────────────────────


def ask_for_accounts(throttle: Throttle, times: int, ip: str | None = IP, now: datetime = NOW) -> None:
    for _ in range(times):
        throttle.registration(ip, now)


def too_many(throttle: Throttle, ip: str = IP, now: datetime = NOW) -> float:
    with pytest.raises(RateLimitedError, match="Too many accounts") as caught:
        throttle.registration(ip, now)
    assert not isinstance(caught.value, LoginThrottledError)
    return caught.value.retry_after


def test_an_address_asks_for_ten_accounts_in_an_hour(throttle: Throttle) -> None:
    ask_for_accounts(throttle, 1)
    ask_for_accounts(throttle, 9, now=after(1800))
    assert too_many(throttle, now=after(1800)) == 1800
    assert too_many(throttle, now=after(3599.5)) == 1
    ask_for_accounts(throttle, 10, now=after(3600))
    assert too_many(throttle, now=after(3600)) == 3600


def test_a_refused_registration_does_not_make_the_wait_longer(throttle: Throttle) -> None:
    ask_for_accounts(throttle, 10)
    assert {too_many(throttle, now=after(10)) for _ in range(20)} == {3590}


@pytest.mark.parametrize(
    ("ip", "same", "another"),
    [
        ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),
    ],
)
def test_what_one_customer_has_counts_as_one_address(
    throttle: Throttle, ip: str, same: str, another: str
) -> None:
    ask_for_accounts(throttle, 10, ip)
    assert too_many(throttle, same) == 3600
    throttle.registration(another, NOW)


def test_without_an_address_nothing_is_counted(throttle: Throttle) -> None:
    ask_for_accounts(throttle, 50, None)


def test_registrations_and_failed_sign_ins_are_counted_apart(throttle: Throttle) -> None:
    ask_for_accounts(throttle, 10)
    throttle.begin("euler", IP, NOW)
    throttle.succeeded("euler", IP)
    assert too_many(throttle) == 3600


def test_registrations_stay_counted_over_a_restart_and_by_the_setting(tmp_path: Path) -> None:
    with Throttle(tmp_path / "state", registrations_per_hour=2) as one:
        ask_for_accounts(one, 2)
    with Throttle(tmp_path / "state", registrations_per_hour=2) as two:
        assert too_many(two) == 3600


def test_a_clock_that_was_set_back_begins_a_new_hour(throttle: Throttle) -> None:
    ask_for_accounts(throttle, 10)
    ask_for_accounts(throttle, 10, now=after(-1))
