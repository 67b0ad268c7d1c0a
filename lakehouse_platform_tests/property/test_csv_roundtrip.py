"""Whatever a table holds, its CSV export imports as the same table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given

from lakehouse_platform.store.csv_source import CsvOptions, open_csv
from lakehouse_platform.store.exporting import export
from lakehouse_platform_tests.support.arbitrary import same, tables


@given(tables())
def test_a_csv_export_imports_as_the_same_table(tmp_path: Path, table: pa.Table) -> None:
    file = tmp_path / "t.csv"
    export(table.to_reader(), file)

    with open_csv(file, CsvOptions(schema=table.schema, delimiter=",")) as source:
        assert same(source.reader.read_all(), table)


@given(tables())
def test_two_exports_of_one_table_have_the_same_bytes(tmp_path: Path, table: pa.Table) -> None:
    export(table.to_reader(), tmp_path / "whole.csv")
    export(table.to_reader(max_chunksize=1), tmp_path / "in_pieces.csv")

    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "in_pieces.csv").read_bytes()
