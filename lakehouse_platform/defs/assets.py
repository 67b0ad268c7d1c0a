"""Every table as an asset: materializing makes sure that it exists and refreshes its figures."""

import hashlib
from datetime import timedelta
from typing import Any

import dagster as dg

from lakehouse_platform.defs import keys
from lakehouse_platform.defs.failing import RETRY, step_failures
from lakehouse_platform.defs.metadata import definition_metadata, spec_metadata, table_metadata
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.upkeep_access import maintained
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.upkeep.status import TableSpec, TableStatus, table_status

# A warning at two thirds of the allowed age leaves time to look before the check fails.
_WARN_SHARE = 2 / 3

_SYSTEM_NOTE = "Materializing creates the table if it is missing; its rows stay as they are."
_USER_DESCRIPTION = (
    "A table found in the lakehouse. Materializing it reads its figures again; its rows stay as they are."
)


def system_table_asset(spec: TableSpec, config: LakehouseConfig) -> dg.AssetsDefinition:
    """Return the asset of one of the platform's own tables; materializing creates it if it is missing."""
    asset = dg.AssetSpec(
        key=keys.table_key(spec.name),
        description=f"{spec.description}\n\n{_SYSTEM_NOTE}",
        metadata={**definition_metadata(spec.name, config.base_path), **spec_metadata(spec)},
        group_name=keys.SYSTEM_GROUP,
        code_version=_code_version(spec),
        owners=[spec.owner],
        tags=keys.SYSTEM_TAGS,
        kinds=keys.KINDS,
        freshness_policy=_freshness(config),
    )
    return _table_asset(asset, spec.name, spec)


def user_table_asset(table: str, config: LakehouseConfig) -> dg.AssetsDefinition:
    """Return the asset of a table that a user made; materializing only reads its figures."""
    asset = dg.AssetSpec(
        key=keys.table_key(table),
        description=_USER_DESCRIPTION,
        metadata=definition_metadata(table, config.base_path),
        group_name=keys.USER_GROUP,
        code_version="1",
        owners=[keys.USER_OWNER],
        tags=keys.USER_TAGS,
        kinds=keys.KINDS,
        freshness_policy=_freshness(config),
    )
    return _table_asset(asset, table, None)


def _table_asset(asset: dg.AssetSpec, table: str, spec: TableSpec | None) -> dg.AssetsDefinition:
    @dg.multi_asset(
        specs=[asset], name=keys.node_name("table", table), description=asset.description, retry_policy=RETRY
    )
    def refresh(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> dg.MaterializeResult[Any]:
        with step_failures(), lakehouse.open(context.run.run_id) as opened:
            status = maintained(opened, table, "materialization", lambda: _refreshed(opened, table, spec))
        return dg.MaterializeResult(
            asset_key=asset.key,
            metadata=table_metadata(status),
            data_version=dg.DataVersion(str(status.info.version)),
        )

    return refresh


def _refreshed(lakehouse: Lakehouse, table: str, spec: TableSpec | None) -> TableStatus:
    if spec is not None:
        lakehouse.store.ensure(spec)
    return table_status(lakehouse.store, table)


def _freshness(config: LakehouseConfig) -> dg.FreshnessPolicy:
    allowed = timedelta(hours=config.freshness_hours)
    return dg.FreshnessPolicy.time_window(fail_window=allowed, warn_window=allowed * _WARN_SHARE)


def _code_version(spec: TableSpec) -> str:
    """Return a digest of what the registry demands, so that a changed registry shows up as changed code."""
    text = f"{spec.schema}{spec.primary_key}{spec.partition_by}{spec.personal_columns}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]
