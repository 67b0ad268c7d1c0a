"""Tampering, on the real table, by somebody who can write to its storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakehouse_platform.audit.chain import GENESIS, Head, extend
from lakehouse_platform.audit.delivery import _audit_row
from lakehouse_platform.audit.entries import AuditEntry, take
from lakehouse_platform.audit.heads import head_metadata
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.verify import Problem, ProblemKind, Verification, verify
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.tampering import Rows, rewrite_file, rewrite_rows

COUNT = 10
WINDOW = 4  # smaller than the log, so that every test crosses windows


@pytest.fixture
def table(log: AuditLog) -> Table:
    """An audit log of ten entries in two commits."""
    for half in range(2):
        log.record_all(
            [
                AuditEntry(
                    action=ActionType.DATA_READ,
                    user_id=f"user {number}",
                    details=f"read {number}",
                    resource="orders",
                    row_count=number,
                    ip_address="127.0.0.1",
                )
                for number in range(half * COUNT // 2, (half + 1) * COUNT // 2)
            ]
        )
        log.flush()
    return log.store.table("audit_log")


def found(result: Verification) -> set[tuple[int, ProblemKind]]:
    return {(problem.sequence, problem.kind) for problem in result.problems}


def check(table: Table, log: AuditLog) -> Verification:
    return verify(table, log.remembered.read(), log.remembered.lost(), window=WINDOW)


def edit(number: int, **changes: Any) -> Callable[[Rows], Rows]:
    """Return the change of one row, by its sequence."""
    return lambda rows: [{**row, **changes} if row["sequence"] == number else row for row in rows]


def test_a_log_as_it_was_written_is_whole(table: Table, log: AuditLog) -> None:
    result = check(table, log)
    assert result.is_whole
    assert (result.entries, result.erased, result.head_sequence) == (COUNT, 0, COUNT)
    assert Head(result.head_sequence, result.head_hash) == log.remembered.read()


def test_a_log_without_entries_is_whole(log: AuditLog) -> None:
    log.flush()
    result = verify(log.store.table("audit_log"))
    assert (result.problems, result.entries, result.head_sequence, result.head_hash) == (
        (),
        0,
        0,
        GENESIS.hash,
    )


def test_rewriting_the_same_rows_is_no_problem(table: Table, log: AuditLog) -> None:
    rewrite_rows(table, lambda rows: rows[::-1])
    assert check(table, log).is_whole


def test_maintenance_is_no_problem(table: Table, log: AuditLog) -> None:
    table.compact()
    table.z_order(["user_id", "action"])
    assert check(table, log).is_whole


@pytest.mark.parametrize(
    "change",
    [
        {"audit_id": "0" * 32},
        {"timestamp": "2020-01-01T00:00:00.000000Z"},
        {"action": "data_write"},
        {"outcome": "denied"},
        {"resource": "other"},
        {"resource": None},
        {"row_count": 999},
        {"door": "nfs"},
        {"request_id": ""},
        {"user_id": "somebody else"},
        {"details": None},
        {"ip_address": "127.0.0.2"},
        {"salt": "00" * 16},
        {"salt": None},
        {"salt": "no hex"},
        {"commitment": "00" * 32},
        {"entry_hash": "00" * 32},
        {"entry_hash": None},
        {"date_partition": "2020-01-01"},
    ],
    ids=str,
)
def test_any_changed_field_is_found_at_its_entry_and_nowhere_else(
    table: Table, log: AuditLog, change: dict[str, Any]
) -> None:
    rewrite_rows(table, edit(5, **change))
    problems = check(table, log).problems
    assert {problem.sequence for problem in problems} == {5}
    assert {problem.kind for problem in problems} <= {ProblemKind.ALTERED, ProblemKind.MISPLACED}


def test_a_file_changed_in_place_without_a_commit_is_found(table: Table, log: AuditLog) -> None:
    rewrite_file(table, edit(8, row_count=80))
    assert found(check(table, log)) == {(8, ProblemKind.ALTERED)}


def test_a_changed_entry_with_a_hash_that_fits_it_is_found_at_the_next_one(
    table: Table, log: AuditLog
) -> None:
    """Whoever knows the chain can make one entry fit the one before, but not the one after it fit."""
    from lakehouse_platform.audit.chain import ChainFields, entry_hash

    def change(rows: Rows) -> Rows:
        rows[4]["row_count"] = 80
        fields = ChainFields(**{name: rows[4][name] for name in ChainFields.__dataclass_fields__})
        rows[4]["entry_hash"] = entry_hash(bytes.fromhex(rows[3]["entry_hash"]), fields).hex()
        return rows

    rewrite_rows(table, change)
    assert found(check(table, log)) == {(6, ProblemKind.ALTERED)}


@pytest.mark.parametrize(("first", "last"), [(1, 1), (5, 5), (3, 8), (4, 4)])
def test_removed_rows_are_a_gap(table: Table, log: AuditLog, first: int, last: int) -> None:
    rewrite_rows(table, lambda rows: [row for row in rows if not first <= row["sequence"] <= last])
    result = check(table, log)
    assert found(result) == {(first, ProblemKind.MISSING)}
    assert str(last) in result.problems[0].message


def test_rows_whose_places_are_swapped_are_found_at_both(table: Table, log: AuditLog) -> None:
    def swap(rows: Rows) -> Rows:
        rows[2]["sequence"], rows[6]["sequence"] = rows[6]["sequence"], rows[2]["sequence"]
        return rows

    rewrite_rows(table, swap)
    places = {sequence for sequence, kind in found(check(table, log)) if kind is ProblemKind.ALTERED}
    assert {3, 7} <= places <= {3, 4, 7, 8}


def test_a_doubled_row_is_found(table: Table, log: AuditLog) -> None:
    rewrite_rows(table, lambda rows: [*rows, rows[4]])
    assert found(check(table, log)) == {(5, ProblemKind.DOUBLED)}


@pytest.mark.parametrize("kept", [0, 4, 7])
def test_a_cut_end_is_found_by_the_newest_commit_and_by_this_machine(
    table: Table, log: AuditLog, kept: int
) -> None:
    rewrite_rows(table, lambda rows: rows[:kept])
    result = check(table, log)
    assert found(result) == {(kept + 1, ProblemKind.CUT)}
    assert {one.message.split(": ")[1].split(" knows")[0] for one in result.problems} == {
        "the newest commit",
        "this machine",
    }


def test_a_table_put_back_to_an_old_version_with_its_log_is_found_by_this_machine_alone(
    table: Table, log: AuditLog
) -> None:
    newest = table.version()
    (table.location.path / "_delta_log" / f"{newest:020}.json").unlink()
    assert verify(table).is_whole
    assert found(check(table, log)) == {(COUNT // 2 + 1, ProblemKind.CUT)}


@pytest.mark.parametrize("more", [1, COUNT // 2, COUNT])
def test_an_end_that_was_cut_off_stays_found_however_far_the_log_goes_on(
    table: Table, log: AuditLog, more: int
) -> None:
    (table.location.path / "_delta_log" / f"{table.version():020}.json").unlink()
    for _ in range(2):
        log.record_all([AuditEntry(action=ActionType.LOGIN, user_id="u")] * more)
        log.flush()
        assert (COUNT, ProblemKind.CUT) in found(check(table, log))
    assert [one.sequence for one in log.remembered.lost()] == [COUNT]


def test_a_log_that_was_written_anew_stays_found_when_it_goes_on(table: Table, log: AuditLog) -> None:
    forged = extend(GENESIS, [take(AuditEntry(action=ActionType.LOGIN, user_id="x")) for _ in range(COUNT)])
    rewrite_rows(table, lambda _: [_audit_row(link) for link in forged[:-1]])
    table.append([_audit_row(forged[-1])], metadata=head_metadata(forged[-1].head))
    log.record_all([AuditEntry(action=ActionType.LOGIN, user_id="u")] * COUNT)
    log.flush()
    assert found(check(table, log)) == {(COUNT, ProblemKind.CUT)}


def test_a_log_that_was_written_anew_is_found_by_this_machine(table: Table, log: AuditLog) -> None:
    forged = extend(GENESIS, [take(AuditEntry(action=ActionType.LOGIN, user_id="x")) for _ in range(COUNT)])
    rewrite_rows(table, lambda _: [_audit_row(link) for link in forged])
    table.append([], metadata=head_metadata(forged[-1].head))
    assert (COUNT, ProblemKind.CUT) in found(check(table, log))


def test_rows_that_were_added_past_the_chain_are_found(table: Table, log: AuditLog) -> None:
    rewrite_rows(table, lambda rows: [*rows, {**rows[0], "sequence": None}, {**rows[0], "sequence": -3}])
    (problem,) = check(table, log).problems
    assert (problem.kind, problem.message[:6]) == (ProblemKind.UNCHAINED, "2 rows")


def test_a_row_that_was_added_at_the_end_is_found(table: Table, log: AuditLog) -> None:
    rewrite_rows(table, lambda rows: [*rows, {**rows[-1], "sequence": COUNT + 1}])
    assert (COUNT + 1, ProblemKind.ALTERED) in found(check(table, log))


def test_a_number_far_away_does_not_take_forever(table: Table, log: AuditLog) -> None:
    rewrite_rows(table, lambda rows: [*rows, {**rows[-1], "sequence": 2**62}])
    assert (COUNT + 1, ProblemKind.MISSING) in found(check(table, log))


def test_erased_entries_are_counted_and_the_chain_still_holds(table: Table, log: AuditLog) -> None:
    rewrite_rows(table, edit(5, user_id="", details=None, ip_address=None, salt=None))
    rewrite_rows(table, edit(6, user_id="", details="", ip_address="", salt=""))
    result = check(table, log)
    assert (result.problems, result.erased) == ((), 2)


def test_a_head_that_the_log_never_had_is_told(table: Table) -> None:
    result = verify(table, Head(3, bytes(32)))
    assert result.problems == (
        Problem(
            3, ProblemKind.CUT, "Entry 3 is not the one that this machine remembers: the log was replaced."
        ),
    )


def test_rows_hidden_by_lying_statistics_are_found(table: Table, log: AuditLog) -> None:
    import json

    commit = table.location.path / "_delta_log" / f"{table.version():020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            stats["minValues"]["sequence"] = stats["maxValues"]["sequence"] = 3
            action["add"]["stats"] = json.dumps(stats)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert ProblemKind.HIDDEN in {problem.kind for problem in check(table, log).problems}
