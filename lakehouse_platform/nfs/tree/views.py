"""The small read-only files of a table, as text: `schema.sql`, `.history` and `.stats`. Blocking: call in a thread."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from lakehouse_platform.model.results import TableInfo, VersionInfo
from lakehouse_platform.model.times import to_epoch_ms, to_rfc3339
from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.tree.handles import Kind
from lakehouse_platform.store.describe import describe
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.snapshot import add_actions
from lakehouse_platform.store.table import Table
from lakehouse_platform.text.ddl import create_table_statement

_NULL_COUNT = "null_count."
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Text:
    """A small file as it is now; also a `Content`.

    Attributes:
        data: Its bytes.
        changed_ns: Its ctime and mtime.
    """

    data: bytes
    changed_ns: int

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return the bytes of a range, cut at the end."""
        return [memoryview(self.data)[offset : offset + count]]


def render(table: Table, kind: Kind, version: int) -> Text:
    """Return a small file of one version."""
    if kind is Kind.HISTORY:
        versions = table.history()
        return Text(history_text(versions), changed_ns(version, to_epoch_ms(versions[0].timestamp)))
    opened = open_table(table.location, version)
    info = describe(table.location, opened, table.hidden)
    changed = changed_ns(version, to_epoch_ms(info.modified))
    if kind is Kind.SCHEMA:
        return Text(f"{create_table_statement(info)}\n".encode(), changed)
    return Text(stats_text(info, null_counts(add_actions(opened))), changed)


def changed_ns(version: int, committed_ms: int) -> int:
    """Return the ctime of what shows a version: the same after a restart, another one for each version."""
    return committed_ms * _NS_PER_MS + version % _NS_PER_MS


def history_text(versions: Sequence[VersionInfo]) -> bytes:
    """Return one line per version, newest first: version, time, operation, metrics, actor; separated by tabs."""
    return "".join(map(_history_line, versions)).encode()


def _history_line(info: VersionInfo) -> str:
    metrics = json.dumps(dict(info.metrics), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    fields = (str(info.version), to_rfc3339(info.timestamp), info.operation, metrics, info.actor or "-")
    return "\t".join(" ".join(field.splitlines()).replace("\t", " ") for field in fields) + "\n"


def null_counts(actions: Any) -> dict[str, int]:
    """Return how many NULLs each column has, where every live file's statistics say so."""
    return {
        name.removeprefix(_NULL_COUNT): pc.call_function("sum", [actions.column(name)]).as_py()
        for name in actions.column_names
        if name.startswith(_NULL_COUNT) and actions.num_rows and not actions.column(name).null_count
    }


def stats_text(info: TableInfo, nulls: dict[str, int]) -> bytes:
    """Return a version's figures as JSON; what the log does not know is null."""
    figures = {
        "version": info.version,
        "rows": info.rows,
        "files": info.files,
        "bytes": info.bytes,
        "modified": to_rfc3339(info.modified),
        "primary_key": list(info.primary_key),
        "columns": {
            column.name: {"type": column.type, "nullable": column.nullable, "nulls": nulls.get(column.name)}
            for column in info.columns
        },
    }
    return (json.dumps(figures, indent=2, ensure_ascii=False) + "\n").encode()
