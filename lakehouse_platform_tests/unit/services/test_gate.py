"""The gate: authorise, count, act, audit; what is sensitive is not done if it cannot be written down first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    StorageIoError,
    TokenInvalidError,
    TokenReuseError,
)
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.identity.limits import Limits
from lakehouse_platform.identity.permissions import Permission, Right
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.rights import READ_EVERY_TABLE
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


def denials(parts: Parts) -> list[tuple[str, str]]:
    return [(row["user_id"], row["details"]) for row in parts.rows() if row["outcome"] == "denied"]


def test_who_knocks_where_nobody_is_let_in_does_not_flood_the_audit_log(parts: Parts, clock: Clock) -> None:
    stranger = replace(ANONYMOUS, ip_address="192.0.2.7")
    for number in range(25):
        with pytest.raises(PermissionDeniedError):
            parts.gate.run(stranger, Permission.READ_TABLE, f"rides{number}", Act())
    assert denials(parts) == [("anonymous", "read_table")] * 10
    clock.go_on(minutes=1)
    with pytest.raises(PermissionDeniedError):
        parts.gate.run(stranger, Permission.READ_TABLE, "rides", Act())
    assert denials(parts)[10:] == [("anonymous", "read_table, 15 more left out")]


def test_a_flood_hides_nobody_elses_denials_and_none_of_another_kind(parts: Parts) -> None:
    def knock(actor: Actor, permission: Permission) -> None:
        with pytest.raises(PermissionDeniedError):
            parts.gate.run(actor, permission, "rides", Act())

    stranger = replace(ANONYMOUS, ip_address="2001:db8::1")
    for number in range(12):
        # Whoever has one address of a network has them all.
        knock(replace(stranger, ip_address=f"2001:db8::{number:x}"), Permission.READ_TABLE)
    for actor in (replace(stranger, ip_address="2001:db8:1::1"), replace(FREE, ip_address="2001:db8::1")):
        knock(actor, Permission.READ_TABLE)
    knock(stranger, Permission.DROP_TABLE)
    assert denials(parts)[10:] == [
        ("anonymous", "read_table"),
        ("u1", "read_table"),
        ("anonymous", "drop_table"),
    ]


@pytest.mark.parametrize("permission", [Permission.REFRESH, Permission.LOGOUT])
def test_tokens_that_are_refused_do_not_flood_the_audit_log(
    parts: Parts, clock: Clock, permission: Permission
) -> None:
    def refuse(user_id: str | None, error: Exception) -> None:
        def act(note: Note) -> None:
            note.user_id = user_id
            raise error

        with pytest.raises(type(error)):
            parts.gate.run(replace(ANONYMOUS, ip_address="192.0.2.7"), permission, None, act)

    for _ in range(25):
        refuse(None, TokenInvalidError("no"))
    assert [row["details"] for row in parts.rows()] == ["token_invalid"] * 10
    # That somebody's token was used twice is seen in the midst of it.
    refuse("u1", TokenReuseError("no"))
    # So is what is no matter of tokens.
    refuse(None, StorageIoError("no"))
    clock.go_on(minutes=1)
    refuse(None, TokenInvalidError("no"))
    assert [(row["user_id"], row["details"]) for row in parts.rows()[10:]] == [
        ("u1", "token_reuse"),
        ("anonymous", "storage_io"),
        ("anonymous", "token_invalid, 15 more left out"),
    ]


def test_the_owner_and_who_has_no_tier_have_no_limit(parts: Parts) -> None:
    for _ in range(15):
        parts.gate.run(OWNER, Permission.READ_TABLE, "rides", Act())


@pytest.mark.parametrize("resource", ["x" * 100_000, "ada@example.com", "", "../users"])
def test_what_is_no_name_of_a_table_never_comes_into_the_audit_log(parts: Parts, resource: str) -> None:
    with pytest.raises(InvalidNameError):
        parts.gate.run(FREE, Permission.READ_TABLE, resource, Act())
    parts.gate.run(OWNER, Permission.READ_TABLE, None, Act())
    assert len(parts.rows()) == 1


def test_an_operation_that_ends_later_is_written_down_when_it_does(parts: Parts) -> None:
    passage = parts.gate.enter(OWNER, Permission.READ_TABLE, "rides", details="rows")
    assert parts.written() == []
    passage.started()
    passage.started()
    passage.note.row_count = 3
    passage.done()
    assert parts.written() == [("data_read", "started"), ("data_read", "done")]
    passage.failed(InvalidArgumentError("no"))
    assert parts.rows()[-1]["details"] == "rows; invalid_argument"


def test_tables_that_only_the_operation_finds_out_are_asked_for_one_by_one(parts: Parts) -> None:
    parts.grants.grant(FREE.id, "rides", Right.READ, by="owner")
    with pytest.raises(PermissionDeniedError):
        parts.gate.enter(ANONYMOUS, Permission.RUN_SQL, None, asks_by_table=True)
    passage = parts.gate.enter(FREE, Permission.RUN_SQL, None, asks_by_table=True)
    passage.require("rides")
    with pytest.raises(PermissionDeniedError) as caught:
        passage.require("towns")
    passage.failed(caught.value)
    last = parts.rows()[-1]
    assert (last["action"], last["outcome"], last["resource"]) == ("permission_denied", "denied", "towns")


def test_several_tables_have_an_entry_each(parts: Parts) -> None:
    parts.gate.enter(OWNER, Permission.RUN_SQL, None, asks_by_table=True).started(["rides", "towns"])
    assert [(row["resource"], row["outcome"]) for row in parts.rows()] == [
        ("rides", "started"),
        ("towns", "started"),
    ]


def test_a_further_table_of_a_running_operation_needs_the_right_too(parts: Parts) -> None:
    parts.grants.grant(FREE.id, "rides", Right.READ, by="owner")

    def act(note: Note) -> None:
        parts.gate.require(FREE, Permission.READ_TABLE, "rides", note)
        parts.gate.require(FREE, Permission.READ_TABLE, "towns", note)

    with pytest.raises(PermissionDeniedError, match="towns"):
        parts.gate.run(FREE, Permission.READ_TABLE, "rides", act)
    last = parts.rows()[-1]
    assert (last["action"], last["outcome"], last["resource"]) == ("permission_denied", "denied", "towns")


def test_whether_somebody_may_is_told_without_a_trace(parts: Parts) -> None:
    assert parts.gate.may(OWNER, Permission.READ_TABLE, "rides")
    assert not parts.gate.may(FREE, Permission.READ_TABLE, "rides")
    assert parts.written() == []


def test_a_request_is_named_by_its_actor_or_else_by_the_origin(parts: Parts) -> None:
    other = parts.gate.through(Origin(door=Door.NFS, run_id="request-2"))
    other.run(OWNER, Permission.READ_TABLE, "rides", Act())
    other.run(replace(OWNER, request_id="request-3"), Permission.READ_TABLE, "rides", Act())
    parts.gate.run(OWNER, Permission.READ_TABLE, "rides", Act())
    assert [(row["door"], row["request_id"]) for row in parts.rows()] == [
        ("nfs", "request-2"),
        ("nfs", "request-3"),
        ("http", "request-1"),
    ]


def test_what_an_api_key_did_or_was_denied_names_the_key(parts: Parts) -> None:
    key = replace(FREE, kind=ActorKind.SERVICE, scopes=READ_EVERY_TABLE, key_id="0123456789abcdef")
    parts.grants.grant(FREE.id, "rides", Right.WRITE, by="owner")
    parts.gate.run(key, Permission.READ_TABLE, "rides", Act(), details="all rows")
    with pytest.raises(PermissionDeniedError):
        parts.gate.run(key, Permission.WRITE_TABLE, "rides", Act())
    with pytest.raises(InvalidArgumentError):
        parts.gate.run(key, Permission.READ_TABLE, "rides", Act(InvalidArgumentError("no")))
    parts.gate.run(FREE, Permission.READ_TABLE, "rides", Act())
    assert [row["details"] for row in parts.rows()] == [
        "all rows; key 0123456789abcdef",
        "write_table; key 0123456789abcdef",
        "invalid_argument; key 0123456789abcdef",
        None,
    ]


@pytest.mark.parametrize("address", ["1" * 65, "\ud800"], ids=["too long", "half a character"])
def test_what_no_entry_can_hold_of_its_actor_is_refused_before_anything_is_done(
    parts: Parts, address: str
) -> None:
    act = Act()
    with pytest.raises(InvalidArgumentError, match="ip_address"):
        parts.gate.run(replace(OWNER, ip_address=address), Permission.WRITE_TABLE, "rides", act)
    assert act.done == 0


def test_what_an_operation_tells_too_much_of_is_cut_and_not_its_outcome(parts: Parts) -> None:
    key = replace(FREE, kind=ActorKind.SERVICE, scopes=READ_EVERY_TABLE, key_id="k1")

    def act(note: Note) -> None:
        note.details = "x" * 10_000
        raise StorageIoError("The disk is full.")

    with pytest.raises(StorageIoError):
        parts.gate.run(key, Permission.SEE_OWN_ACCOUNT, None, act)
    (row,) = parts.rows()
    assert len(row["details"]) == 4096
    assert row["details"].startswith("xxx")
    assert row["details"].endswith("x…; storage_io; key k1")
