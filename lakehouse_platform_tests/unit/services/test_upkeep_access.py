from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from lakehouse_platform.errors import AuditWriteFailedError, PermissionDeniedError
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import Actor, ActorKind, Role
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.upkeep_access import gated_upkeep, maintained
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.policy import Task
from lakehouse_platform_tests.support.people import PASSWORD, user
from lakehouse_platform_tests.unit.upkeep.builders import scattered, with_sessions

STRANGER = Actor(id="u", kind=ActorKind.USER, role=Role.USER)


@pytest.fixture
def lakehouse(store: DeltaStore) -> Iterator[Lakehouse]:
    with Lakehouse(store.through(Origin(door=Door.DAGSTER, run_id="run 1"))) as opened:
        yield opened


def entries(lakehouse: Lakehouse) -> list[tuple[str | None, str | None, str | None, str | None, str | None]]:
    found = lakehouse.accounts.audit.search()
    return [(one.action, one.resource, one.details, one.outcome, one.request_id) for one in found]


def test_each_changed_table_has_an_entry_with_the_run(lakehouse: Lakehouse) -> None:
    scattered(lakehouse.store, "many", files=30)
    scattered(lakehouse.store, "few", files=1)
    report = gated_upkeep(lakehouse).run(Task.COMPACT)

    assert [outcome.table for outcome in report.touched] == ["many"]
    assert entries(lakehouse) == [("maintenance", "many", "compact", "done", "run 1")]


def test_who_may_not_changes_nothing_and_is_written_down(lakehouse: Lakehouse) -> None:
    scattered(lakehouse.store, "many", files=30)
    report = gated_upkeep(lakehouse, actor=STRANGER).run(Task.COMPACT)

    assert [type(outcome.error) for outcome in report.failures] == [PermissionDeniedError]
    assert lakehouse.store.table("many").version() == 30
    (denied,) = lakehouse.accounts.audit.search(action=ActionType.PERMISSION_DENIED)
    assert (denied.user_id, denied.resource) == ("u", "many")


def test_a_look_opens_no_accounts(lakehouse: Lakehouse) -> None:
    scattered(lakehouse.store, "many", files=30)
    gated_upkeep(lakehouse).run(Task.COMPACT, dry_run=True)

    assert lakehouse.store.tables() == ["many"]


def test_sessions_past_their_end_are_cleaned_up(lakehouse: Lakehouse) -> None:
    with_sessions(lakehouse.store, ["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
    report = gated_upkeep(lakehouse).run(Task.SESSION_CLEANUP)

    assert [outcome.result for outcome in report.touched] == [1]
    kept = lakehouse.store.scan("sessions", ["session_id"]).to_pylist()
    assert kept == [{"session_id": "s1"}]
    assert entries(lakehouse) == [("maintenance", "sessions", "session_cleanup", "done", "run 1")]


def test_sign_ins_that_nobody_ended_leave_their_time_when_they_are_cleaned_up(lakehouse: Lakehouse) -> None:
    config, store = lakehouse.config, lakehouse.store
    long_ago = datetime(2020, 5, 1, tzinfo=UTC)
    with AuthActor(store, config, clock=lambda: long_ago) as accounts:
        people = [user(accounts, name) for name in ("ada", "bob")]
        for person in (*people, people[0]):
            accounts.login(person.username, PASSWORD)
    before = store.table("users").version()
    (outcome,) = gated_upkeep(lakehouse).run(Task.SESSION_CLEANUP).touched
    assert (outcome.result, store.table("users").version() - before) == (3, 1)
    assert [lakehouse.accounts.user(one.user_id).last_login_at for one in people] == [long_ago] * 2


def test_what_fails_is_written_down_as_failed(lakehouse: Lakehouse) -> None:
    def fail() -> None:
        raise AuditWriteFailedError("as if")

    with pytest.raises(AuditWriteFailedError):
        maintained(lakehouse, "orders", "a look", fail)
    assert [one[3] for one in entries(lakehouse)] == ["failed"]
