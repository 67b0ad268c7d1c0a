"""Bills over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.support.http_server import LiveHttp


def test_a_user_sees_the_bill_and_nobody_else_but_administrators(live: LiveHttp) -> None:
    admin, ada, bob = live.person("root", Role.ADMIN), live.person("ada"), live.person("bob")
    body = {"action": "data_read", "user_id": ada.user_id, "row_count": 12}
    live.post("/v1/audit/entries", admin, json=body)
    today = datetime.now(UTC).date().isoformat()
    params = {"start": "2020-01-01", "end": today}
    bill = live.get(f"/v1/billing/{ada.user_id}", ada, params=params).json()
    assert bill == {
        "user_id": ada.user_id, "period_start": "2020-01-01", "period_end": today, "total_actions": 1, "total_rows": 12,
        "actions_by_type": {"data_read": 1},
    }  # fmt: skip
    assert live.get(f"/v1/billing/{ada.user_id}", admin, params=params).json() == bill
    assert live.get(f"/v1/billing/{ada.user_id}", bob, params=params).status_code == 403


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        ("2026-02-30", "2026-03-01", "invalid_timestamp"),
        ("2026-03-02", "2026-03-01", "invalid_argument"),
        ("yesterday", "2026-03-01", "invalid_timestamp"),
    ],
)
def test_a_period_that_is_none_is_refused(live: LiveHttp, start: str, end: str, code: str) -> None:
    admin = live.person("root", Role.ADMIN)
    refused = live.get("/v1/billing/x", admin, params={"start": start, "end": end})
    assert (refused.status_code, refused.json()["code"]) == (422, code)
