"""Arguments of a wrong Python type: a clear error, and the table as it was."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform import DatabaseOps, DeltaStore, Schema
from lakehouse_platform.errors import InvalidArgumentError, InvalidPredicateError, SchemaMismatchError


@pytest.fixture
def store_with_rows(store: DeltaStore) -> DeltaStore:
    store.create("t", Schema.parse("id:Int64"), primary_key=["id"]).append([{"id": 1}])
    return store


@pytest.mark.parametrize("predicate", [1, None, b"id = 1", ["id = 1"]])
def test_a_predicate_is_a_text(store_with_rows: DeltaStore, predicate: Any) -> None:
    with pytest.raises(InvalidPredicateError, match="is a text"):
        store_with_rows.delete("t", predicate)
    assert store_with_rows.table("t").version() == 1


@pytest.mark.parametrize("version", ["1", 1.5, True])
def test_a_version_is_a_whole_number(store_with_rows: DeltaStore, version: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="whole number"):
        store_with_rows.read_version("t", version)


def test_a_table_needs_columns(store: DeltaStore) -> None:
    with pytest.raises(SchemaMismatchError, match="at least one column"):
        store.create("t", pa.schema([]))


def test_merging_no_json_rows_changes_nothing(store_with_rows: DeltaStore) -> None:
    table = store_with_rows.table("t")
    assert DatabaseOps(table).merge_json("[]") == '{"rows_inserted": 0, "rows_updated": 0, "rows_deleted": 0}'
    assert table.version() == 1
