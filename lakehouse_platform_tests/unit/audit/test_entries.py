from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lakehouse_platform.audit.entries import AuditEntry, Recorded, take, timestamp_text
from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.origin import Door

NOON = datetime(2026, 2, 1, 12, 0, 0, 5, tzinfo=UTC)
FULL = AuditEntry(
    action=ActionType.DATA_EXPORT,
    user_id="user_123",
    details='Exported "1M" rows\nto CSV \x00 é😀',
    resource="orders",
    row_count=1_000_000,
    duration_ms=12.5,
    ip_address="2001:db8::1",
    outcome=Outcome.FAILED,
    door=Door.HTTP,
    request_id="r-1",
)


def test_the_seeds_entry_can_be_written() -> None:
    entry = AuditEntry(
        action=ActionType.DATA_EXPORT,
        user_id="user_123",
        details="Exported 1M rows to CSV",
        row_count=1_000_000,
    )
    assert entry.outcome is Outcome.DONE


@pytest.mark.parametrize("entry", [FULL, AuditEntry(action=ActionType.LOGIN, user_id="u")])
def test_the_journals_bytes_give_the_entry_back(entry: AuditEntry) -> None:
    recorded = take(entry, lambda: NOON)
    assert Recorded.from_bytes(recorded.to_bytes()) == recorded


def test_a_taken_entry_has_its_time_in_utc_with_microseconds_and_its_day() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=13)))
    recorded = take(FULL, lambda: east)
    assert (recorded.timestamp, recorded.day) == ("2026-02-01T12:00:00.000005Z", "2026-02-01")


def test_a_whole_second_is_written_as_long_as_any_other() -> None:
    assert timestamp_text(NOON.replace(microsecond=0)) == "2026-02-01T12:00:00.000000Z"


def test_ids_and_salts_differ_each_time() -> None:
    taken = [take(FULL) for _ in range(100)]
    assert len({one.audit_id for one in taken}) == len({one.salt for one in taken}) == 100
    assert {len(one.salt) for one in taken} == {32}


@pytest.mark.parametrize(
    ("name", "most"),
    [("user_id", 128), ("details", 4096), ("resource", 512), ("ip_address", 64), ("request_id", 128)],
)
def test_a_text_may_be_as_long_as_is_kept_and_no_longer(name: str, most: int) -> None:
    given: dict[str, Any] = {"action": ActionType.LOGIN, "user_id": "u"}
    AuditEntry(**{**given, name: "é" * most})
    with pytest.raises(InvalidArgumentError, match=f"{name} has {most + 1} characters: at most {most}"):
        AuditEntry(**{**given, name: "é" * (most + 1)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_id", ""),
        ("user_id", None),
        ("user_id", 7),
        ("details", b"bytes"),
        ("details", "half \ud83d"),
        ("row_count", -1),
        ("row_count", 2**63),
        ("row_count", 1.0),
        ("row_count", True),
        ("duration_ms", -0.1),
        ("duration_ms", float("nan")),
        ("duration_ms", float("inf")),
        ("duration_ms", True),
        ("action", "login"),
        ("outcome", "done"),
        ("door", "http"),
    ],
)
def test_what_no_entry_can_hold_is_refused_by_name(name: str, value: object) -> None:
    given: dict[str, Any] = {"action": ActionType.LOGIN, "user_id": "u", name: value}
    with pytest.raises(InvalidArgumentError, match=name):
        AuditEntry(**given)
