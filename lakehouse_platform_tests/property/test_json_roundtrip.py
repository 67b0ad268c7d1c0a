"""Whatever a table holds, its JSON reads back as the same table."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given

from lakehouse_platform.text.json_rows import rows_from_json, rows_from_values
from lakehouse_platform.text.json_write import json_lines, row_objects, table_to_json
from lakehouse_platform_tests.support.arbitrary import same, tables


@given(tables())
def test_a_json_array_reads_back_as_the_same_table(table: pa.Table) -> None:
    assert same(rows_from_json(table_to_json(table), table.schema), table)


@given(tables())
def test_json_lines_read_back_as_the_same_table(table: pa.Table) -> None:
    lines = b"".join(json_lines(batch) for batch in table.to_batches())

    assert same(rows_from_json(lines, table.schema), table)


@given(tables())
def test_row_objects_are_json_safe_and_are_rows_again(table: pa.Table) -> None:
    rows = [row for batch in table.to_batches() for row in row_objects(batch)]

    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert same(rows_from_values(rows, table.schema), table)


@given(tables())
def test_a_slice_writes_only_its_own_rows(table: pa.Table) -> None:
    sliced = table.slice(1)

    assert same(rows_from_json(table_to_json(sliced), table.schema), sliced)
