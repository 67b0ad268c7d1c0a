"""Claims about a table that can be false: its schema is as registered, its key unique, its rows fresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from lakehouse_platform.model.results import TableInfo, VersionInfo
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.model.times import to_rfc3339
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.log import list_log
from lakehouse_platform.store.predicates import quote_identifier
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import TableSpec
from lakehouse_platform.upkeep.history import changes_content
from lakehouse_platform.upkeep.policy import TableFacts

# More than half of the files being mergeable doubles what a scan opens, whatever their number.
_HIGHEST_SMALL_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    Attributes:
        passed: Whether the claim holds.
        reason: What was found, as one sentence.
        figures: The numbers and texts behind it.
    """

    passed: bool
    reason: str
    figures: Mapping[str, int | float | str] = field(default_factory=dict[str, "int | float | str"])


def registered_schema(info: TableInfo, spec: TableSpec) -> Finding:
    """Check that a platform table has every registered column, its key and its partitioning.

    Further columns are allowed.
    """
    problems = _column_problems(_columns(spec.schema), _columns_of(info))
    if info.partition_columns != spec.partition_by:
        problems.append(f"partitioned by {_listed(info.partition_columns)}, not {_listed(spec.partition_by)}")
    if spec.primary_key and info.primary_key != spec.primary_key:
        problems.append(f"primary key is {_listed(info.primary_key)}, not {_listed(spec.primary_key)}")
    return _schema_finding(problems, "the registry", len(spec.schema))


def kept_schema(table: Table, info: TableInfo) -> Finding:
    """Check that a user's table still has the columns and types of its oldest readable version.

    Further columns are allowed.

    Raises:
        StorageError: That version cannot be read.
    """
    first = list_log(table.location).first_readable
    before = _columns(table.arrow_schema(version=first))
    problems = _column_problems(before, _columns_of(info))
    return _schema_finding(problems, f"version {first}", len(before))


def unique_key(table: Table, info: TableInfo) -> Finding:
    """Check that no two rows share the declared primary key.

    The keys themselves are not told: they may be personal data, and no erasure reaches the findings.

    Raises:
        QueryError: The rows cannot be grouped within the limits of the settings.
    """
    if not info.primary_key:
        return Finding(passed=True, reason="No primary key is declared, so there is nothing to repeat.")
    columns = ", ".join(quote_identifier(name) for name in info.primary_key)
    groups = f"SELECT count(*) AS n FROM data GROUP BY {columns}"  # noqa: S608 - quoted names only
    counted = table.sql(
        f"SELECT count(*) AS keys, coalesce(sum(n), 0) AS row_count FROM ({groups}) WHERE n > 1"  # noqa: S608
    ).to_pylist()[0]
    keys, rows = int(counted["keys"]), int(counted["row_count"])
    key = ", ".join(info.primary_key)
    reason = f"{rows:,} rows share {keys:,} values of {key}." if keys else f"Every {key} occurs once."
    return Finding(
        passed=keys == 0, reason=reason, figures={"repeated_keys": keys, "rows_with_repeated_key": rows}
    )


def few_small_files(facts: TableFacts, config: LakehouseConfig) -> Finding:
    """Check that small files are few, in number or as a share of all."""
    share = facts.mergeable_files / facts.files if facts.files else 0.0
    passed = facts.mergeable_files < config.compact_min_small_files or share <= _HIGHEST_SMALL_SHARE
    advice = "" if passed else " Run the compact_tables job or `lakehouse compact`."
    return Finding(
        passed=passed,
        reason=f"{facts.mergeable_files:,} of {facts.files:,} files are small and could be merged.{advice}",
        figures={
            "small_file_share": round(share, 4),
            "small_files": facts.mergeable_files,
            "files": facts.files,
        },
    )


def fresh(commits: Sequence[VersionInfo], config: LakehouseConfig, now: datetime) -> Finding:
    """Check that the newest commit that changed content is young enough; maintenance does not count."""
    newest = next((commit for commit in commits if changes_content(commit)), None)
    if newest is None:
        return Finding(passed=False, reason=f"None of the last {len(commits)} commits changed the content.")
    age = now - newest.timestamp
    hours = age / timedelta(hours=1)
    return Finding(
        passed=age <= timedelta(hours=config.freshness_hours),
        reason=f"Content last changed {hours:.1f} hours ago; {config.freshness_hours} are allowed.",
        figures={
            "age_hours": round(hours, 2),
            "version": newest.version,
            "changed": to_rfc3339(newest.timestamp),
        },
    )


_Columns = Mapping[str, tuple[str, bool]]


def _columns(schema: pa.Schema) -> _Columns:
    return {column.name: (column.data_type, column.nullable) for column in Schema.from_arrow(schema).fields}


def _columns_of(info: TableInfo) -> _Columns:
    return {column.name: (column.type, column.nullable) for column in info.columns}


def _column_problems(expected: _Columns, actual: _Columns) -> list[str]:
    problems: list[str] = []
    for name, (data_type, nullable) in expected.items():
        if name not in actual:
            problems.append(f"column {name} is missing")
            continue
        found_type, found_nullable = actual[name]
        if found_type != data_type:
            problems.append(f"column {name} is {found_type}, not {data_type}")
        if found_nullable and not nullable:
            problems.append(f"column {name} may be NULL")
    return problems


def _schema_finding(problems: list[str], reference: str, columns: int) -> Finding:
    reason = "; ".join(problems) if problems else f"all {columns} columns are there"
    return Finding(
        passed=not problems,
        reason=f"Compared with {reference}: {reason}.",
        figures={"problems": len(problems), "columns_expected": columns},
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
