"""Asset checks: one op per table evaluates all of its claims, so that the table is opened once."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import dagster as dg

from lakehouse_platform.defs import keys
from lakehouse_platform.defs.failing import RETRY, step_failures
from lakehouse_platform.defs.resources import LakehouseResource
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.upkeep import health
from lakehouse_platform.upkeep.health import Finding
from lakehouse_platform.upkeep.status import TableSpec

SCHEMA_REGISTERED = "schema_matches_registry"
SCHEMA_KEPT = "schema_has_kept_its_columns"
KEY_UNIQUE = "primary_key_is_unique"
FEW_SMALL_FILES = "small_file_ratio_is_low"
FRESH = "table_is_fresh"

_DESCRIPTIONS = {
    SCHEMA_REGISTERED: "Every registered column is there with its type; so are key and partitioning.",
    SCHEMA_KEPT: "Every column of the oldest readable version is still there; new ones are allowed.",
    KEY_UNIQUE: "No two rows share the declared primary key.",
    FEW_SMALL_FILES: "Few files are so small that compaction should merge them.",
    FRESH: "The content changed within the allowed time; maintenance commits do not count.",
}
# A wrong schema or a repeated key makes results wrong; the others cost time, or may be what the user meant.
_SEVERITY = {
    SCHEMA_REGISTERED: dg.AssetCheckSeverity.ERROR,
    KEY_UNIQUE: dg.AssetCheckSeverity.ERROR,
}


def table_checks(table: str, spec: TableSpec | None) -> dg.AssetChecksDefinition:
    """Return the checks of one table."""
    schema_check = SCHEMA_KEPT if spec is None else SCHEMA_REGISTERED
    names = (schema_check, KEY_UNIQUE, FEW_SMALL_FILES, FRESH)

    @dg.multi_asset_check(
        name=keys.node_name("checks", table),
        specs=[_check_spec(name, table) for name in names],
        can_subset=True,
        retry_policy=RETRY,
    )
    def evaluate(
        context: dg.AssetCheckExecutionContext, lakehouse: LakehouseResource
    ) -> Iterator[dg.AssetCheckResult]:
        claims = _claims(lakehouse.open(context.run.run_id), table, spec)
        for check in context.op_execution_context.selected_asset_check_keys:
            with step_failures():
                finding = claims[check.name]()
            yield _result(check, finding)

    return evaluate


def _check_spec(name: str, table: str) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        name, asset=keys.table_key(table), description=_DESCRIPTIONS[name], blocking=name == SCHEMA_REGISTERED
    )


def _claims(lakehouse: Lakehouse, table: str, spec: TableSpec | None) -> Mapping[str, Callable[[], Finding]]:
    store = lakehouse.store
    opened = store.table(table)
    schema: dict[str, Callable[[], Finding]] = (
        {SCHEMA_KEPT: lambda: health.kept_schema(opened, opened.info())}
        if spec is None
        else {SCHEMA_REGISTERED: lambda: health.registered_schema(opened.info(), spec)}
    )
    return schema | {
        KEY_UNIQUE: lambda: health.unique_key(opened, opened.info()),
        FEW_SMALL_FILES: lambda: health.few_small_files(lakehouse.upkeep.facts(table), store.config),
        FRESH: lambda: health.fresh(opened.history(limit=100), store.config, datetime.now(UTC)),
    }


def _result(check: dg.AssetCheckKey, finding: Finding) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=check.asset_key,
        passed=finding.passed,
        severity=_SEVERITY.get(check.name, dg.AssetCheckSeverity.WARN),
        description=finding.reason,
        metadata=dict(finding.figures),
    )
