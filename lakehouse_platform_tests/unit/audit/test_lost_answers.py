"""The audit log on an object store whose answers are lost: outcomes that nobody was told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.verify import verify
from lakehouse_platform.errors import AuditWriteFailedError
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.cutting_proxy import COMMIT, CuttingProxy, cutting_proxy
from lakehouse_platform_tests.support.s3_server import S3Server

pytestmark = pytest.mark.object_store
READ = AuditEntry(action=ActionType.DATA_READ, user_id="u", row_count=1)
NEVER_S = 3600.0


@pytest.fixture
def proxy(s3: S3Server, tmp_path: Path) -> Iterator[CuttingProxy]:
    with cutting_proxy(s3, tmp_path) as running:
        yield running


@pytest.fixture
def far_log(proxy: CuttingProxy, state: Path) -> Iterator[AuditLog]:
    """An audit log behind the proxy, with one entry in its table; what follows is moved by a flush alone."""
    server = proxy.server
    store = DeltaStore(LakehouseConfig(base_path=server.fresh_uri(), storage_options=dict(server.options)))
    with AuditLog(store, state, interval_s=NEVER_S) as log:
        log.record(READ)
        log.flush()
        yield log


def _check_once(log: AuditLog, ids: list[str]) -> None:
    rows = log.store.scan("audit_log", ["sequence", "audit_id"]).to_polars().sort("sequence")
    assert rows.get_column("audit_id").to_list()[1:] == ids
    billed = log.store.scan("user_actions", ["action_id"]).to_polars().get_column("action_id").to_list()
    assert len(billed) == len(set(billed)) == len(ids) + 1
    assert verify(log.store.table("audit_log"), log.remembered.read()).is_whole


@pytest.mark.parametrize("table", ["audit_log", "user_actions"])
def test_entries_whose_commit_was_not_answered_are_there_once(
    proxy: CuttingProxy, far_log: AuditLog, table: str
) -> None:
    ids = far_log.record_all([READ, READ])
    proxy.plan(lose=rf"PUT .*/{table}/_delta_log/\d{{20}}\.json")
    far_log.flush()
    assert proxy.lost()
    _check_once(far_log, ids)


def test_entries_whose_commit_was_the_last_that_the_storage_did_are_there_once(
    proxy: CuttingProxy, far_log: AuditLog
) -> None:
    ids = far_log.record_all([READ, READ])
    proxy.plan(lose=COMMIT, dead_after_loss=True)
    with pytest.raises(AuditWriteFailedError, match="safe in"):
        far_log.flush()
    assert proxy.lost()
    ids.append(far_log.record(READ))
    proxy.plan()
    far_log.flush()
    _check_once(far_log, ids)
