"""The client's operations on the audit log are called as those of `AuditActor`; all faces test what they do."""

from __future__ import annotations

import pytest

from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.client.sync_audit import AuditOperations
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform_tests.unit.client.parity import arguments, operations

OURS, THEIRS = operations(AuditOperations), operations(AuditActor)


@pytest.mark.parametrize("name", ["activity", "billing_summary", "search"])
def test_the_arguments_are_the_same_in_the_same_order(name: str) -> None:
    assert arguments(OURS[name]) == arguments(THEIRS[name])


def test_what_is_recorded_and_verified_has_names_of_its_own() -> None:
    # `verify` is what checks a token; an entry is told in arguments, for its class is the server's.
    assert set(OURS) == {"activity", "billing_summary", "search", "log", "verify_audit"}


def test_the_audit_log_is_exported_as_a_stream(root: LakehouseClient) -> None:
    root.create("rides", Schema.parse("id:Int64"))
    root.append("rides", [{"id": 1}])
    rows = root.export_audit(action=ActionType.DATA_WRITE, resource="rides").read_all()
    assert (rows["action"].to_pylist(), rows["row_count"].to_pylist()) == (["data_write"], [1])
    assert any(one.action == "data_export" for one in root.search(limit=1000))
