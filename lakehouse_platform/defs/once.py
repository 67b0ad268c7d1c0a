"""One run of every asset and check in this process, for programs that have no Dagster service at hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from lakehouse_platform.defs.build import build_defs
from lakehouse_platform.defs.resources import one_lakehouse
from lakehouse_platform.settings import LakehouseConfig

# The result is returned; of the log only what needs a person is shown.
_QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedTable:
    """What the catalogue shows of one table after the run.

    Attributes:
        table: The table.
        rows: Its rows, None if the log does not know them.
        version: Its newest version.
        bytes: Size of its live files.
        checks: Whether each check passed, by its name.
    """

    table: str
    rows: int | None
    version: int
    bytes: int
    checks: dict[str, bool]


def refresh_tables(config: LakehouseConfig, home: Path) -> list[RefreshedTable]:
    """Materialize every table and evaluate its checks; return them by name.

    Args:
        config: The lakehouse.
        home: The directory that `DAGSTER_HOME` names when the run is looked at in the UI.
    """
    job = build_defs(config=config).resolve_job_def("refresh_tables")
    with dg.DagsterInstance.from_config(str(home)) as instance, one_lakehouse():
        result = job.execute_in_process(instance=instance, run_config=_QUIET)
    evaluations = result.get_asset_check_evaluations()
    return sorted(
        (
            _refreshed(event.materialization, evaluations)
            for event in (
                event.step_materialization_data for event in result.get_asset_materialization_events()
            )
        ),
        key=lambda table: table.table,
    )


def _refreshed(
    materialization: dg.AssetMaterialization, evaluations: Sequence[dg.AssetCheckEvaluation]
) -> RefreshedTable:
    figures: dict[str, Any] = {name: value.value for name, value in materialization.metadata.items()}
    return RefreshedTable(
        table=materialization.asset_key.path[-1],
        rows=figures.get("dagster/row_count"),
        version=figures["delta_version"],
        bytes=figures["size_bytes"],
        checks={
            check.check_name: check.passed
            for check in evaluations
            if check.asset_key == materialization.asset_key
        },
    )
