"""Small tables that many tests use, and how tests look at a table from outside."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.store.delta_store import DeltaStore

PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("age", pa.int32())])

Rows = list[dict[str, Any]]


def people(*ids: int, age: int = 30) -> Rows:
    """Return one row per id."""
    return [{"id": number, "name": f"n{number}", "age": age} for number in ids]


def rows(store: DeltaStore, name: str, **scan: Any) -> Rows:
    """Return the table's rows in a stable order."""
    return in_order(store.scan(name, **scan).to_pylist())


def ids(store: DeltaStore, name: str, **scan: Any) -> list[int]:
    """Return the table's values of `id`, sorted."""
    return sorted(row["id"] for row in store.scan(name, **scan).to_pylist())


def in_order(some: Rows) -> Rows:
    """Return rows sorted by their text, which also sorts NULLs and nested values."""
    return sorted(some, key=repr)


@contextmanager
def refused(
    store: DeltaStore, name: str, error: type[Exception], match: str | None = None
) -> Generator[None]:
    """Expect exactly this error, and the table as it was: same version, same schema, same rows."""
    before = _picture(store, name)
    with pytest.raises(error, match=match) as caught:
        yield
    assert type(caught.value) is error
    assert _picture(store, name) == before


def _picture(store: DeltaStore, name: str) -> tuple[int, pa.Schema, Rows]:
    table = store.table(name)
    return table.version(), table.arrow_schema(), rows(store, name)


def forget_history(store: DeltaStore, name: str) -> None:
    """Leave only what the newest version needs: no log entry before it can be read afterwards."""
    table = store.table(name)
    table.set_properties({"delta.logRetentionDuration": "interval 0 hours"})
    table.checkpoint()
    table.clean_up_log()
