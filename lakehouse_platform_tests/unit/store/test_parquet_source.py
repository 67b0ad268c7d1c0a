"""Parquet files: one stream of one schema, in the order of their paths, without loss."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_platform.errors import SourceFormatError, SourceNotFoundError
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.parquet_source import ParquetOptions, open_parquet
from lakehouse_platform_tests.support.s3_server import S3Server


def put(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def rows(source: Any, **options: Any) -> pa.Table:
    with open_parquet(source, ParquetOptions(**options)) as opened:
        try:
            return opened.reader.read_all()
        finally:
            opened.raise_pending()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three files, one of them below, and things that are not to be read."""
    put(tmp_path / "b.parquet", id=[2], s=["b"])
    put(tmp_path / "a.parquet", s=["a"], id=[1])
    put(tmp_path / "deep" / "c.parquet", id=[3], s=["c"])
    put(tmp_path / "_log" / "x.parquet", other=[1])
    put(tmp_path / ".hidden.parquet", other=[1])
    (tmp_path / "notes.txt").write_text("not Parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("", [1, 2, 3]),
        ("*.parquet", [1, 2]),
        ("**/*.parquet", [1, 2, 3]),
        ("[ab].parquet", [1, 2]),
        ("?.parquet", [1, 2]),
        ("b.parquet", [2]),
        ("d*/c.*", [3]),
    ],
)
def test_files_are_read_in_the_order_of_their_paths(folder: Path, pattern: str, ids: list[int]) -> None:
    assert rows(folder / pattern)["id"].to_pylist() == ids


def test_hidden_files_are_read_if_the_pattern_names_them(folder: Path) -> None:
    assert rows(folder / ".hidden.*").column_names == ["other"]
    assert rows(folder / "_log/*.parquet").column_names == ["other"]


def test_the_folder_of_a_delta_table_is_refused_because_it_may_hold_old_files(folder: Path) -> None:
    put(folder / "_delta_log" / "00000000000000000010.checkpoint.parquet", add=[1])

    with pytest.raises(SourceFormatError, match="is a Delta table"):
        open_parquet(folder)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    put(tmp_path / "a[1].parquet", id=[1])
    put(tmp_path / "a1.parquet", id=[2])

    assert rows(tmp_path / "a[1].parquet")["id"].to_pylist() == [1]


@pytest.mark.parametrize("place", ["absent.parquet", "*.orc", "absent/*.parquet"])
def test_nothing_that_matches_is_an_error(folder: Path, place: str) -> None:
    with pytest.raises(SourceNotFoundError, match="No file matches"):
        open_parquet(folder / place)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"id": [1]}, "'s' is string in .*a.parquet', but absent in .*b.parquet"),
        ({"id": [1], "s": ["x"], "t": [1]}, "'t' is absent in"),
        ({"id": [1.5], "s": ["x"]}, "'id' is int64 in .*, but double in"),
        ({"id": pa.array([1], pa.int32()), "s": ["x"]}, "int32"),
        ({"ID": [1], "s": ["x"]}, "'id' is int64"),
    ],
)
def test_files_with_other_columns_are_refused(tmp_path: Path, other: dict[str, Any], reason: str) -> None:
    put(tmp_path / "a.parquet", id=[1], s=["a"])
    put(tmp_path / "b.parquet", **other)

    with pytest.raises(SourceFormatError, match=reason):
        open_parquet(tmp_path)


def test_a_column_is_not_null_only_if_it_is_in_every_file(tmp_path: Path) -> None:
    strict = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"id": [1]}, schema=strict), tmp_path / "a.parquet")
    put(tmp_path / "b.parquet", id=[None, 2])

    assert rows(tmp_path)["id"].to_pylist() == [1, None, 2]
    assert rows(tmp_path / "a.parquet").schema == strict


NS = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("array", "data_type", "values"),
    [
        (pa.array([255], pa.uint8()), pa.int16(), [255]),
        (pa.array([2**32 - 1], pa.uint32()), pa.int64(), [2**32 - 1]),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string(), ["a", None, "a"]),
        (pa.array(["a"], pa.large_string()), pa.string(), ["a"]),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
        (
            pa.array([NS], pa.timestamp("ns", "UTC")),
            pa.timestamp("us", "UTC"),
            [datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)],
        ),
        (
            pa.array([1_700_000_000_000], pa.timestamp("ms", "Europe/Berlin")),
            pa.timestamp("us", "UTC"),
            [datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)],
        ),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 2)), pa.decimal128(5, 2), [Decimal("1.50")]),
        (pa.array([[1]], pa.large_list(pa.uint8())), pa.list_(pa.int16()), [[1]]),
        (
            pa.array([{"x": "a"}], pa.struct([("x", pa.large_string())])),
            pa.struct([("x", pa.string())]),
            [{"x": "a"}],
        ),
        (pa.array([None, None], pa.null()), pa.string(), [None, None]),
    ],
)
def test_types_of_other_makers_keep_their_values(
    tmp_path: Path, array: pa.Array, data_type: pa.DataType, values: list[Any]
) -> None:
    put(tmp_path / "a.parquet", c=array)

    table = rows(tmp_path / "a.parquet")

    assert (table.schema.field("c").type, table["c"].to_pylist()) == (data_type, values)


@pytest.mark.parametrize(
    "array",
    [pa.array([1], pa.uint64()), pa.array([1], pa.duration("us")), pa.array([1], pa.time64("us"))],
    ids=str,
)
def test_a_type_that_no_table_holds_is_named(tmp_path: Path, array: pa.Array) -> None:
    put(tmp_path / "a.parquet", c=array)

    with pytest.raises(
        SourceFormatError, match=f"Column 'c' of .*a.parquet' is {array.type}".replace("[", r"\[")
    ):
        open_parquet(tmp_path / "a.parquet")


def test_nanoseconds_that_would_be_lost_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", c=pa.array([NS, NS + 1], pa.timestamp("ns")))

    with pytest.raises(SourceFormatError, match=r"Column 'c' of .*a.parquet', in rows 1 to 2"):
        rows(tmp_path / "a.parquet")


def test_files_are_matched_to_a_schema_by_name(tmp_path: Path) -> None:
    wanted = pa.schema([("s", pa.string()), ("id", pa.int64()), ("extra", pa.date32())])
    put(tmp_path / "a.parquet", id=pa.array([1], pa.int32()), s=["x"])

    table = rows(tmp_path / "a.parquet", schema=wanted)

    assert table.schema == wanted
    assert table.to_pylist() == [{"s": "x", "id": 1, "extra": None}]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ([("id", pa.int64())], "'s' of the files is no column"),
        ([("id", pa.string()), ("s", pa.string())], "'id' is int64 in the files, but string"),
        ([("id", pa.int8()), ("s", pa.string())], "does not fit int8"),
        ([("id", pa.int64()), ("s", pa.string()), pa.field("k", pa.int8(), nullable=False)], "no column 'k'"),
        ([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())], "NULL stands"),
    ],
)
def test_files_that_do_not_fit_a_schema_are_refused(tmp_path: Path, wanted: list[Any], reason: str) -> None:
    put(tmp_path / "a.parquet", id=[300, None], s=["x", "y"])

    with pytest.raises(SourceFormatError, match=reason):
        rows(tmp_path / "a.parquet", schema=pa.schema(wanted))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not Parquet at all"])
def test_a_file_that_is_not_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)

    with pytest.raises(SourceFormatError, match=r"a\.parquet' is damaged or not of the expected format"):
        open_parquet(tmp_path / "a.parquet")


def test_progress_ends_at_the_size_of_all_files(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    rows(folder, on_progress=lambda done, total: seen.append((done, total)))

    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.object_store
def test_files_in_an_object_store_are_found_by_pattern(s3: S3Server) -> None:
    place = Location(s3.fresh_uri(), s3.options)
    for number in (2, 1):
        with place.filesystem().open_output_stream(f"part-{number}.parquet") as sink:
            pq.write_table(pa.table({"id": [number]}), sink)

    for pattern in ("part-*.parquet", ""):
        source = f"{place.uri}/{pattern}".rstrip("/")
        assert rows(source, storage_options=s3.options)["id"].to_pylist() == [1, 2]
