"""Tokens and when they are renewed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.requests import Answer
from lakehouse_platform.client.sign_in import SignIn, checked_token, server_time
from lakehouse_platform.errors import InvalidArgumentError

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def tokens(life: float, refresh: str | None = "refresh") -> Tokens:
    return Tokens(access_token="access", refresh_token=refresh, expires_at=NOW + timedelta(seconds=life))


@pytest.mark.parametrize(("life", "due"), [(86_400, 86_340), (600, 540), (100, 90), (1, 0.9)])
def test_a_sign_in_is_renewed_a_while_before_its_end(life: float, due: float) -> None:
    sign_in = SignIn.of_tokens(tokens(life), 1000.0, NOW)
    assert sign_in.renew_at == pytest.approx(1000 + due)
    assert not sign_in.is_due(1000 + due - 0.01)
    assert sign_in.is_due(1000 + due + 0.01)


def test_what_cannot_be_renewed_is_never_due() -> None:
    assert not SignIn().is_due(1e12)
    assert not SignIn.of_token("lhk_id_secret").is_due(1e12)
    assert not SignIn.of_tokens(tokens(60, None), 0, NOW).is_due(1e12)
    assert not SignIn.of_tokens(tokens(60), 0, NOW).without_renewal().is_due(1e12)


def test_an_ended_sign_in_is_due_at_once() -> None:
    assert SignIn.of_tokens(tokens(-5), 1000, NOW).is_due(1000)


def test_a_used_up_refresh_token_is_forgotten_and_the_access_token_kept() -> None:
    left = SignIn.of_tokens(tokens(60), 0, NOW).without_renewal()
    assert (left.token, left.refresh_token) == ("access", None)
    assert left.tokens is not None
    assert left.tokens.access_token == "access"


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "ä", "a" * 8193, "a\x00"])
def test_what_cannot_stand_in_a_header_is_no_token_and_is_not_repeated(token: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        checked_token(token)
    assert "X: y" not in str(caught.value)


def test_no_text_of_a_sign_in_shows_its_tokens() -> None:
    shown = repr(SignIn.of_tokens(tokens(60), 0, NOW)) + repr(SignIn.of_token("hush"))
    assert "'access'" not in shown
    assert "'refresh'" not in shown
    assert "hush" not in shown


def test_the_server_s_clock_counts_where_it_is_told() -> None:
    told = Answer(200, {"date": "Sun, 01 Feb 2026 12:00:00 GMT"})
    assert server_time(told, datetime.max.replace(tzinfo=UTC)) == NOW
    for date in ({}, {"date": "today"}):
        assert server_time(Answer(200, date), NOW) == NOW
