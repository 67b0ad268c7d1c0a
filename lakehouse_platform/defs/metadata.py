"""Turns what the platform knows about tables into Dagster metadata; the only place that does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from lakehouse_platform.defs.keys import CATALOG
from lakehouse_platform.defs.plots import growth_plot
from lakehouse_platform.model.results import ColumnInfo, VersionInfo
from lakehouse_platform.model.schema import type_text
from lakehouse_platform.upkeep.policy import TableFacts
from lakehouse_platform.upkeep.status import TableSpec, TableStatus
from lakehouse_platform.upkeep.tasks import TableOutcome, TaskReport

Metadata = dict[str, Any]

# Newest operations listed on the asset page; the whole history is one command away.
_OPERATIONS_SHOWN = 10
# The UI times out on very large values, and the reader's patience before that.
_MOST_LISTED = 50


def definition_metadata(table: str, base_path: str) -> Metadata:
    """Return what is known of a table without opening it."""
    uri = f"{base_path.rstrip('/')}/{table}"
    return {
        "dagster/table_name": f"{CATALOG}.{table}",
        "dagster/uri": uri if "://" in uri else Path(uri).as_uri(),
        "dagster/storage_kind": "deltalake",
    }


def spec_metadata(spec: TableSpec) -> Metadata:
    """Return what the registry says of a platform table."""
    columns = [ColumnInfo(name=f.name, type=type_text(f.type), nullable=f.nullable) for f in spec.schema]
    return {
        "dagster/column_schema": _table_schema(columns, spec.primary_key, spec),
        "primary_key": ", ".join(spec.primary_key),
        "personal_columns": ", ".join(spec.personal_columns) or "none",
        "z_order_by": ", ".join(spec.z_order_by) or "none",
        "retention_days": spec.retention_days or "none",
    }


def table_metadata(status: TableStatus) -> Metadata:
    """Return a table's state for a materialization."""
    info = status.info
    growth = growth_plot([(count.timestamp, count.rows) for count in status.growth])
    figures: Metadata = {
        "growth": dg.MetadataValue.md(growth),
        "dagster/column_schema": _table_schema(info.columns, info.primary_key, status.spec),
        "dagster/table_name": f"{CATALOG}.{info.name}",
        "dagster/uri": info.uri if "://" in info.uri else Path(info.uri).as_uri(),
        "delta_version": info.version,
        "files": info.files,
        "size_bytes": info.bytes,
        "last_commit": dg.MetadataValue.timestamp(info.modified),
        "operations": operations_table(status.commits),
    }
    if info.rows is not None:
        figures["dagster/row_count"] = info.rows
    if info.description:
        figures["description"] = info.description
    return figures


def operations_table(commits: Sequence[VersionInfo]) -> dg.TableMetadataValue:
    """Return the newest commits as a table."""
    return dg.MetadataValue.table(
        [dg.TableRecord(_operation(commit)) for commit in commits[:_OPERATIONS_SHOWN]]
    )


def upkeep_metadata(outcome: TableOutcome, task: str) -> Metadata:
    """Return a table's figures before and after a maintenance task."""
    metadata: Metadata = {"task": task, "reason": outcome.due.reason if outcome.due else ""}
    for moment, facts in (("before", outcome.before), ("after", outcome.after)):
        metadata |= {f"{name}_{moment}": value for name, value in _figures(facts).items()}
    return metadata


def report_table(reports: Sequence[TaskReport]) -> dg.TableMetadataValue:
    """Return what each task decided and did, table by table."""
    records = [
        dg.TableRecord(
            {
                "task": report.task.value,
                "table": outcome.table,
                "result": _result(outcome),
                "reason": _why(outcome),
            }
        )
        for report in reports
        for outcome in sorted(
            report.outcomes, key=lambda outcome: (outcome.error is None, not outcome.touched)
        )
    ]
    schema = dg.TableSchema([dg.TableColumn(name) for name in ("task", "table", "result", "reason")])
    return dg.MetadataValue.table(records[:_MOST_LISTED], schema=schema)


def _result(outcome: TableOutcome) -> str:
    if outcome.error is not None:
        return "failed"
    if outcome.touched:
        return "done"
    return "due" if outcome.due is not None and outcome.due.is_due else "not due"


def _why(outcome: TableOutcome) -> str:
    return str(outcome.error) if outcome.error is not None else outcome.due.reason if outcome.due else ""


def _figures(facts: TableFacts | None) -> Mapping[str, int]:
    if facts is None:
        return {}
    figures = {
        "version": facts.version,
        "files": facts.files,
        "small_files": facts.small_files,
        "size_bytes": facts.bytes,
        "removable_files": facts.removable_files,
        "log_entries_since_checkpoint": facts.commits_since_checkpoint,
    }
    return figures if facts.rows is None else {**figures, "rows": facts.rows}


def _operation(commit: VersionInfo) -> dict[str, str | int]:
    return {
        "version": commit.version,
        "time (UTC)": f"{commit.timestamp:%Y-%m-%d %H:%M:%S}",
        "operation": commit.operation,
        "door": commit.door or "elsewhere",
        "reason": commit.reason or "",
    }


def _table_schema(
    columns: Sequence[ColumnInfo], key: Sequence[str], spec: TableSpec | None
) -> dg.TableSchema:
    return dg.TableSchema([_column(column, key, spec) for column in columns])


def _column(column: ColumnInfo, key: Sequence[str], spec: TableSpec | None) -> dg.TableColumn:
    personal = spec is not None and column.name in spec.personal_columns
    return dg.TableColumn(
        name=column.name,
        type=column.type,
        description=_description(column.name, spec),
        constraints=dg.TableColumnConstraints(nullable=column.nullable, unique=list(key) == [column.name]),
        tags={"pii": "true"} if personal else None,
    )


def _description(column: str, spec: TableSpec | None) -> str | None:
    if spec is None or column not in spec.schema.names:
        return None
    described = spec.schema.field(column).metadata or {}
    return described.get(b"description", b"").decode() or None
