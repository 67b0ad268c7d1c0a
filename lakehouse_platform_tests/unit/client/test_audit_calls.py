"""Operations on the audit log as requests."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from lakehouse_platform.client import audit_calls as calls
from lakehouse_platform.errors import InvalidTimestampError
from lakehouse_platform.model.actions import ActionType, Outcome


def test_an_entry_says_what_is_known() -> None:
    call = calls.log(ActionType.DATA_EXPORT, None, "Exported", 5, None)
    assert call.request.fields == {"action": "data_export", "details": "Exported", "row_count": 5}
    assert call.request.key is None


def test_days_and_times_are_told_apart() -> None:
    asked = dict(
        calls.activity("u", date(2026, 2, 1), datetime(2026, 2, 2, tzinfo=UTC), 5, None).request.query
    )
    assert asked == {"since": "2026-02-01", "until": "2026-02-02T00:00:00+00:00", "limit": "5"}


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidTimestampError):
        calls.activity("u", datetime(2026, 2, 1), None, 5, None)  # noqa: DTZ001 - meant


def test_conditions_are_asked_for_by_their_values() -> None:
    call = calls.search(ActionType.LOGIN, "u", Outcome.DENIED, "t", None, None, 10, 3)
    assert dict(call.request.query) == {
        "action": "login", "user_id": "u", "outcome": "denied", "resource": "t", "limit": "10", "after": "3",
    }  # fmt: skip


def test_a_bill_is_one_user_s() -> None:
    call = calls.billing_summary("u/1", "2026-02-01", "2026-02-28")
    assert call.request.path == "/v1/billing/u%2F1"
    assert dict(call.request.query) == {"start": "2026-02-01", "end": "2026-02-28"}
