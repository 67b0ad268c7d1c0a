from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from lakehouse_platform.audit.delivery import Delivery, Numbered, is_billed
from lakehouse_platform.audit.entries import AuditEntry, take
from lakehouse_platform.audit.heads import RememberedHead
from lakehouse_platform.audit.verify import verify
from lakehouse_platform.errors import LakehouseError, StorageIoError
from lakehouse_platform.model.actions import BILLABLE, ActionType, Outcome
from lakehouse_platform.private_files import private_directory
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES


@pytest.fixture
def delivery(store: DeltaStore, state: Path) -> Delivery:
    for name in ("audit_log", "user_actions"):
        store.ensure(SYSTEM_TABLES[name])
    return Delivery(store, RememberedHead(private_directory(state)))


def numbered(count: int, action: ActionType = ActionType.DATA_READ) -> list[Numbered]:
    entries = [AuditEntry(action=action, user_id="u", row_count=number) for number in range(count)]
    return [(number, take(entry)) for number, entry in enumerate(entries, 1)]


def ids(store: DeltaStore) -> tuple[list[str], list[str]]:
    chained = store.scan("audit_log", ["sequence", "audit_id"]).to_polars().sort("sequence")
    billed = store.scan("user_actions", ["action_id"]).to_polars()
    return chained.get_column("audit_id").to_list(), sorted(billed.get_column("action_id").to_list())


def check_once(store: DeltaStore, entries: list[Numbered]) -> None:
    expected = [recorded.audit_id for _, recorded in entries]
    chained, billed = ids(store)
    assert chained == expected
    assert billed == sorted(expected)
    assert verify(store.table("audit_log")).is_whole


def test_entries_arrive_in_both_tables_in_one_commit_each(delivery: Delivery) -> None:
    entries = numbered(3)
    delivery.deliver("w", entries)
    check_once(delivery.store, entries)
    assert delivery.store.table("audit_log").version() == delivery.store.table("user_actions").version() == 1


def test_entries_that_are_delivered_again_in_other_batches_are_there_once(delivery: Delivery) -> None:
    entries = numbered(7)
    for part in (entries[:3], entries[:3], entries[:5], entries[2:7], entries):
        delivery.deliver("w", part)
    check_once(delivery.store, entries)


def test_writers_do_not_take_each_others_numbers_for_their_own(delivery: Delivery) -> None:
    first, second = numbered(3), numbered(2)
    delivery.deliver("one", first)
    delivery.deliver("two", second)
    check_once(delivery.store, [*first, *second])


def test_writers_that_deliver_at_the_same_moment_make_one_chain(delivery: Delivery) -> None:
    start, parts = Barrier(6), {f"w{number}": [numbered(2) for _ in range(3)] for number in range(6)}

    def deliver(writer: str) -> None:
        start.wait()
        for turn, part in enumerate(parts[writer]):
            delivery.deliver(writer, [(turn * 2 + number, recorded) for number, recorded in part])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(deliver, parts))
    chained, billed = ids(delivery.store)
    expected = sorted(recorded.audit_id for own in parts.values() for part in own for _, recorded in part)
    assert sorted(chained) == sorted(billed) == expected
    assert verify(delivery.store.table("audit_log"), delivery.remembered.read()).is_whole


def test_a_crash_between_the_two_tables_is_made_good(delivery: Delivery) -> None:
    entries = numbered(3)
    place = delivery.store.table("user_actions").location.path
    place.rename(place.with_name("away"))
    with pytest.raises(LakehouseError):
        delivery.deliver("w", entries)
    place.with_name("away").rename(place)
    delivery.deliver("w", entries)
    check_once(delivery.store, entries)


def test_only_what_is_billable_and_was_done_is_billed() -> None:
    def billed(action: ActionType, outcome: Outcome) -> bool:
        return is_billed(take(AuditEntry(action=action, user_id="u", outcome=outcome)))

    assert {action for action in ActionType if billed(action, Outcome.DONE)} == BILLABLE
    assert not any(
        billed(action, outcome) for action in ActionType for outcome in Outcome if outcome != "done"
    )


def test_a_billed_row_says_what_the_entry_says(delivery: Delivery) -> None:
    entry = AuditEntry(
        action=ActionType.SQL_QUERY, user_id="u", resource="orders", row_count=7, duration_ms=1.5, details="d"
    )
    recorded = take(entry)
    delivery.deliver("w", [(1, recorded)])
    assert delivery.store.scan("user_actions").to_pylist() == [
        {
            "action_id": recorded.audit_id,
            "timestamp": recorded.timestamp,
            "user_id": "u",
            "action": "sql_query",
            "resource": "orders",
            "row_count": 7,
            "duration_ms": 1.5,
            "date_partition": recorded.day,
        }
    ]


def test_the_end_of_the_chain_is_remembered_after_each_commit(delivery: Delivery) -> None:
    for count in (1, 3):
        delivery.deliver(f"w{count}", numbered(count))
        head = delivery.remembered.read()
        assert head is not None
        assert head.hash == verify(delivery.store.table("audit_log")).head_hash


def test_the_log_goes_on_after_maintenance(delivery: Delivery) -> None:
    first, second = numbered(3), numbered(2)
    delivery.deliver("one", first)
    table = delivery.store.table("audit_log")
    table.compact()
    table.checkpoint()
    delivery.deliver("two", second)
    check_once(delivery.store, [*first, *second])
    delivery.deliver("one", first)
    check_once(delivery.store, [*first, *second])


def test_personal_fields_have_no_statistics_in_the_log(delivery: Delivery) -> None:
    entry = AuditEntry(
        action=ActionType.DATA_READ, user_id="SECRET-1", details="SECRET-2", ip_address="SECRET-3"
    )
    recorded = take(entry)
    delivery.deliver("w", [(1, recorded)])
    for name in ("audit_log", "user_actions"):
        for path in (delivery.store.table(name).location.path / "_delta_log").iterdir():
            text = path.read_bytes()
            assert b"SECRET" not in text
            assert recorded.salt.encode() not in text


def test_a_damaged_memory_of_the_end_does_not_hold_up_the_log(delivery: Delivery) -> None:
    entries = numbered(2)
    delivery.deliver("w", entries[:1])
    delivery.remembered.path.write_text("?")
    with pytest.raises(StorageIoError, match="damaged"):
        delivery.deliver("w", entries)
    delivery.deliver("w", entries)
    check_once(delivery.store, entries)


def test_nothing_counts_as_lost_when_writers_take_turns(delivery: Delivery) -> None:
    elsewhere = RememberedHead(private_directory(delivery.remembered.path.parent / "another machine"))
    other = replace(delivery, remembered=elsewhere)
    for number in range(3):
        delivery.deliver(f"here {number}", numbered(2))
        other.deliver(f"there {number}", numbered(1))
    assert delivery.remembered.lost() == elsewhere.lost() == []
