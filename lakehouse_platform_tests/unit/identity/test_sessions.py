"""Sessions: only hashes are kept, a refresh token is good once, and what was ended is ended."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse_platform.errors import (
    AccountDisabledError,
    TokenExpiredError,
    TokenInvalidError,
    TokenReuseError,
)
from lakehouse_platform.identity.sessions import Issued, Opened, SessionRecord, Sessions
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.identity_worker import NOW, together

DAY, MONTH = timedelta(days=1), timedelta(days=30)


@pytest.fixture
def sessions(identity_store: DeltaStore) -> Sessions:
    return Sessions(identity_store)


def issue(now: datetime = NOW, *, renewable: bool = True) -> Callable[[object], Issued]:
    return lambda _: Issued(
        token=uuid.uuid4().hex, expires_at=now + DAY, refresh_expires_at=now + MONTH if renewable else None
    )


def opened(sessions: Sessions, user_id: str = "u", now: datetime = NOW, *, renewable: bool = True) -> Opened:
    return sessions.open(
        user_id, issue(now, renewable=renewable), now, ip_address="10.0.0.1", user_agent="curl"
    )


def refreshed(sessions: Sessions, token: str | None, now: datetime = NOW) -> Opened:
    assert token is not None
    return sessions.refresh(token, issue(now), now)


def version(store: DeltaStore) -> int:
    return store.table("sessions").version()


def test_a_sign_in_is_one_commit_and_is_found_by_id_and_token(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    before = version(identity_store)
    made = opened(sessions)
    assert version(identity_store) == before + 1
    for reader in (sessions, Sessions(identity_store)):
        assert reader.by_id(made.session.session_id, NOW) == made.session
        assert reader.by_token(made.token, NOW) == made.session
        assert reader.list("u", NOW) == [made.session]
    assert (made.session.ip_address, made.session.user_agent) == ("10.0.0.1", "curl")


def test_the_token_is_made_for_the_session(sessions: Sessions) -> None:
    ids: list[str] = []

    def remember(session_id: str) -> Issued:
        ids.append(session_id)
        return issue()(session_id)

    assert ids == []
    assert sessions.open("u", remember, NOW).session.session_id == ids[0]


def test_neither_the_table_nor_its_log_holds_a_token(
    identity_store: DeltaStore, sessions: Sessions, tmp_path: Path
) -> None:
    made = opened(sessions)
    again = refreshed(sessions, made.refresh_token)
    (row,) = identity_store.scan("sessions").to_pylist()
    assert row["token_hash"] == hashlib.sha256(again.token.encode()).hexdigest()
    assert row["refresh_hash"] == hashlib.sha256((again.refresh_token or "").encode()).hexdigest()
    sessions.revoke(made.session.session_id)
    everything = b"".join(
        path.read_bytes() for path in (tmp_path / "lake" / "sessions").rglob("*") if path.is_file()
    )
    for one in (made, again):
        assert one.token.encode() not in everything
        assert (one.refresh_token or "").encode() not in everything
    log = b"".join(
        path.read_bytes() for path in (tmp_path / "lake" / "sessions" / "_delta_log").glob("*.json")
    )
    for text in (made.session.session_id, "10.0.0.1", "curl", row["token_hash"], row["refresh_hash"]):
        assert text.encode() not in log
    assert made.token not in repr(made)
    assert (made.refresh_token or "") not in repr(made)


def test_a_refresh_token_holds_the_session_and_256_random_bits(sessions: Sessions) -> None:
    made = opened(sessions)
    raw = base64.urlsafe_b64decode(made.refresh_token or "")
    assert str(uuid.UUID(bytes=raw[:16])) == made.session.session_id
    assert len(raw) == 16 + 32
    other = opened(sessions)
    assert base64.urlsafe_b64decode(other.refresh_token or "")[16:] != raw[16:]


def test_a_session_ends_on_the_second(sessions: Sessions) -> None:
    short, long = opened(sessions, renewable=False), opened(sessions)
    for made, life in ((short, DAY), (long, MONTH)):
        last = NOW + life - timedelta(milliseconds=1)
        assert sessions.by_id(made.session.session_id, last) == made.session
        assert sessions.by_id(made.session.session_id, NOW + life) is None
        assert sessions.by_token(made.token, NOW + life) is None
    assert sessions.list("u", NOW + DAY) == [long.session]


def test_renewing_is_one_commit_that_replaces_both_tokens(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    first = opened(sessions)
    bystander = opened(sessions, "other")
    before, later = version(identity_store), NOW + timedelta(hours=1)
    second = refreshed(sessions, first.refresh_token, later)
    assert version(identity_store) == before + 1
    assert sessions.by_token(first.token, later) is None
    assert (
        sessions.by_token(second.token, later)
        == second.session
        == sessions.by_id(first.session.session_id, later)
    )
    assert second.refresh_token != first.refresh_token
    assert (second.session.created_at, second.session.refreshed_at) == (first.session.created_at, later)
    assert (second.session.ip_address, second.session.user_agent) == ("10.0.0.1", "curl")
    assert second.session.expires_at == later + MONTH
    third = refreshed(sessions, second.refresh_token, later)
    assert sessions.by_token(third.token, later) == third.session
    assert sessions.by_token(bystander.token, later) == bystander.session


def test_a_replayed_refresh_token_ends_the_session_for_thief_and_owner(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    stolen = opened(sessions)
    bystander = opened(sessions)
    owners = refreshed(sessions, stolen.refresh_token)
    with pytest.raises(TokenReuseError, match="may be stolen") as caught:
        refreshed(Sessions(identity_store), stolen.refresh_token)
    # Not whose it is: who shows a stolen token need not know.
    assert caught.value.details == {"session_id": stolen.session.session_id}
    assert sessions.by_token(owners.token, NOW) is None
    with pytest.raises(TokenInvalidError, match="has ended"):
        refreshed(sessions, owners.refresh_token)
    with pytest.raises(TokenInvalidError, match="has ended"):
        refreshed(sessions, stolen.refresh_token)
    assert sessions.list("u", NOW) == [bystander.session]


def test_a_refresh_token_of_an_ended_or_unknown_session_is_invalid(sessions: Sessions) -> None:
    made = opened(sessions)
    sessions.revoke(made.session.session_id)
    unknown = base64.urlsafe_b64encode(bytes(48)).decode()
    for token in (made.refresh_token, unknown):
        with pytest.raises(TokenInvalidError, match="has ended"):
            refreshed(sessions, token)


@pytest.mark.parametrize(
    "text", ["", "x", "é", "A" * 63, "A" * 65, "A" * 10_000, "+" * 64, "A" * 63 + "\n", "\ud800", "a.b.c"]
)
def test_what_is_no_refresh_token_is_refused(
    identity_store: DeltaStore, sessions: Sessions, text: str
) -> None:
    opened(sessions)
    before = version(identity_store)
    with pytest.raises(TokenInvalidError, match="no refresh token"):
        refreshed(sessions, text)
    assert version(identity_store) == before


def test_an_access_token_renews_nothing(sessions: Sessions) -> None:
    made = opened(sessions)
    with pytest.raises(TokenInvalidError):
        refreshed(sessions, made.token)
    assert sessions.by_token(made.token, NOW) == made.session


def test_a_session_is_renewed_only_in_its_time(identity_store: DeltaStore, sessions: Sessions) -> None:
    made = opened(sessions)
    before = version(identity_store)
    with pytest.raises(TokenExpiredError):
        refreshed(sessions, made.refresh_token, NOW + MONTH)
    assert version(identity_store) == before
    assert refreshed(sessions, made.refresh_token, NOW + MONTH - timedelta(milliseconds=1))


def test_a_session_without_a_refresh_token_cannot_be_renewed(sessions: Sessions) -> None:
    made = opened(sessions, renewable=False)
    assert made.refresh_token is None
    guess = base64.urlsafe_b64encode(uuid.UUID(made.session.session_id).bytes + bytes(32)).decode()
    with pytest.raises(TokenInvalidError):
        refreshed(sessions, guess)
    assert sessions.by_token(made.token, NOW) == made.session


def test_whoever_makes_the_token_can_refuse_the_renewal(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    made = opened(sessions)
    before = version(identity_store)

    def refuse(session: SessionRecord) -> Issued:
        raise AccountDisabledError("disabled", user_id=session.user_id)

    with pytest.raises(AccountDisabledError):
        sessions.refresh(made.refresh_token or "", refuse, NOW)
    assert version(identity_store) == before
    assert refreshed(sessions, made.refresh_token)


def test_a_renewal_is_decided_anew_if_another_came_between(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    made, other, turns = opened(sessions), Sessions(identity_store), [0]

    def slow(session: SessionRecord) -> Issued:
        turns[0] += 1
        if turns[0] == 1:
            refreshed(other, made.refresh_token)
        return issue()(session)

    with pytest.raises(TokenReuseError):
        sessions.refresh(made.refresh_token or "", slow, NOW)
    assert turns == [1]
    assert other.by_id(made.session.session_id, NOW) is None


def test_a_sign_in_that_came_between_does_not_harm_a_renewal(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    made, turns = opened(sessions), [0]

    def slow(session: SessionRecord) -> Issued:
        turns[0] += 1
        if turns[0] == 1:
            opened(Sessions(identity_store), "other")
        return issue()(session)

    renewed = sessions.refresh(made.refresh_token or "", slow, NOW)
    assert turns == [2]
    assert sessions.by_token(renewed.token, NOW) == renewed.session
    assert len(sessions.list("other", NOW)) == 1


def test_a_session_can_be_ended_by_anyone_who_knows_it_at_once(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    made, kept, reader = opened(sessions), opened(sessions), Sessions(identity_store)
    assert reader.by_token(made.token, NOW) == made.session
    before = version(identity_store)
    assert sessions.revoke(made.session.session_id) == made.session
    assert version(identity_store) == before + 1
    assert reader.by_token(made.token, NOW) is None
    assert reader.list("u", NOW) == [kept.session]


def test_ending_what_is_ended_makes_no_commit(identity_store: DeltaStore, sessions: Sessions) -> None:
    before = version(identity_store)
    assert sessions.revoke("nothing") is None
    assert sessions.revoke_all("nobody") == []
    assert sessions.clean_up(NOW) == 0
    assert version(identity_store) == before


def test_all_sessions_of_a_user_end_in_one_commit(identity_store: DeltaStore, sessions: Sessions) -> None:
    mine, others = [opened(sessions) for _ in range(3)], opened(sessions, "other")
    before = version(identity_store)
    ended = sessions.revoke_all("u", keep=mine[1].session.session_id)
    assert version(identity_store) == before + 1
    assert {one.session_id for one in ended} == {mine[0].session.session_id, mine[2].session.session_id}
    assert sessions.list("u", NOW) == [mine[1].session]
    assert len(sessions.revoke_all("u")) == 1
    assert sessions.list("other", NOW) == [others.session]


def test_the_newest_session_is_listed_first(sessions: Sessions) -> None:
    made = [opened(sessions, now=NOW + timedelta(minutes=minute)) for minute in (1, 3, 2)]
    expected = [made[1].session, made[2].session, made[0].session]
    assert sessions.list("u", NOW) == expected


def test_cleaning_up_takes_the_ended_sessions_and_no_others(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    short, long = opened(sessions, renewable=False), opened(sessions)
    before = version(identity_store)
    assert sessions.clean_up(NOW + DAY) == 1
    assert version(identity_store) == before + 1
    assert [row["session_id"] for row in identity_store.scan("sessions").to_pylist()] == [
        long.session.session_id
    ]
    assert short.session.session_id != long.session.session_id


def test_what_a_client_says_of_itself_is_cut(sessions: Sessions) -> None:
    made = sessions.open("u", issue(), NOW, ip_address="1" * 100, user_agent="x" * 5000)
    assert (len(made.session.ip_address or ""), len(made.session.user_agent or "")) == (64, 512)
    assert sessions.by_id(made.session.session_id, NOW) == made.session


@pytest.mark.slow
def test_of_processes_that_show_one_refresh_token_at_most_one_is_served(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    made = opened(sessions)
    base = identity_store.config.base_path
    answers = together("refresh", [[base, made.refresh_token or ""]] * 5)
    told = Counter(answer.get("error", "served") for answer in answers)
    # One renews it, the next is a replay that ends the session, and the others find none.
    assert told == {"served": 1, "token_reuse": 1, "token_invalid": 3}
    assert sessions.list("u", NOW) == []


def test_sessions_from_before_there_was_renewal_are_understood(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    token = "t"
    identity_store.append(
        "sessions",
        [{"session_id": "s", "user_id": "u", "token_hash": hashlib.sha256(b"t").hexdigest(),
          "expires_at": "2026-03-02T00:00:00+00:00", "created_at": "2026-03-01T00:00:00Z", "ip_address": None,
          "user_agent": None}],
    )  # fmt: skip
    found = sessions.by_token(token, NOW)
    assert found is not None
    assert found.expires_at == datetime(2026, 3, 2, tzinfo=UTC)


def test_a_session_that_cannot_be_read_counts_for_nothing_and_harms_no_other(
    identity_store: DeltaStore, sessions: Sessions
) -> None:
    made = opened(sessions)
    (row,) = identity_store.scan("sessions").to_pylist()
    identity_store.append(
        "sessions", [{**row, "session_id": "bad", "token_hash": "t", "expires_at": "tomorrow"}]
    )
    assert sessions.by_id("bad", NOW) is None
    assert sessions.list("u", NOW) == [made.session]
