from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore

EXPORT = AuditEntry(
    action=ActionType.DATA_EXPORT,
    user_id="user_123",
    details="Exported 1M rows to CSV",
    row_count=1_000_000,
)


@pytest.fixture
def store(tmp_path: Path) -> DeltaStore:
    return DeltaStore(LakehouseConfig(base_path=str(tmp_path / "lake"), state_path=str(tmp_path / "state")))


def test_the_seeds_manual_logging_and_billing_query(store: DeltaStore) -> None:
    with AuditActor(store) as audit:
        audit.log(EXPORT)
        summary = audit.billing_summary("user_123", "2026-02-01", "2100-02-28")
    assert (summary.total_actions, summary.total_rows) == (1, 1_000_000)
    assert summary.actions_by_type == {"data_export": 1}


def test_reports_see_what_was_recorded_just_before(store: DeltaStore) -> None:
    with AuditActor(store) as audit:
        first, second = audit.log(EXPORT), audit.submit(EXPORT).result(60)
        assert [entry.audit_id for entry in audit.activity("user_123").entries] == [second, first]
        assert [entry.audit_id for entry in audit.search(action=ActionType.DATA_EXPORT)] == [first, second]


def test_the_seeds_query_finds_a_users_entries(store: DeltaStore) -> None:
    with AuditActor(store) as audit:
        audit.log(EXPORT)
        audit.flush()
        (row,) = store.query("audit_log", "user_id = 'user_123'").to_pylist()
    assert row["details"] == EXPORT.details


def test_reports_on_an_empty_lakehouse_are_empty(store: DeltaStore) -> None:
    with AuditActor(store) as audit:
        assert audit.activity("nobody").entries == ()
        assert audit.search() == []
        assert audit.billing_summary("nobody", "2026-01-01", "2026-01-31").total_actions == 0
        assert audit.verify().is_whole


def test_verification_compares_with_what_this_machine_remembers(store: DeltaStore) -> None:
    with AuditActor(store) as audit:
        audit.log(EXPORT)
        assert audit.verify().is_whole
    store.drop("audit_log")
    with AuditActor(store) as audit:
        (problem,) = audit.verify().problems
    assert (problem.sequence, problem.kind) == (1, "cut")


def test_the_journal_is_in_the_lakehouses_state_directory(store: DeltaStore, tmp_path: Path) -> None:
    with AuditActor(store) as audit:
        audit.log(EXPORT)
        assert list((tmp_path / "state" / "audit").glob("*.lock"))


def test_a_lakehouse_without_a_state_path_has_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    for name in ("one", "two"):
        with AuditActor(DeltaStore(tmp_path / name)) as audit:
            audit.log(EXPORT)
    assert len(list((tmp_path / "home" / "lakehouse").glob("*/audit/head"))) == 2
