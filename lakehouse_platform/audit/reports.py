"""Reports on the audit log and the user actions: what a user did, what is billed, what happened to a table.

Values from callers become text of conditions only through `store.predicates.literal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_platform.audit.periods import Moment, Period
from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.store.predicates import literal
from lakehouse_platform.store.table import Table

# A page of a report is shown to a person or sent as one answer.
DEFAULT_LIMIT, _MOST = 100, 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One entry of the audit log, as reports show it; an erased one has an empty user id.

    Attributes:
        sequence: Its place in the chain.
        audit_id: Its id.
        timestamp: When it happened: RFC 3339, UTC.
        user_id: Who did it.
        action: What was done.
        outcome: How it ended.
        details: Description for people.
        resource: What was acted on.
        row_count: Rows read or written.
        ip_address: Where the request came from.
        door: The front end it came through.
        request_id: The request it belongs to.
    """

    sequence: int
    audit_id: str
    timestamp: str
    user_id: str
    action: str
    outcome: str
    details: str | None
    resource: str | None
    row_count: int | None
    ip_address: str | None
    door: str
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries, and how to go on.

    Attributes:
        entries: The entries, newest first.
        next_page: Hand this to the next call; None if these were the last.
    """

    entries: tuple[AuditRecord, ...]
    next_page: str | None


@dataclass(frozen=True, slots=True)
class BillingSummary:
    """What a user is billed for in a period.

    Attributes:
        user_id: The user.
        period_start: First UTC day, `YYYY-MM-DD`.
        period_end: Last UTC day.
        total_actions: How many billable actions.
        total_rows: How many rows they read or wrote.
        actions_by_type: How many of each kind that occurred.
    """

    user_id: str
    period_start: str
    period_end: str
    total_actions: int
    total_rows: int
    actions_by_type: dict[str, int]


_COLUMNS = tuple(field.name for field in fields(AuditRecord))


def activity(
    table: Table,
    user_id: str,
    since: Moment | None = None,
    until: Moment | None = None,
    limit: int = DEFAULT_LIMIT,
    page: str | None = None,
) -> Page:
    """Return what a user did, newest first.

    Args:
        table: The audit log.
        user_id: Who.
        since: First instant or UTC day; None for no beginning.
        until: Last instant or UTC day; None for no end.
        limit: The most entries to return.
        page: `next_page` of the page before; None for the first.

    Raises:
        InvalidTimestampError, InvalidArgumentError: A time, the limit or the page is none.
    """
    conditions = [f"user_id = {_text(user_id)}", *Period.between(since, until).conditions()]
    if page is not None:
        conditions.append(f"sequence < {_number(_page(page))}")
    found = _first(table, conditions, _limit(limit) + 1, "descending")
    entries = tuple(map(_record, found[:limit]))
    return Page(entries, str(entries[-1].sequence) if len(found) > limit else None)


def search(
    table: Table,
    *,
    action: ActionType | None = None,
    user_id: str | None = None,
    outcome: Outcome | None = None,
    resource: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    limit: int = DEFAULT_LIMIT,
    after: int = 0,
) -> list[AuditRecord]:
    """Return the entries that fit, in the order in which they were chained.

    Args:
        table: The audit log.
        action: Only this kind of action.
        user_id: Only of this user.
        outcome: Only those that ended so.
        resource: Only on this table or object.
        since: First instant or UTC day.
        until: Last instant or UTC day.
        limit: The most entries to return.
        after: Only entries after this sequence number: the last one of the call before.

    Raises:
        InvalidTimestampError, InvalidArgumentError: A time, the limit or a value is none.
    """
    wanted = {"action": action, "user_id": user_id, "outcome": outcome, "resource": resource}
    conditions = [f"{name} = {_text(value)}" for name, value in wanted.items() if value is not None]
    conditions += [f"sequence > {_number(after)}", *Period.between(since, until).conditions()]
    return list(map(_record, _first(table, conditions, _limit(limit), "ascending")))


def billing_summary(table: Table, user_id: str, start: str, end: str) -> BillingSummary:
    """Return what a user is billed for.

    Args:
        table: The user actions.
        user_id: Who.
        start: First UTC day, `YYYY-MM-DD`.
        end: Last UTC day; it belongs to the period.

    Raises:
        InvalidTimestampError: A day is not written like 2026-02-01, or there is no such day.
        InvalidArgumentError: The end lies before the start.
    """
    conditions = [f"user_id = {_text(user_id)}", *Period.of_days(start, end).conditions()]
    counts: dict[str, int] = {}
    rows = 0
    for batch in table.scan(["action", "row_count"], " AND ".join(conditions)).reader():
        rows += pc.call_function("sum", [batch.column("row_count")]).as_py() or 0
        for item in pc.call_function("value_counts", [batch.column("action")]).to_pylist():
            counts[item["values"]] = counts.get(item["values"], 0) + item["counts"]
    return BillingSummary(
        user_id, str(start), str(end), sum(counts.values()), rows, dict(sorted(counts.items()))
    )


def _first(table: Table, conditions: Iterable[str], most: int, order: str) -> list[dict[str, Any]]:
    """Return the first rows in an order, holding no more than those and a batch in memory."""
    first: pa.Table | None = None
    for batch in table.scan(_COLUMNS, " AND ".join(conditions)).reader():
        rows = pa.Table.from_batches([batch])
        joined = rows if first is None else pa.concat_tables([first, rows])
        first = joined.sort_by([("sequence", order)]).slice(0, most)
    return first.to_pylist() if first is not None else []


def _record(row: Mapping[str, Any]) -> AuditRecord:
    return AuditRecord(**row)


def _limit(limit: int) -> int:
    if type(limit) is not int or not 1 <= limit <= _MOST:
        raise InvalidArgumentError(
            f"The limit is {limit!r}: give a whole number from 1 to {_MOST}, and go on with the next page.",
            limit=limit,
        )
    return limit


def _page(page: str) -> int:
    # An int() would take "１" and "1_0" too.
    if page.isascii() and page.isdigit() and len(page) < 20:
        return int(page)
    raise InvalidArgumentError("There is no such page: hand on `next_page` of the page before unchanged.")


def _number(value: int) -> str:
    if type(value) is not int or not 0 <= value < 2**63:
        raise InvalidArgumentError(f"{value!r} is no sequence number: give a whole number from 0.")
    return literal(value, pa.int64())


def _text(value: object) -> str:
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidArgumentError(f"{value!r} cannot be looked for: give a text.")
    return literal(str(value), pa.string())
