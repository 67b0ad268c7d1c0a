"""Assembles the code location; what is in it is listed here and nowhere else."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from pydantic import SecretStr

from lakehouse_platform.defs.assets import system_table_asset, user_table_asset
from lakehouse_platform.defs.chain_check import chain_check
from lakehouse_platform.defs.checks import table_checks
from lakehouse_platform.defs.failure_sensor import run_failure_audit_sensor
from lakehouse_platform.defs.jobs import JOBS
from lakehouse_platform.defs.resources import LakehouseResource, absolute
from lakehouse_platform.defs.schedules import SCHEDULES
from lakehouse_platform.defs.sensors import SENSORS
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.upkeep.status import registered_tables

_log = logging.getLogger(__name__)

# Loading must end well within Dagster's start-up time; the object store's own patience is three minutes.
_HASTY = {
    option: SecretStr(value)
    for option, value in {
        "max_retries": "1",
        "retry_timeout": "5s",
        "timeout": "5s",
        "connect_timeout": "5s",
    }.items()
}


def build_defs(
    *,
    config: LakehouseConfig | None = None,
    resources: Mapping[str, Any] | None = None,
    tables: Sequence[str] | None = None,
) -> dg.Definitions:
    """Return the definitions of a lakehouse; nothing is created.

    Args:
        config: Settings; None for variables and `lakehouse.toml`.
        resources: Resources to use beside or instead of `lakehouse`.
        tables: Names of the user tables to show as assets; None for those that stand in the lakehouse now.

    Raises:
        ConfigError: A setting is unknown or not allowed.
    """
    config = config or LakehouseConfig()
    config = config.model_copy(update={"base_path": absolute(config.base_path)})
    lakehouse = LakehouseResource.from_config(config)
    system = registered_tables()
    found = _user_tables(lakehouse) if tables is None else tables
    user = [table for table in found if table not in system]
    return dg.Definitions(
        assets=[
            *(system_table_asset(spec, config) for spec in system.values()),
            *(user_table_asset(table, config) for table in user),
        ],
        asset_checks=[
            *(table_checks(name, spec) for name, spec in system.items()),
            chain_check,
            *(table_checks(table, None) for table in user),
        ],
        jobs=JOBS,
        schedules=SCHEDULES,
        sensors=[*SENSORS, run_failure_audit_sensor],
        resources={"lakehouse": lakehouse, **(resources or {})},
        # A process for each step costs 3 s of imports on a small machine; a table's figures cost far less.
        executor=dg.in_process_executor,
    )


def _user_tables(lakehouse: LakehouseResource) -> Sequence[str]:
    """Return the tables that stand in the lakehouse; none, with a warning, if the storage cannot be asked."""
    config = lakehouse.config()
    hasty = config.model_copy(update={"storage_options": {**config.storage_options, **_HASTY}})
    try:
        return Lakehouse.open(hasty).store.tables()
    except LakehouseError as error:
        _log.warning(
            "Only the platform's own tables are shown, because others could not be listed: %s", error
        )
        return ()
