"""Which account a text means."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.cli.finding import audited_id_of, user_id_of
from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import PermissionDeniedError, UserNotFoundError
from lakehouse_platform_tests.unit.cli.running import PASSWORD, Run, lakehouse_here


@pytest.fixture
def session(workplace: Path, run: Run) -> Session:
    del run
    return Session(base_path=str(workplace / "lakehouse"))


def test_what_looks_like_an_id_is_one_even_if_somebody_has_taken_it_for_a_name(
    session: Session, workplace: Path
) -> None:
    with lakehouse_here(workplace) as lakehouse:
        accounts = {user.username: user.user_id for user in lakehouse.accounts.users().users}
        lakehouse.accounts.register(accounts["alice"], "eve@example.com", PASSWORD)
    assert user_id_of(session.accounts, accounts["alice"]) == accounts["alice"]
    assert user_id_of(session.accounts, "alice") == accounts["alice"]
    session.close()


def test_an_id_that_no_account_has_is_looked_for_in_the_audit_log_as_it_is(session: Session) -> None:
    assert audited_id_of(session.accounts, "user_123") == "user_123"
    with pytest.raises(UserNotFoundError, match="lakehouse users list"):
        user_id_of(session.accounts, "user_123")
    session.close()


def test_a_user_finds_the_own_account_and_no_other(session: Session, run: Run) -> None:
    run("login", "alice", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert user_id_of(session.accounts, "Alice") == session.actor.id
    with pytest.raises(PermissionDeniedError):
        audited_id_of(session.accounts, "bob")
    session.close()
