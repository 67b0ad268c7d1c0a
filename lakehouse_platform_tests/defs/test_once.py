from __future__ import annotations

from pathlib import Path

import dagster as dg

from lakehouse_platform.defs.once import refresh_tables
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.store.tables import SYSTEM_TABLES


def test_one_run_materializes_and_checks_every_table(lake: Lakehouse, tmp_path: Path) -> None:
    lake.store.create("rides", SYSTEM_TABLES["users"].schema)
    tables = refresh_tables(lake.config, tmp_path)
    assert [table.table for table in tables] == sorted([*SYSTEM_TABLES, "rides"])
    empty = [table for table in tables if table.table != "audit_log"]  # the run itself is written there
    assert all(table.rows == 0 and table.version == 0 for table in empty)
    assert all(all(table.checks.values()) and len(table.checks) == 4 for table in empty)
    (audit_log,) = [table for table in tables if table.table == "audit_log"]
    assert len(audit_log.checks) == 5
    assert audit_log.checks["hash_chain_is_intact"]


def test_the_run_is_kept_where_the_user_interface_finds_it(lake: Lakehouse, tmp_path: Path) -> None:
    refresh_tables(lake.config, tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        (run,) = instance.get_runs()
        assert run.job_name == "refresh_tables"
        assert run.is_success
