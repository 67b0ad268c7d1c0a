"""Exports: whole or not at all, in one form, readable by others."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_platform.errors import InvalidArgumentError, InvalidSqlError, SourceFormatError
from lakehouse_platform.store.exporting import ExportFormat, export
from lakehouse_platform.store.location import Location
from lakehouse_platform_tests.support.s3_server import S3Server

TABLE = pa.table({"id": [1, 2, 3], "s": ["a,b", "", None]})


def broken() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise SourceFormatError("the source broke")

    return pa.RecordBatchReader.from_batches(TABLE.schema, batches())


@pytest.mark.parametrize("kind", ExportFormat)
def test_every_format_is_read_by_somebody_else(tmp_path: Path, kind: ExportFormat) -> None:
    file = tmp_path / f"t.{kind}"

    assert export(TABLE.to_reader(max_chunksize=1), file) == 3

    read = {
        ExportFormat.CSV: lambda: pl.read_csv(file).to_dicts(),
        ExportFormat.JSON: lambda: json.loads(file.read_text()),
        ExportFormat.JSONL: lambda: pl.read_ndjson(file).to_dicts(),
        ExportFormat.PARQUET: lambda: pq.read_table(file).to_pylist(),
        ExportFormat.ARROW: lambda: pa.ipc.open_file(file).read_all().to_pylist(),
    }
    assert read[kind]() == TABLE.to_pylist()


@pytest.mark.parametrize("kind", ExportFormat)
def test_a_stream_that_cannot_seek_takes_every_format(kind: ExportFormat) -> None:
    class Pipe(io.RawIOBase):
        data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: bytes, /) -> int:  # type: ignore[override]
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()

    assert export(TABLE.to_reader(), pipe, kind) == 3
    assert len(pipe.data) > 10
    assert not pipe.closed


@pytest.mark.parametrize("kind", ExportFormat)
def test_no_rows_are_a_valid_file(tmp_path: Path, kind: ExportFormat) -> None:
    assert export(TABLE.slice(0, 0).to_reader(), tmp_path / f"t.{kind}") == 0

    text = (tmp_path / f"t.{kind}").read_bytes()
    expected = {ExportFormat.CSV: b"id,s\n", ExportFormat.JSON: b"[]\n", ExportFormat.JSONL: b""}
    assert text == expected.get(kind, text)


def test_csv_tells_null_from_an_empty_text() -> None:
    out = io.BytesIO()
    export(TABLE.to_reader(), out)

    assert out.getvalue() == b'id,s\n1,"a,b"\n2,""\n3,\n'
    assert list(csv.reader(io.StringIO(out.getvalue().decode())))[1] == ["1", "a,b"]


@pytest.mark.parametrize("kind", ExportFormat)
def test_a_failing_export_leaves_what_was_there(tmp_path: Path, kind: ExportFormat) -> None:
    file = tmp_path / f"t.{kind}"
    file.write_bytes(b"before")

    with pytest.raises(SourceFormatError, match="the source broke"):
        export(broken(), file)

    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]


def test_an_export_replaces_the_file_a_link_points_to(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_bytes(b"before")
    link.symlink_to(target)

    export(TABLE.to_reader(), link)

    assert link.is_symlink()
    assert target.read_bytes().startswith(b"id,s\n")


def test_string_views_are_written_as_texts(tmp_path: Path) -> None:
    views = pa.table({"s": pa.array(["a", "b"], pa.string_view())})

    for kind in ExportFormat:
        assert export(views.to_reader(max_chunksize=1), tmp_path / f"t.{kind}") == 2
    assert pq.read_table(tmp_path / "t.parquet").schema.field("s").type == pa.string()


@pytest.mark.parametrize(
    ("place", "reason"),
    [("absent/t.csv", "does not exist"), ("folder.csv", "is a directory"), ("t.xlsx", "name the format")],
)
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, place: str, reason: str) -> None:
    (tmp_path / "folder.csv").mkdir()

    with pytest.raises(InvalidArgumentError, match=reason):
        export(TABLE.to_reader(), tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_progress_counts_rows() -> None:
    seen: list[int] = []
    export(
        pa.table({"n": range(200_000)}).to_reader(max_chunksize=50_000), io.BytesIO(), on_progress=seen.append
    )

    assert seen == sorted(seen)
    assert seen[-1] == 200_000


@pytest.mark.object_store
def test_an_export_to_an_object_store_is_whole_or_absent(s3: S3Server) -> None:
    place = Location(s3.fresh_uri(), s3.options)

    export(TABLE.to_reader(), f"{place.uri}/t.csv", storage_options=s3.options)
    with pytest.raises(SourceFormatError):
        export(broken(), f"{place.uri}/broken.csv", storage_options=s3.options)

    with place.filesystem().open_input_file("t.csv") as file:
        assert file.read() == b'id,s\n1,"a,b"\n2,""\n3,\n'
    assert place.filesystem().get_file_info("broken.csv").type.name == "NotFound"


@pytest.mark.parametrize("kind", ExportFormat)
def test_columns_of_one_name_are_refused_by_what_would_lose_one(tmp_path: Path, kind: ExportFormat) -> None:
    file = tmp_path / f"t.{kind}"
    file.write_text("before")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    if kind in {ExportFormat.CSV, ExportFormat.ARROW}:
        assert export(twice.to_reader(), file) == 1
        read = file.read_text() if kind is ExportFormat.CSV else pa.ipc.open_file(file).read_all()
        assert read == ("a,a\n1,2\n" if kind is ExportFormat.CSV else twice)
    else:
        with pytest.raises(InvalidSqlError, match="'a'"):
            export(twice.to_reader(), file)
        assert file.read_text() == "before"
        assert [path.name for path in tmp_path.iterdir()] == [file.name]
