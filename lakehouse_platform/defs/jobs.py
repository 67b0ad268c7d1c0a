"""What can be launched: the refresh of all tables, and one job for each kind of maintenance."""

import dagster as dg

from lakehouse_platform.defs import keys
from lakehouse_platform.defs.chain_check import CHAIN_INTACT, TABLE
from lakehouse_platform.defs.maintenance import (
    MaintenanceConfig,
    VacuumConfig,
    clean_up_sessions,
    compact,
    vacuum,
    z_order,
)

refresh_tables = dg.define_asset_job(
    "refresh_tables",
    selection=dg.AssetSelection.key_prefixes(keys.CATALOG),
    executor_def=dg.in_process_executor,
    description="Creates the platform's tables where they are missing, reads the figures of every table "
    "again, and runs every check. Changes no row.",
)

verify_audit_log = dg.define_asset_job(
    "verify_audit_log",
    selection=dg.AssetSelection.checks(dg.AssetCheckKey(keys.table_key(TABLE), CHAIN_INTACT)),
    executor_def=dg.in_process_executor,
    description="Reads the whole audit log and fails the check `hash_chain_is_intact` if anything in it was "
    "changed, removed or moved. Runs **daily** when there is one.",
)


def _maintenance_job(
    op: dg.OpDefinition, name: str, config: MaintenanceConfig, max_hours: int, description: str
) -> dg.JobDefinition:
    @dg.job(
        name=name,
        description=description,
        executor_def=dg.in_process_executor,
        config=dg.RunConfig(ops={op.name: config}),
        tags={**keys.MAINTENANCE_TAGS, "dagster/max_runtime": str(max_hours * 3600)},
    )
    def run() -> None:
        op()

    return run


session_cleanup = _maintenance_job(
    clean_up_sessions,
    "session_cleanup",
    MaintenanceConfig(),
    max_hours=1,
    description="Deletes sessions past their end from `sessions`. Runs **hourly** when there are any.",
)
compact_tables = _maintenance_job(
    compact,
    "compact_tables",
    MaintenanceConfig(),
    max_hours=4,
    description="Merges the small files of tables that have many, without changing rows; writes checkpoints "
    "of logs that have grown long. Runs **every 6 hours** when a table is due.",
)
z_order_tables = _maintenance_job(
    z_order,
    "z_order_tables",
    MaintenanceConfig(),
    max_hours=4,
    description="Sorts the rows of tables that changed much by their Z-order columns, so that filters on "
    "these read fewer files. Runs **daily** when a table is due.",
)
vacuum_tables = _maintenance_job(
    vacuum,
    "vacuum_tables",
    VacuumConfig(),
    max_hours=4,
    description="Removes data files and log entries that no version within the retention needs; time travel "
    "beyond it ends. **A dry run unless `dry_run: false` is set.** Runs **weekly** when a table is due, and "
    "then for real.",
)

JOBS = (refresh_tables, verify_audit_log, session_cleanup, compact_tables, z_order_tables, vacuum_tables)
