"""Changes the audit log as somebody would who can write to its storage: past our code, with the engine or by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from lakehouse_platform.store.table import Table

Rows = list[dict[str, Any]]


def rewrite_rows(table: Table, change: Callable[[Rows], Rows]) -> None:
    """Replace the rows, in the order of their sequence, by what the change makes of them."""
    rows = sorted(table.scan().to_pylist(), key=lambda row: row["sequence"])
    engine = DeltaTable(table.location.uri)
    engine.alter.set_table_properties({"delta.appendOnly": "false"})
    changed = pa.Table.from_pylist(change(rows), schema=table.arrow_schema())
    write_deltalake(DeltaTable(table.location.uri), changed, mode="overwrite")


def rewrite_file(table: Table, change: Callable[[Rows], Rows]) -> None:
    """Replace the rows of the newest data file in place, without a commit; only its size in the log is put right."""
    version = table.version()
    commit = table.location.path / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    path = table.location.path / unquote(add["path"])
    before = pq.ParquetFile(path).read()
    pq.write_table(pa.Table.from_pylist(change(before.to_pylist()), schema=before.schema), path)
    add["size"] = path.stat().st_size
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
