"""Operations on the audit log as requests, and what their answers mean."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, TypeAlias

from lakehouse_platform.client.decoding import decoded, decoded_list, member
from lakehouse_platform.client.problems import json_of
from lakehouse_platform.client.records import AuditPage, AuditRecord, BillingSummary, Verification
from lakehouse_platform.client.requests import Answer, Call, Reading, Request, query, segment
from lakehouse_platform.errors import InvalidTimestampError
from lakehouse_platform.model.actions import ActionType, Outcome

Moment: TypeAlias = str | date
_AUDIT = "/v1/audit"
# The whole log is read; the server has its own limit.
_VERIFY_PATIENCE = 3600.0


def log(
    action: ActionType, user_id: str | None, details: str | None, row_count: int | None, resource: str | None
) -> Call[str]:
    """Return the call that records an entry."""
    fields = {"user_id": user_id, "details": details, "row_count": row_count, "resource": resource}
    given: dict[str, Any] = {key: value for key, value in fields.items() if value is not None}
    request = Request(method="POST", path=f"{_AUDIT}/entries", fields={"action": action.value, **given})
    return Call(request, lambda answer: str(member(json_of(answer), "audit_id")))


def activity(
    user_id: str, since: Moment | None, until: Moment | None, limit: int, page: str | None
) -> Call[AuditPage]:
    """Return the call for what a user did."""
    asked = query(since=_text(since), until=_text(until), limit=limit, page=page)

    def read(answer: Answer) -> AuditPage:
        found = json_of(answer)
        return decoded(AuditPage, {"entries": member(found, "entries"), "next_page": member(found, "next")})

    return Call(Request(method="GET", path=f"{_AUDIT}/activity/{segment(user_id)}", query=asked), read)


def billing_summary(user_id: str, start: str, end: str) -> Call[BillingSummary]:
    """Return the call for what a user is billed for."""
    request = Request(method="GET", path=f"/v1/billing/{segment(user_id)}", query=query(start=start, end=end))
    return Call(request, lambda answer: decoded(BillingSummary, json_of(answer)))


def search(
    action: ActionType | None,
    user_id: str | None,
    outcome: Outcome | None,
    resource: str | None,
    since: Moment | None,
    until: Moment | None,
    limit: int,
    after: int,
) -> Call[list[AuditRecord]]:
    """Return the call for the entries that fit."""
    asked = _conditions(action, user_id, outcome, resource, since, until) + query(limit=limit, after=after)
    request = Request(method="GET", path=_AUDIT, query=asked)
    return Call(request, lambda answer: decoded_list(AuditRecord, member(json_of(answer), "entries")))


def export(
    action: ActionType | None,
    user_id: str | None,
    outcome: Outcome | None,
    resource: str | None,
    since: Moment | None,
    until: Moment | None,
) -> Call[Any]:
    """Return the call for all entries that fit, as an open answer."""
    asked = _conditions(action, user_id, outcome, resource, since, until)
    request = Request(method="GET", path=f"{_AUDIT}/export", query=asked, reading=Reading.STREAM)
    return Call(request, lambda answer: answer.body)


def verify_audit() -> Call[Verification]:
    """Return the call that checks the whole log."""
    request = Request(method="POST", path=f"{_AUDIT}/verify", patience=_VERIFY_PATIENCE)
    return Call(request, lambda answer: decoded(Verification, json_of(answer)))


def _conditions(
    action: ActionType | None,
    user_id: str | None,
    outcome: Outcome | None,
    resource: str | None,
    since: Moment | None,
    until: Moment | None,
) -> tuple[tuple[str, str], ...]:
    return query(
        action=action.value if action else None,
        user_id=user_id,
        outcome=outcome.value if outcome else None,
        resource=resource,
        since=_text(since),
        until=_text(until),
    )


def _text(moment: Moment | None) -> str | None:
    if isinstance(moment, datetime) and moment.tzinfo is None:
        raise InvalidTimestampError(f"{moment.isoformat()} has no zone: give an aware time, or a day.")
    return moment if moment is None or isinstance(moment, str) else moment.isoformat()
