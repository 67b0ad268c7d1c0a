"""Accepted tokens reach the audit log as counts, once a minute; a count that cannot be written is kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.errors import AuditWriteFailedError, TokenInvalidError
from lakehouse_platform.model.origin import Door
from lakehouse_platform.services.token_checks import TokenChecks
from lakehouse_platform.store.delta_store import DeltaStore

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def audit(store: DeltaStore, tmp_path: Path) -> Iterator[AuditLog]:
    with AuditLog(store, tmp_path / "journal") as log:
        yield log


def written(audit: AuditLog) -> list[dict[str, Any]]:
    audit.flush()
    return sorted(audit.store.scan("audit_log").to_pylist(), key=lambda row: row["sequence"])


def test_checks_of_a_minute_are_one_entry_for_each_user(audit: AuditLog) -> None:
    checks = TokenChecks(audit, Door.HTTP)
    for second in range(60):
        checks.accepted("ada", START + timedelta(seconds=second))
    checks.accepted("ben", START + timedelta(seconds=59))
    assert written(audit) == []
    checks.accepted("ada", START + timedelta(seconds=60))
    rows = written(audit)
    assert {(row["user_id"], row["details"], row["door"]) for row in rows} == {
        ("ada", "61 accepted", "http"),
        ("ben", "1 accepted", "http"),
    }
    assert {row["action"] for row in rows} == {"token_checks"}


def test_what_is_counted_when_it_ends_is_written_too(audit: AuditLog) -> None:
    checks = TokenChecks(audit, Door.PYTHON)
    checks.accepted("ada", START)
    checks.flush()
    checks.flush()
    assert [row["details"] for row in written(audit)] == ["1 accepted"]


def test_checks_of_api_keys_are_counted_by_key(audit: AuditLog) -> None:
    checks = TokenChecks(audit, Door.HTTP)
    for key_id in ("a1", "a1", "b2", None):
        checks.accepted("job", START, key_id=key_id)
    checks.refused(TokenInvalidError("not valid"), "192.0.2.7", START, key_id="a1")
    checks.flush()
    found = {(row["user_id"], row["details"]) for row in written(audit)}
    assert found == {
        ("job", "2 accepted; key a1"),
        ("job", "1 accepted; key b2"),
        ("job", "1 accepted"),
        ("anonymous", "token_invalid; key a1"),
    }


def test_a_count_that_could_not_be_written_is_kept(
    audit: AuditLog, store: DeltaStore, tmp_path: Path
) -> None:
    closed = AuditLog(store, tmp_path / "closed")
    closed.close()
    checks = TokenChecks(closed, Door.PYTHON)
    checks.accepted("ada", START)
    with pytest.raises(AuditWriteFailedError):
        checks.accepted("ada", START + timedelta(minutes=1))
    checks._audit = audit
    checks.flush()
    assert [row["details"] for row in written(audit)] == ["2 accepted"]


def test_refused_tokens_are_written_one_by_one_up_to_ten_a_minute_of_an_address(audit: AuditLog) -> None:
    checks = TokenChecks(audit, Door.HTTP)
    for second in range(25):
        checks.refused(TokenInvalidError("no"), "192.0.2.1", START + timedelta(seconds=second))
    checks.refused(TokenInvalidError("no"), "192.0.2.1", START + timedelta(seconds=60))
    details = [row["details"] for row in written(audit)]
    assert details == ["token_invalid"] * 10 + ["token_invalid; 15 more left out"]
