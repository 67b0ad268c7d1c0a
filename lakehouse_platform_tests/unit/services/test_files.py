from __future__ import annotations

import gzip
import io
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_platform.errors import (
    DuplicateKeyError,
    InvalidRowsError,
    LossyCastError,
    SourceFormatError,
    SourceNotFoundError,
    TableExistsError,
)
from lakehouse_platform.services.files import (
    FileForm,
    FileOptions,
    append_file,
    create_from_file,
    export_rows,
    insert_json,
    merge_json,
)
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

PLAIN = FileOptions()
SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string())])


@pytest.fixture
def table(store: DeltaStore) -> Table:
    return store.create("t", SCHEMA)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.csv", FileForm.CSV),
        ("a.CSV.gz", FileForm.CSV),
        ("a.tsv", FileForm.CSV),
        ("dir.d/a.jsonl", FileForm.JSONL),
        ("a.ndjson.gz", FileForm.JSONL),
        ("s3://b/x/*.parquet", FileForm.PARQUET),
        ("directory", FileForm.PARQUET),
        ("directory/", FileForm.PARQUET),
    ],
)
def test_a_file_name_means_a_form(name: str, form: FileForm) -> None:
    assert FileForm.of(name) is form


@pytest.mark.parametrize("name", ["a.xlsx", "a.json", "a.csv.zip"])
def test_a_name_that_means_no_form_is_refused(name: str) -> None:
    with pytest.raises(SourceFormatError, match="rename"):
        FileForm.of(name)


def test_a_table_is_created_with_the_rows_of_a_file(store: DeltaStore, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,a\n2,b\n")
    done = create_from_file(
        store.table("new"), str(tmp_path / "a.csv"), FileForm.CSV, PLAIN, primary_key=["id"]
    )
    assert done.rows == 2
    assert store.table("new").primary_key() == ("id",)
    assert ids(store.table("new")) == [1, 2]


def test_a_refused_row_leaves_no_table(store: DeltaStore, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n" + "1\n" * 11 + "x\n")
    with pytest.raises(SourceFormatError):
        create_from_file(store.table("new"), str(tmp_path / "a.csv"), FileForm.CSV, PLAIN)
    assert not store.table("new").exists()


def test_an_existing_table_is_refused_before_the_file_is_read(table: Table) -> None:
    with pytest.raises(TableExistsError):
        create_from_file(table, "absent.csv", FileForm.CSV, PLAIN)


def test_all_rows_decide_the_types_when_asked(store: DeltaStore, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n" + "1\n" * 11 + "x\n")
    create_from_file(store.table("new"), str(tmp_path / "a.csv"), FileForm.CSV, FileOptions(infer_all=True))
    assert store.table("new").arrow_schema().field("id").type == pa.string()


def test_json_lines_cannot_create_a_table(store: DeltaStore, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(SourceFormatError, match="create the table first"):
        create_from_file(store.table("new"), str(tmp_path / "a.jsonl"), FileForm.JSONL, PLAIN)


def test_files_of_every_form_are_appended_in_one_commit(table: Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,id\na,1\n")
    (tmp_path / "b.jsonl").write_text('{"id": 2}\n{"id": 3, "name": "c"}\n')
    pq.write_table(pa.table({"id": [4], "name": ["d"]}), tmp_path / "c.parquet")
    done = [
        append_file(table, str(tmp_path / name), FileForm.of(name), PLAIN)
        for name in ("a.csv", "b.jsonl", "c.parquet")
    ]
    assert [(one.version, one.rows) for one in done] == [(1, 1), (2, 2), (3, 1)]
    assert ids(table) == [1, 2, 3, 4]


def test_an_append_that_does_not_fit_changes_nothing(table: Table, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [2**40]}), tmp_path / "big.parquet")
    with pytest.raises((LossyCastError, SourceFormatError)):
        append_file(table, str(tmp_path / "big.parquet"), FileForm.PARQUET, PLAIN)
    assert table.version() == 0


def test_a_declared_key_is_checked_against_files(table: Table, tmp_path: Path) -> None:
    table.set_primary_key(["id"])
    (tmp_path / "a.csv").write_text("id\n1\n1\n")
    with pytest.raises(DuplicateKeyError):
        append_file(table, str(tmp_path / "a.csv"), FileForm.CSV, PLAIN)
    assert ids(table) == []


def test_new_columns_are_added_only_when_asked(table: Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("note,id\nx,1\n")
    with pytest.raises(SourceFormatError, match="note"):
        append_file(table, str(tmp_path / "a.csv"), FileForm.CSV, PLAIN)
    append_file(table, str(tmp_path / "a.csv"), FileForm.CSV, FileOptions(evolve=True))
    assert table.scan().to_pylist() == [{"id": 1, "name": None, "note": "x"}]
    assert table.arrow_schema().field("id").type == pa.int32()


def test_a_missing_file_is_named(table: Table) -> None:
    for form in FileForm:
        with pytest.raises(SourceNotFoundError, match="absent"):
            append_file(table, "absent.x", form, PLAIN)


def test_progress_reaches_the_total(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": {number}}}\n' for number in range(1000)))
    seen: list[tuple[int, int]] = []
    append_file(table, str(path), FileForm.JSONL, FileOptions(on_progress=lambda *done: seen.append(done)))
    assert seen[-1] == (path.stat().st_size,) * 2


def test_json_rows_are_inserted_with_their_number(table: Table) -> None:
    done = insert_json(table, '[{"id": 1}, {"id": 2}]')
    assert (done.rows, done.version) == (2, 1)
    with pytest.raises(InvalidRowsError):
        insert_json(table, '{"id": "x"}')


def test_json_rows_are_merged_and_a_field_left_out_keeps_its_value(table: Table) -> None:
    insert_json(table, '[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]')
    done = merge_json(table, '[{"id": 1}, {"id": 2, "_op": "DELETE"}, {"id": 3, "name": "c"}]', ["id"])
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (1, 1, 1)
    assert sorted(map(tuple, (row.values() for row in table.scan().to_pylist()))) == [(1, "a"), (3, "c")]


def test_rows_and_tables_are_exported_to_files_and_streams(table: Table, tmp_path: Path) -> None:
    insert_json(table, '[{"id": 1, "name": null}, {"id": 2, "name": ""}]')
    assert export_rows(table.scan(), tmp_path / "t.parquet") == 2
    assert pl.read_parquet(tmp_path / "t.parquet").height == 2
    stream = io.BytesIO()
    assert export_rows(table.scan().to_arrow(), stream, "csv") == 2
    assert sorted(stream.getvalue().splitlines()) == [b"1,", b'2,""', b"id,name"]


def test_gzipped_json_lines_are_read(table: Table, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1}\n{"id": 2}'))
    assert append_file(table, str(tmp_path / "a.jsonl.gz"), FileForm.JSONL, PLAIN).rows == 2
