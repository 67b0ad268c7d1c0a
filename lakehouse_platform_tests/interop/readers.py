"""The engines that read our tables, each as a function from a table to its rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import polars as pl
from deltalake import DeltaTable

Rows = list[dict[str, Any]]


def with_polars(table: Path, version: int | None = None) -> Rows:
    return pl.scan_delta(str(table), version=version).collect().to_dicts()


def with_deltalake(table: Path, version: int | None = None) -> Rows:
    return DeltaTable(table, version=version).to_pyarrow_table().to_pylist()


def with_duckdb(table: Path, version: int | None = None) -> Rows:
    """Read with the extension that a package brings, so that nothing is downloaded."""
    extensions = Path(duckdb_extension_delta.__file__).parent / "extensions"
    (extension,) = extensions.rglob("delta.duckdb_extension")
    at = "" if version is None else f", version={version}"
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(f"SELECT * FROM delta_scan('{table}'{at})").to_arrow_table()
    return found.to_pylist()


READERS: dict[str, Callable[..., Rows]] = {
    "polars": with_polars,
    "deltalake": with_deltalake,
    "duckdb": with_duckdb,
}
