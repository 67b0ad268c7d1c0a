"""So many events of a key are admitted in a minute, the rest are counted and told later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lakehouse_platform.services.sparse import Sparse

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_the_first_few_are_admitted_and_the_rest_are_not() -> None:
    sparse = Sparse(2)
    assert [sparse.admit("a", at(second)) for second in range(4)] == [0, 0, None, None]


def test_after_a_minute_the_next_one_tells_how_many_were_left_out() -> None:
    sparse = Sparse(1)
    for second in range(5):
        sparse.admit("a", at(second))
    assert sparse.admit("a", at(59.9)) is None
    assert sparse.admit("a", at(60)) == 5
    assert sparse.admit("a", at(120)) == 0


def test_keys_do_not_share() -> None:
    sparse = Sparse(1)
    assert [sparse.admit(key, at(0)) for key in ("a", "b", "a", "b")] == [0, 0, None, None]


def test_what_is_remembered_has_a_bound_and_the_busiest_keys_stay() -> None:
    sparse = Sparse(1)
    sparse.admit("busy", at(0))
    for number in range(20_000):
        sparse.admit(f"k{number}", at(1))
        if number % 1_000 == 0:
            assert sparse.admit("busy", at(1)) is None
    assert len(sparse._windows) <= 10_000
