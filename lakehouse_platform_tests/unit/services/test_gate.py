"""The gate: authorise, count, act, audit; what is sensitive is not done if it cannot be written down first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.errors import (
    AuditWriteFailedError,
    InvalidArgumentError,
    InvalidNameError,
    PermissionDeniedError,
    RateLimitedError,
)
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.identity.limits import Limits
from lakehouse_platform.identity.permissions import Permission, Right
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.private_files import private_directory
from lakehouse_platform.services.gate import Gate, Note
from lakehouse_platform.services.preparing import prepare
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.unit.services.conftest import Clock

FREE = Actor(id="u1", kind=ActorKind.USER, role=Role.USER, tier=SubscriptionTier.FREE, ip_address="192.0.2.7")


@dataclass
class Parts:
    gate: Gate
    audit: AuditLog
    grants: Grants
    limits: Limits

    def rows(self) -> list[dict[str, Any]]:
        self.audit.flush()
        return sorted(self.audit.store.scan("audit_log").to_pylist(), key=lambda row: row["sequence"])

    def written(self) -> list[tuple[str, str]]:
        return [(row["action"], row["outcome"]) for row in self.rows()]


@pytest.fixture
def parts(store: DeltaStore, tmp_path: Path, clock: Clock) -> Iterator[Parts]:
    prepare(store)
    state = private_directory(tmp_path / "gate")
    with AuditLog(store, state / "audit") as audit, Limits(state) as limits:
        grants = Grants(store)
        origin = Origin(door=Door.HTTP, run_id="request-1")
        timer = iter(range(1_000_000)).__next__
        gate = Gate(audit, grants, limits, origin=origin, clock=clock, timer=timer)
        yield Parts(gate, audit, grants, limits)


class Act:
    """An operation that counts how often it is done."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.done = 0
        self._error = error

    def __call__(self, note: Note) -> str:
        self.done += 1
        note.row_count = 7
        if self._error is not None:
            raise self._error
        return "result"


def test_an_operation_is_done_and_written_down_with_its_rows(parts: Parts) -> None:
    parts.grants.grant(FREE.id, "rides", Right.READ, by="owner")
    assert parts.gate.run(FREE, Permission.READ_TABLE, "rides", Act(), details="all rows") == "result"
    (row,) = parts.rows()
    assert (row["action"], row["outcome"], row["resource"], row["row_count"]) == (
        "data_read",
        "done",
        "rides",
        7,
    )
    assert (row["user_id"], row["ip_address"], row["details"]) == ("u1", "192.0.2.7", "all rows")
    assert (row["door"], row["request_id"]) == ("http", "request-1")
    (billed,) = parts.audit.store.scan("user_actions").to_pylist()
    assert (billed["user_id"], billed["row_count"], billed["duration_ms"]) == ("u1", 7, 1000.0)


@pytest.mark.parametrize("actor", [FREE, ANONYMOUS], ids=lambda actor: actor.kind)
def test_who_may_not_is_refused_before_anything_is_done_or_counted(parts: Parts, actor: Actor) -> None:
    act = Act()
    with pytest.raises(PermissionDeniedError, match="rides"):
        parts.gate.run(actor, Permission.READ_TABLE, "rides", act)
    assert act.done == 0
    (row,) = parts.rows()
    assert (row["action"], row["outcome"], row["details"]) == ("permission_denied", "denied", "read_table")
    assert parts.audit.store.scan("user_actions").to_pylist() == []


def test_a_right_on_a_table_counts_for_that_table_only(parts: Parts) -> None:
    parts.grants.grant(FREE.id, "rides", Right.WRITE, by="owner")
    parts.gate.run(FREE, Permission.WRITE_TABLE, "rides", Act())
    for permission, table in [(Permission.WRITE_TABLE, "towns"), (Permission.MAINTAIN_TABLE, "rides"),
                              (Permission.READ_TABLE, "users"), (Permission.READ_TABLE, None)]:  # fmt: skip
        with pytest.raises(PermissionDeniedError):
            parts.gate.run(FREE, permission, table, Act())


def test_an_operation_that_fails_is_written_down_with_its_code_and_not_its_message(parts: Parts) -> None:
    error = InvalidArgumentError("the row of ada@example.com is wrong")
    with pytest.raises(InvalidArgumentError):
        parts.gate.run(OWNER, Permission.WRITE_TABLE, "rides", Act(error), details="two rows")
    (row,) = parts.rows()
    assert (row["action"], row["outcome"]) == ("data_write", "failed")
    assert row["details"] == "two rows; invalid_argument"
    assert parts.audit.store.scan("user_actions").to_pylist() == []


@pytest.mark.parametrize(
    "error", [KeyError("ada"), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
def test_whatever_ends_an_operation_is_written_down_and_handed_on(parts: Parts, error: BaseException) -> None:
    with pytest.raises(type(error)):
        parts.gate.run(OWNER, Permission.WRITE_TABLE, "rides", Act(error))
    assert [(row["outcome"], row["details"]) for row in parts.rows()] == [("failed", type(error).__name__)]


def test_a_denial_from_inside_an_operation_is_written_down_as_one(parts: Parts) -> None:
    with pytest.raises(PermissionDeniedError):
        parts.gate.run(OWNER, Permission.CHANGE_TIER, None, Act(PermissionDeniedError("no")))
    assert parts.written() == [("tier_change", "started"), ("tier_change", "denied")]


def test_what_is_sensitive_is_written_down_before_it_is_done(parts: Parts) -> None:
    seen: list[tuple[str, str]] = []
    parts.gate.run(OWNER, Permission.EXPORT_TABLE, "rides", lambda _: seen.extend(parts.written()))
    assert seen == [("data_export", "started")]
    assert parts.written() == [("data_export", "started"), ("data_export", "done")]
    # What was only intended is not billed.
    assert len(parts.audit.store.scan("user_actions").to_pylist()) == 1


def test_what_is_sensitive_is_not_done_if_it_cannot_be_written_down(parts: Parts) -> None:
    parts.audit.close()
    act = Act()
    with pytest.raises(AuditWriteFailedError):
        parts.gate.run(OWNER, Permission.DROP_TABLE, "rides", act)
    assert act.done == 0


def test_no_operation_succeeds_that_is_not_written_down(parts: Parts) -> None:
    parts.audit.close()
    with pytest.raises(AuditWriteFailedError):
        parts.gate.run(OWNER, Permission.READ_TABLE, "rides", Act())


def test_over_the_limit_nothing_is_done_and_the_audit_log_is_not_flooded(parts: Parts, clock: Clock) -> None:
    parts.grants.grant(FREE.id, "rides", Right.READ, by="owner")
    act = Act()
    for _ in range(10):
        parts.gate.run(FREE, Permission.READ_TABLE, "rides", act)
    for _ in range(25):
        with pytest.raises(RateLimitedError):
            parts.gate.run(FREE, Permission.READ_TABLE, "rides", act)
    assert act.done == 10
    refused = [row["details"] for row in parts.rows() if row["action"] == "rate_limited"]
    assert refused == ["read_table: rate_limited"] * 10
    clock.go_on(minutes=1)
    for _ in range(10):
        parts.gate.run(FREE, Permission.READ_TABLE, "rides", act)
    with pytest.raises(RateLimitedError):
        parts.gate.run(FREE, Permission.READ_TABLE, "rides", act)
    refused = [row["details"] for row in parts.rows() if row["action"] == "rate_limited"]
    assert refused[10:] == ["read_table: rate_limited, 15 more left out"]


def test_who_is_denied_uses_nothing_up(parts: Parts, clock: Clock) -> None:
    for _ in range(12):
        with pytest.raises(PermissionDeniedError):
            parts.gate.run(FREE, Permission.READ_TABLE, "rides", Act())
    assert parts.limits.usage(FREE.id, SubscriptionTier.FREE, clock.now).minute == 0


def test_the_owner_and_who_has_no_tier_have_no_limit(parts: Parts) -> None:
    for _ in range(15):
        parts.gate.run(OWNER, Permission.READ_TABLE, "rides", Act())


@pytest.mark.parametrize("resource", ["x" * 100_000, "ada@example.com", "", "../users"])
def test_what_is_no_name_of_a_table_never_comes_into_the_audit_log(parts: Parts, resource: str) -> None:
    with pytest.raises(InvalidNameError):
        parts.gate.run(FREE, Permission.READ_TABLE, resource, Act())
    parts.gate.run(OWNER, Permission.READ_TABLE, None, Act())
    assert len(parts.rows()) == 1
