"""The steps of a client, without any network: the tests take them and say what became of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.client import account_calls, table_calls
from lakehouse_platform.client.base import ClientBase, OnTokens, Surroundings
from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.requests import Alone, Answer, Call, Lost, Outcome, Request, Send, Steps, Wait
from lakehouse_platform.client.retrying import RetryPolicy
from lakehouse_platform.errors import (
    AuthenticationFailedError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    InfrastructureError,
    InvalidArgumentError,
    LakehouseError,
    PermissionDeniedError,
    RateLimitedError,
    ServerUnavailableError,
    TokenExpiredError,
    TokenInvalidError,
    TokenReuseError,
    UnexpectedAnswerError,
)

START = datetime(2026, 2, 1, 12, tzinfo=UTC)
CUT = Lost("the connection broke", was_sent=True)
AWAY = Lost("refused", was_sent=False)
NAMES = table_calls.names()
TABLES = Answer(200, {"content-type": "application/json"}, b'{"tables": ["rides"]}')


class World:
    """Time that passes only while a client waits, and what the server says, in turn."""

    def __init__(self, *outcomes: Outcome | Callable[[Send], Outcome], **client: Any) -> None:
        self.now = 1000.0
        self.outcomes = list(outcomes)
        self.sent: list[Send] = []
        self.waits: list[float] = []
        self.kept: list[Tokens | None] = []
        policy = client.pop("policy", RetryPolicy(attempts=3, budget_seconds=20, first_seconds=1))
        on_tokens: OnTokens = self.kept.append
        surroundings = Surroundings(
            now=lambda: self.now,
            today=lambda: START + timedelta(seconds=self.now - 1000.0),
            chance=lambda: 0.5,
            new_key=lambda: "a-new-key",
        )
        self.base = ClientBase(surroundings, policy, on_tokens=on_tokens, **client)

    def go(self, steps: Steps[Any]) -> Any:
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return done.value
            outcome = self._take(step)

    def run(self, call: Call[Any]) -> Any:
        return self.go(self.base.run(call))

    @property
    def paths(self) -> list[str]:
        return [f"{step.request.method} {step.request.path}" for step in self.sent]

    @property
    def shown(self) -> list[str | None]:
        return [step.token for step in self.sent]

    def _take(self, step: Send | Wait | Alone) -> Any:
        if isinstance(step, Wait):
            self.waits.append(step.seconds)
            self.now += step.seconds
            return None
        if isinstance(step, Alone):
            return self.go(step.steps())
        self.sent.append(step)
        outcome = self.outcomes.pop(0)
        return outcome if isinstance(outcome, Answer | Lost) else outcome(step)


def tokens(number: int, life: float = 86_400, now: float = 1000.0) -> Tokens:
    ends = START + timedelta(seconds=now - 1000.0 + life)
    return Tokens(access_token=f"access-{number}", refresh_token=f"refresh-{number}", expires_at=ends)


def given(made: Tokens, **headers: str) -> Answer:
    body = {
        "access_token": made.access_token, "refresh_token": made.refresh_token,
        "expires_at": made.expires_at.isoformat(),
    }  # fmt: skip
    return Answer(200, {"content-type": "application/json", **headers}, json.dumps(body).encode())


def refused(cls: type[LakehouseError], status: int, **details: Any) -> Answer:
    body = {"code": cls.code, "detail": "It is so.", **details}
    headers = {"content-type": "application/problem+json"}
    if "retry_after" in details:
        headers["retry-after"] = str(details["retry_after"])
    return Answer(status, headers, json.dumps(body).encode())


EXPIRED = refused(TokenExpiredError, 401)
ENDED = refused(AuthenticationFailedError, 401)
BUSY = refused(ServerUnavailableError, 503)
ROWS = pa.table({"id": [1]})
WRITTEN = Answer(200, {"content-type": "application/json"}, b'{"version": 2, "rows": 1, "repeated": false}')


def append(key: str = "k", data: Any = ROWS) -> Call[Any]:
    return table_calls.append("rides", data, False, key)


# ── Repetition ──────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_read() -> None:
    world = World(TABLES, token="t")
    assert world.run(NAMES) == ["rides"]
    assert world.shown == ["t"]


def test_reading_is_repeated_until_there_is_an_answer() -> None:
    world = World(CUT, BUSY, TABLES)
    assert world.run(NAMES) == ["rides"]
    assert world.waits == [0.5, 1.0]


def test_reading_ends_with_what_happened_last() -> None:
    world = World(CUT, CUT, AWAY)
    with pytest.raises(ServerUnavailableError, match="refused"):
        world.run(NAMES)
    assert len(world.sent) == 3


def test_a_limit_is_waited_for_within_the_budget_and_told_beyond_it() -> None:
    world = World(refused(RateLimitedError, 429, retry_after=5), TABLES)
    assert world.run(NAMES) == ["rides"]
    assert world.waits == [5.5]
    world = World(refused(RateLimitedError, 429, retry_after=3600))
    with pytest.raises(RateLimitedError) as caught:
        world.run(NAMES)
    assert caught.value.retry_after == 3600


def test_a_refusal_is_raised_at_once() -> None:
    world = World(refused(PermissionDeniedError, 403))
    with pytest.raises(PermissionDeniedError):
        world.run(NAMES)
    assert world.waits == []


def test_a_lost_answer_to_a_write_is_asked_for_again_with_the_same_key() -> None:
    world = World(CUT, WRITTEN)
    assert world.run(append("my-key")).version == 2
    assert [step.request.key for step in world.sent] == ["my-key", "my-key"]


@pytest.mark.parametrize(
    "last", [CUT, AWAY, BUSY, Answer(502, {"content-type": "text/html"}), Answer(504, {})]
)
def test_a_write_whose_answers_were_all_lost_may_have_landed(last: Outcome) -> None:
    world = World(CUT, CUT, last)
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        world.run(append("my-key"))
    assert dict(caught.value.details) == {"idempotency_key": "my-key"}
    assert len(world.sent) == 3


def test_a_write_that_never_reached_the_server_has_not_landed() -> None:
    world = World(AWAY, AWAY, AWAY)
    with pytest.raises(ServerUnavailableError, match="Nothing was done"):
        world.run(append())


def test_a_refusal_after_a_lost_answer_says_what_became_of_the_write() -> None:
    world = World(CUT, refused(CommitConflictError, 409))
    with pytest.raises(CommitConflictError):
        world.run(append())


def test_rows_of_a_reader_whose_answer_was_lost_are_not_sent_again() -> None:
    def consume(step: Send) -> Outcome:
        assert step.request.rows is not None
        list(step.request.rows.pieces())
        return CUT

    world = World(consume)
    with pytest.raises(CommitOutcomeUnknownError, match="idempotency_key"):
        world.run(append(data=ROWS.to_reader()))
    assert len(world.sent) == 1


def test_a_change_without_a_key_is_sent_once_and_said_to_be_open() -> None:
    world = World(CUT)
    with pytest.raises(ServerUnavailableError, match="look before you repeat") as caught:
        world.run(account_calls.move("u", "approve"))
    assert caught.value.details["may_have_acted"] is True
    assert len(world.sent) == 1


def test_a_proxy_s_page_is_an_unexpected_answer() -> None:
    page = Answer(502, {"content-type": "text/html"}, b"<html>")
    world = World(page, page, page)
    with pytest.raises(UnexpectedAnswerError):
        world.run(NAMES)
    assert len(world.sent) == 3


@pytest.mark.parametrize("wanted", ["", "a b", "a" * 256, "ä", "a\n"])
def test_an_idempotency_key_is_checked(wanted: str) -> None:
    with pytest.raises(InvalidArgumentError):
        World().base.key(wanted)


def test_an_idempotency_key_is_made_if_none_is_wanted() -> None:
    assert World().base.key(None) == "a-new-key"
    assert World().base.key("mine") == "mine"


# ── Signing in and out ──────────────────────────────────────────────────────────────────────────────


def test_after_a_login_the_token_is_shown_and_handed_on() -> None:
    world = World(given(tokens(1)), TABLES)
    assert world.go(world.base.sign_in(account_calls.login("ada", "secret"))) == tokens(1)
    world.run(NAMES)
    assert world.shown == [None, "access-1"]
    assert world.kept == [tokens(1)]


@pytest.mark.parametrize("outcome", [CUT, AWAY, BUSY, refused(RateLimitedError, 429, retry_after=1)])
def test_a_login_is_never_repeated(outcome: Outcome) -> None:
    world = World(outcome)
    with pytest.raises(LakehouseError):
        world.go(world.base.sign_in(account_calls.login("ada", "secret")))
    assert len(world.sent) == 1
    assert world.kept == []


def test_after_a_logout_the_client_is_nobody() -> None:
    world = World(Answer(204, {}), TABLES, tokens=tokens(1))
    world.go(world.base.sign_out(account_calls.logout()))
    world.run(NAMES)
    assert world.shown == ["access-1", None]
    assert world.kept == [None]


def test_a_logout_that_failed_leaves_the_sign_in() -> None:
    world = World(CUT, tokens=tokens(1))
    with pytest.raises(ServerUnavailableError):
        world.go(world.base.sign_out(account_calls.logout()))
    assert world.base.tokens == tokens(1)


def test_a_token_and_a_sign_in_together_are_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        World(token="t", tokens=tokens(1))


# ── Renewal ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_sign_in_is_renewed_before_its_end() -> None:
    world = World(given(tokens(2)), TABLES, tokens=tokens(1, life=30))
    world.now += 28
    assert world.run(NAMES) == ["rides"]
    assert world.paths == ["POST /v1/auth/refresh", "GET /v1/tables"]
    assert world.sent[0].request.fields == {"refresh_token": "refresh-1"}
    assert world.shown == [None, "access-2"]
    assert world.kept == [tokens(2)]


def test_a_sign_in_is_renewed_when_the_server_says_that_it_has_ended() -> None:
    world = World(EXPIRED, given(tokens(2)), TABLES, tokens=tokens(1))
    assert world.run(NAMES) == ["rides"]
    assert world.shown == ["access-1", None, "access-2"]
    assert world.waits == []


def test_a_write_is_sent_again_after_a_renewal_for_it_was_not_done() -> None:
    world = World(EXPIRED, given(tokens(2)), WRITTEN, tokens=tokens(1))
    assert world.run(append()).version == 2


def test_a_sign_in_is_renewed_once_and_not_again_and_again() -> None:
    world = World(EXPIRED, given(tokens(2)), EXPIRED, tokens=tokens(1))
    with pytest.raises(TokenExpiredError):
        world.run(NAMES)
    assert world.outcomes == []


def test_somebody_else_s_renewal_is_used_whatever_the_refusal() -> None:
    world = World(tokens=tokens(1))

    def renewed_meanwhile(_: Send) -> Outcome:
        world.go(world.base.renew())
        return ENDED

    world.outcomes += [renewed_meanwhile, given(tokens(2)), TABLES]
    assert world.run(NAMES) == ["rides"]
    assert world.shown == ["access-1", None, "access-2"]


@pytest.mark.parametrize(
    "refusal", [ENDED, refused(TokenInvalidError, 401), refused(PermissionDeniedError, 401)]
)
def test_another_refusal_is_no_reason_to_renew(refusal: Answer) -> None:
    world = World(refusal, tokens=tokens(1))
    with pytest.raises(LakehouseError):
        world.run(NAMES)
    assert len(world.sent) == 1


def test_a_token_alone_cannot_be_renewed() -> None:
    world = World(EXPIRED, token="lhk_id_secret")
    with pytest.raises(TokenExpiredError):
        world.run(NAMES)
    with pytest.raises(TokenInvalidError, match="sign in again"):
        world.go(world.base.renew())


@pytest.mark.parametrize("outcome", [CUT, Answer(502, {}), BUSY, refused(TokenReuseError, 401)])
def test_a_refresh_token_that_may_be_used_up_is_never_shown_again(outcome: Outcome) -> None:
    world = World(EXPIRED, outcome, EXPIRED, tokens=tokens(1))
    with pytest.raises(LakehouseError):
        world.run(NAMES)
    with pytest.raises(TokenExpiredError):
        world.run(NAMES)
    assert world.paths.count("POST /v1/auth/refresh") == 1
    (kept,) = world.kept
    assert kept is not None
    assert (kept.access_token, kept.refresh_token) == ("access-1", None)


BUSY_BEFORE = Answer(
    503, {"content-type": "application/problem+json"}, b'{"code": "too_busy", "detail": "Try again."}'
)


@pytest.mark.parametrize("outcome", [AWAY, BUSY_BEFORE, refused(RateLimitedError, 429, retry_after=9)])
def test_a_refresh_token_that_the_server_has_not_looked_at_is_kept(outcome: Outcome) -> None:
    world = World(EXPIRED, outcome, EXPIRED, given(tokens(2)), TABLES, tokens=tokens(1))
    with pytest.raises((InfrastructureError, RateLimitedError)):
        world.run(NAMES)
    assert world.run(NAMES) == ["rides"]


def test_a_renewal_that_is_broken_off_uses_the_refresh_token_up() -> None:
    world = World(tokens=tokens(1, life=30))
    world.now += 29
    steps = world.base.run(NAMES)
    alone = next(steps)
    assert isinstance(alone, Alone)
    renewal = alone.steps()
    assert isinstance(next(renewal), Send)
    renewal.close()
    assert world.base.tokens is not None
    assert world.base.tokens.refresh_token is None


@pytest.mark.parametrize(
    "outcome", [AWAY, CUT, BUSY, BUSY_BEFORE, refused(RateLimitedError, 429, retry_after=9)]
)
def test_while_the_server_cannot_renew_a_token_that_is_still_good_is_used(outcome: Outcome) -> None:
    world = World(outcome, TABLES, tokens=tokens(1, life=30))
    world.now += 28
    assert world.run(NAMES) == ["rides"]
    assert world.shown == [None, "access-1"]


def test_a_refusal_to_renew_is_raised() -> None:
    world = World(refused(TokenReuseError, 401), tokens=tokens(1, life=30))
    world.now += 28
    with pytest.raises(TokenReuseError):
        world.run(NAMES)


def test_a_wrong_clock_here_does_not_renew_at_each_request() -> None:
    # The server's clock is an hour behind ours: every token looks as if it had ended.
    world = World(given(tokens(2, life=-1800)), TABLES, TABLES, tokens=tokens(1, life=-1800))
    world.run(NAMES)
    world.run(NAMES)
    assert world.paths == ["POST /v1/auth/refresh", "GET /v1/tables", "GET /v1/tables"]


def test_the_server_s_clock_says_when_a_token_ends() -> None:
    # Ours is a day ahead; the answer tells that the token has an hour left.
    told = given(tokens(1, life=3600 - 86_400), date="Sat, 31 Jan 2026 12:00:00 GMT")
    world = World(told, TABLES)
    world.go(world.base.sign_in(account_calls.login("ada", "secret")))
    world.run(NAMES)
    assert world.paths == ["POST /v1/auth/login", "GET /v1/tables"]


def test_what_the_caller_raises_when_tokens_are_handed_on_is_not_lost() -> None:
    def fail(_: Tokens | None) -> None:
        raise OSError("disk full")

    surroundings = Surroundings(lambda: 0.0, lambda: START, lambda: 0.0, lambda: "k")
    base = ClientBase(surroundings, RetryPolicy(), on_tokens=fail)
    steps = base.sign_in(Request(method="POST", path="/", is_signed=False, is_single=True))
    alone = next(steps)
    assert isinstance(alone, Alone)
    inner = alone.steps()
    next(inner)
    with pytest.raises(OSError, match="disk full"):
        inner.send(given(tokens(1)))
    assert base.tokens == tokens(1)
