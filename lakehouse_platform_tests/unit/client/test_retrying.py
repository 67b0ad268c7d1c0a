"""When requests are repeated."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.client.requests import Answer, Lost, Outcome, Request
from lakehouse_platform.client.retrying import RetryPolicy, may_have_acted, retry_after
from lakehouse_platform.client.uploads import rows_body
from lakehouse_platform.errors import InvalidArgumentError

POLICY = RetryPolicy(attempts=4, budget_seconds=10, first_seconds=1, longest_seconds=3)
GET = Request(method="GET", path="/v1/tables")
KEYED = Request(method="POST", path="/v1/tables/t/rows", key="k")
PLAIN = Request(method="POST", path="/v1/tables")
LOGIN = Request(method="POST", path="/v1/auth/login", is_single=True, is_signed=False)
CUT = Lost("cut", was_sent=True)
REFUSED = Lost("refused", was_sent=False)
BUSY = Answer(503, {})


def delay(
    request: Request, outcome: Outcome, *, attempt: int = 1, elapsed: float = 0.0, chance: float = 1.0
) -> float | None:
    return POLICY.delay(request, outcome, attempt=attempt, elapsed=elapsed, chance=chance)


@pytest.mark.parametrize("request_", [GET, KEYED])
@pytest.mark.parametrize(
    "outcome", [CUT, REFUSED, BUSY, Answer(429, {"retry-after": "2"}), Answer(502, {}), Answer(504, {})]
)
def test_reading_and_changes_with_a_key_are_repeated(request_: Request, outcome: Outcome) -> None:
    assert delay(request_, outcome) is not None


@pytest.mark.parametrize(
    "outcome", [CUT, BUSY, Answer(429, {"retry-after": "2"}), Answer(502, {}), Answer(504, {})]
)
def test_a_change_without_a_key_is_not_repeated(outcome: Outcome) -> None:
    assert delay(PLAIN, outcome) is None


def test_what_never_reached_the_server_is_repeated_unless_it_is_a_sign_in() -> None:
    assert delay(PLAIN, REFUSED) is not None
    assert delay(LOGIN, REFUSED) is None


@pytest.mark.parametrize("outcome", [CUT, REFUSED, BUSY, Answer(429, {"retry-after": "1"}), Answer(502, {})])
def test_a_sign_in_is_never_repeated(outcome: Outcome) -> None:
    assert delay(LOGIN, outcome) is None


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 406, 408, 409, 410, 413, 415, 422, 500, 501, 301, 307]
)
@pytest.mark.parametrize("request_", [GET, KEYED])
def test_a_refusal_is_not_repeated(request_: Request, status: int) -> None:
    assert delay(request_, Answer(status, {})) is None


def test_a_certificate_that_is_not_trusted_will_not_be_so_in_a_second() -> None:
    assert delay(GET, Lost("certificate", was_sent=False, is_lasting=True)) is None


def test_rows_of_a_reader_are_not_sent_again_once_they_were_begun() -> None:
    body = rows_body(pa.table({"id": [1]}).to_reader())
    request = Request(method="POST", path="/", rows=body, key="k")
    assert delay(request, REFUSED) is not None
    next(body.pieces())
    assert delay(request, REFUSED) is None


def test_waits_double_up_to_the_longest() -> None:
    assert [delay(GET, BUSY, attempt=attempt) for attempt in (1, 2, 3, 4)] == [1, 2, 3, None]


@given(st.floats(0, 1), st.integers(1, 3))
def test_waits_are_spread_by_chance(chance: float, attempt: int) -> None:
    wait = delay(GET, BUSY, attempt=attempt, chance=chance)
    assert wait is not None
    assert 0 <= wait <= 3


def test_the_server_says_how_long_to_wait() -> None:
    assert delay(GET, Answer(429, {"retry-after": "5"}), chance=0.0) == 5
    assert delay(GET, Answer(429, {"retry-after": "5"}), chance=0.5) == 5.5


def test_no_wait_begins_that_goes_beyond_the_budget() -> None:
    assert delay(GET, Answer(429, {"retry-after": "3600"})) is None
    assert delay(GET, BUSY, elapsed=9.5) is None
    assert delay(GET, BUSY, elapsed=9.0) == 1


def test_many_attempts_do_not_overflow() -> None:
    patient = RetryPolicy(attempts=10**9, budget_seconds=1e9)
    waits = [patient.delay(GET, BUSY, attempt=n, elapsed=0, chance=1) or 0 for n in (1, 10, 1000, 10**8)]
    assert all(earlier <= later for earlier, later in pairwise(waits))


@pytest.mark.parametrize("wish", ["", "soon", "-1", "1.5", "²", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_wish_that_is_no_number_of_seconds_is_none(wish: str) -> None:
    assert retry_after(Answer(503, {"retry-after": wish})) is None


def test_a_lost_answer_and_a_proxy_without_one_leave_it_open_whether_it_was_done() -> None:
    assert [may_have_acted(one) for one in (CUT, Answer(502, {}), Answer(504, {}))] == [True, True, True]
    assert [may_have_acted(one) for one in (REFUSED, BUSY, Answer(429, {}))] == [False, False, False]


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"budget_seconds": -1}, {"first_seconds": -1}, {"longest_seconds": -1}]
)
def test_a_policy_without_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError):
        RetryPolicy(**wrong)
