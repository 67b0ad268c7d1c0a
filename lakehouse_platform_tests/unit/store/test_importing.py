"""Imports end in one commit or in nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.importing import (
    append_from_source,
    create_from_source,
    csv_import,
    parquet_import,
)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A CSV file of 100 000 rows: several blocks, many engine batches."""
    file = tmp_path / "people.csv"
    file.write_text("id,name\n" + "".join(f"{number},name of {number}\n" for number in range(100_000)))
    return file


def test_a_csv_file_becomes_a_table_in_one_commit_of_rows(store: DeltaStore, people: Path) -> None:
    table = create_from_source(store.table("people"), csv_import(people), primary_key=["id"])

    assert [version.operation for version in table.history()] == ["WRITE", "CREATE TABLE"]
    assert table.scan().to_arrow()["id"].to_pylist() == list(range(100_000))
    assert table.primary_key() == ("id",)


def test_a_file_that_breaks_midway_leaves_no_table(store: DeltaStore, people: Path) -> None:
    with people.open("a") as file:
        file.write("not a number,x\n")

    with pytest.raises(SourceFormatError, match="Line 100002, column 'id'"):
        create_from_source(store.table("people"), csv_import(people))

    assert store.tables() == []
    assert not store.table("people").exists()


def test_a_file_is_appended_by_header_name(store: DeltaStore, people: Path, tmp_path: Path) -> None:
    table = create_from_source(store.table("people"), csv_import(people))
    more = tmp_path / "more.csv"
    more.write_text("name,id\n00123,100000\n")

    version = append_from_source(table, csv_import(more, into=table.arrow_schema()))

    assert version == table.version() == 1
    assert table.query("id = 100000").to_pylist() == [{"id": 100_000, "name": "00123"}]


def test_an_append_that_breaks_leaves_the_table_as_it_was(store: DeltaStore, people: Path) -> None:
    table = create_from_source(store.table("people"), csv_import(people))
    with people.open("a") as file:
        file.write("1,x,surplus\n")

    with pytest.raises(SourceFormatError, match="Line 100002 has 3 fields"):
        append_from_source(table, csv_import(people, into=table.arrow_schema()))

    assert table.version() == 0
    assert table.scan().to_arrow().num_rows == 100_000


def test_parquet_files_become_a_table_in_one_commit_of_rows(store: DeltaStore, tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"id": [number], "s": [f"s{number}"]}), tmp_path / f"part-{number}.parquet")

    table = create_from_source(store.table("t"), parquet_import(tmp_path / "part-*.parquet"))
    append_from_source(table, parquet_import(tmp_path / "part-2.parquet", into=table.arrow_schema()))

    assert sorted(row["id"] for row in table.scan().to_pylist()) == [0, 1, 2, 2]
    assert table.version() == 1
