"""TEMPORARY, by the lead: engineer A replaces this file with the sandboxed one (same names)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from lakehouse_platform.store.cast import plain_schema


@dataclass(frozen=True, slots=True)
class SqlLimits:
    max_rows: int | None = None
    memory_mb: int | None = None
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SqlResult:
    schema: pa.Schema
    table: pa.Table

    def reader(self) -> pa.RecordBatchReader:
        return self.table.to_reader()

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_pylist(self) -> list[dict[str, Any]]:
        return self.table.to_pylist()

    def to_polars(self) -> Any:
        import polars as pl

        return pl.from_arrow(self.table)


def run_sql(
    text: str, tables: Mapping[str, DeltaTable] | Callable[[str], DeltaTable], limits: SqlLimits
) -> SqlResult:
    builder = QueryBuilder()
    if callable(tables):
        for name in set(re.findall(r"(?i)(?:from|join)\s+\"?([A-Za-z0-9_.-]+)", text)):
            builder.register(name, tables(name))
    else:
        for name, table in tables.items():
            builder.register(name, table)
    result = pa.table(builder.execute(text))
    plain = plain_schema(result.schema)
    return SqlResult(plain, result.cast(plain))
