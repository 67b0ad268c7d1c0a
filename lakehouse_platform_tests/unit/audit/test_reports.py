from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.periods import Period
from lakehouse_platform.audit.reports import BillingSummary, activity, billing_summary, search
from lakehouse_platform.errors import InvalidArgumentError, InvalidTimestampError
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

START = datetime(2026, 2, 1, 0, 0, tzinfo=UTC)
TRICKY = "o'brien\" -- OR 1=1"
ANY_USER = "x' OR '1'='1"


class Clock:
    """A clock that goes six hours on with each look."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> datetime:
        self.looks += 1
        return START + timedelta(hours=6) * (self.looks - 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DeltaStore:
    """A lakehouse with twenty-four entries: one every six hours, of users in turn, in several commits."""
    place: Path = tmp_path_factory.mktemp("reports")
    store = DeltaStore(place / "lake")
    kinds = (ActionType.DATA_READ, ActionType.DATA_EXPORT, ActionType.LOGIN)
    with AuditLog(store, place / "state", now=Clock()) as log:
        for number in range(24):
            log.record(
                AuditEntry(
                    action=kinds[number % 3],
                    user_id=(TRICKY, "anna")[number % 2],
                    row_count=number if number % 3 < 2 else None,
                    resource=("orders", "o'rders")[number % 2],
                    outcome=Outcome.DENIED if number == 5 else Outcome.DONE,
                )
            )
            if number % 5 == 0:
                log.flush()
    return store


@pytest.fixture
def table(store: DeltaStore) -> Table:
    return store.table("audit_log")


def numbers(entries: object) -> list[int]:
    return [entry.sequence for entry in entries]  # type: ignore[attr-defined]


def test_activity_is_the_users_own_newest_first(table: Table) -> None:
    found = activity(table, "anna")
    assert numbers(found.entries) == list(range(24, 0, -2))
    assert found.next_page is None


def test_pages_follow_each_other_without_gap_or_overlap(table: Table) -> None:
    seen: list[int] = []
    page = None
    for _ in range(4):
        found = activity(table, TRICKY, limit=3, page=page)
        seen += numbers(found.entries)
        page = found.next_page
    assert seen == list(range(23, 0, -2))
    assert page is None


def test_activity_can_be_bounded_by_days_and_instants(table: Table) -> None:
    assert numbers(activity(table, "anna", "2026-02-02", "2026-02-02").entries) == [8, 6]
    assert numbers(activity(table, "anna", "2026-02-02T06:00:00Z", "2026-02-02T18:00:00Z").entries) == [8, 6]
    assert numbers(activity(table, "anna", "2026-02-02T06:00:01Z", "2026-02-02T17:59:59Z").entries) == []


def test_an_entry_is_told_as_it_was_recorded(table: Table) -> None:
    entry = activity(table, TRICKY).entries[-1]
    assert (entry.user_id, entry.action, entry.outcome, entry.resource, entry.row_count, entry.door) == (
        TRICKY, "data_read", "done", "orders", 0, "python",
    )  # fmt: skip
    assert entry.timestamp == "2026-02-01T00:00:00.000000Z"


@pytest.mark.parametrize("user", [ANY_USER, "%", "", "anna'", "anna\\", "ANNA", "NULL"])
def test_no_user_id_reaches_anothers_entries(store: DeltaStore, table: Table, user: str) -> None:
    assert activity(table, user).entries == ()
    assert search(table, user_id=user) == []
    assert billing_summary(store.table("user_actions"), user, "2026-01-01", "2026-12-31").total_actions == 0


def test_a_billing_summary_counts_billable_actions_and_their_rows(store: DeltaStore) -> None:
    summary = billing_summary(store.table("user_actions"), TRICKY, "2026-02-01", "2026-02-28")
    assert summary == BillingSummary(
        user_id=TRICKY,
        period_start="2026-02-01",
        period_end="2026-02-28",
        total_actions=8,
        total_rows=sum(number for number in range(0, 24, 2) if number % 3 < 2),
        actions_by_type={"data_export": 4, "data_read": 4},
    )


def test_a_bill_holds_both_its_days_and_no_other(store: DeltaStore) -> None:
    actions = store.table("user_actions")
    days = [f"2026-02-{day:02}" for day in range(1, 7)]
    single = [billing_summary(actions, "anna", day, day).total_actions for day in days]
    assert sum(single) == billing_summary(actions, "anna", days[0], days[-1]).total_actions == 8
    assert billing_summary(actions, "anna", days[1], days[2]).total_actions == single[1] + single[2]
    assert billing_summary(actions, "anna", "2025-01-01", "2026-01-31").actions_by_type == {}


@pytest.mark.parametrize(
    ("start", "end"), [("2026-02-30", "2026-03-01"), ("2026-02-01", "'; DROP"), ("", "")]
)
def test_a_bill_for_days_that_are_none_is_refused(store: DeltaStore, start: str, end: str) -> None:
    with pytest.raises(InvalidTimestampError):
        billing_summary(store.table("user_actions"), "anna", start, end)


def test_a_bill_tells_its_days_as_texts(store: DeltaStore) -> None:
    first, last = date(2026, 2, 1), date(2026, 2, 28)
    summary = billing_summary(store.table("user_actions"), "anna", first, last)  # type: ignore[arg-type]
    assert (summary.period_start, summary.period_end) == ("2026-02-01", "2026-02-28")


def test_a_bill_that_ends_before_it_begins_is_refused(store: DeltaStore) -> None:
    with pytest.raises(InvalidArgumentError):
        billing_summary(store.table("user_actions"), "anna", "2026-02-02", "2026-02-01")


def test_a_search_finds_what_fits_every_condition(table: Table) -> None:
    assert numbers(search(table, action=ActionType.LOGIN)) == [3, 6, 9, 12, 15, 18, 21, 24]
    assert numbers(search(table, outcome=Outcome.DENIED)) == [6]
    assert numbers(search(table, resource="o'rders", since="2026-02-06")) == [22, 24]
    assert numbers(search(table, action=ActionType.LOGIN, user_id="anna", until="2026-02-03")) == [6, 12]


def test_a_search_goes_on_after_the_last_entry_found(table: Table) -> None:
    first = search(table, limit=10)
    assert numbers(first) == list(range(1, 11))
    assert numbers(search(table, limit=100, after=first[-1].sequence)) == list(range(11, 25))


@pytest.mark.parametrize("limit", [0, -1, 10_001, True, 1.5, "1"])
def test_a_limit_that_is_none_is_refused(table: Table, limit: object) -> None:
    with pytest.raises(InvalidArgumentError, match="limit"):
        activity(table, "anna", limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["", "-1", "1 OR 1=1", "１", "1_0", "9" * 30])
def test_a_page_that_was_not_handed_out_is_refused(table: Table, page: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no such page"):
        activity(table, "anna", page=page)


def test_a_search_after_what_is_no_number_is_refused(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="sequence number"):
        search(table, after="0 OR TRUE")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [7, "\ud800"])
def test_a_search_for_what_is_no_text_is_refused(table: Table, value: object) -> None:
    with pytest.raises(InvalidArgumentError, match="give a text"):
        search(table, user_id=value)  # type: ignore[arg-type]


def test_days_outside_the_period_are_left_unread(table: Table) -> None:
    conditions = Period.between("2026-02-06", "2026-02-06").conditions()
    stats = table.skipping(" AND ".join(conditions))
    assert 0 < stats.files_read < stats.total_files
