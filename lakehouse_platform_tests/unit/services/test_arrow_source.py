import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.services.arrow_source import arrow_rows
from lakehouse_platform.store.source_files import SourceFile

MANY = 2**40


def stream(
    *batches: pa.RecordBatch, schema: pa.Schema | None = None, compression: str | None = None
) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, schema or batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def read(content: bytes, tmp_path: Path, most_bytes: int = MANY) -> pa.Table:
    path = tmp_path / "rows.arrow"
    path.write_bytes(content)
    file = SourceFile(pafs.LocalFileSystem(), str(path), "body", len(content))
    with arrow_rows(file, most_bytes) as source:
        try:
            return source.reader.read_all()
        except Exception:
            source.raise_pending()
            raise


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(list(columns.values()), names=list(columns))


def test_rows_of_every_flat_and_nested_type_come_through(tmp_path: Path) -> None:
    rows = batch(
        a=pa.array([1, None, 3]),
        b=pa.array(["x", "y", None]),
        c=pa.array(["x", "y", None], pa.string_view()),
        d=pa.array(["x", "y", "x"]).dictionary_encode(),
        e=pa.array([[1], None, []], pa.list_(pa.int8())),
        f=pa.array([{"g": 1.5}, None, {"g": None}]),
        g=pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        h=pa.nulls(3),
        i=pa.array([True, False, None]),
    )
    assert read(stream(rows, rows), tmp_path) == pa.Table.from_batches([rows, rows])


@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.int8()), pa.struct([("inner", pa.int8())])])
def test_names_that_are_no_text_are_refused(kind: pa.DataType, tmp_path: Path) -> None:
    content = stream(schema=pa.schema([("outer", kind)]))
    name = b"inner" if b"inner" in content else b"outer"
    with pytest.raises(SourceFormatError, match="is no sound Arrow IPC stream"):
        read(content.replace(name, b"\xff\xfe\xfd\xfc\xfb"), tmp_path)


def test_a_stream_without_batches_has_no_rows(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    assert read(stream(schema=schema), tmp_path) == schema.empty_table()


def test_large_batches_are_cut(tmp_path: Path) -> None:
    content = stream(batch(a=pa.array(range(200_000))))
    assert max(map(len, read(content, tmp_path).column("a").chunks)) == 65_536


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_buffers_are_refused_before_they_are_unpacked(tmp_path: Path, compression: str) -> None:
    content = stream(batch(a=pa.array([0] * 1000)), compression=compression)
    with pytest.raises(SourceFormatError, match=r"compressed.*gzip the whole body"):
        read(content, tmp_path)


def test_a_compressed_dictionary_is_refused_too(tmp_path: Path) -> None:
    plain = stream(batch(a=pa.array(["x" * 1000, "y"]).dictionary_encode()))
    packed = stream(batch(a=pa.array(["x" * 1000, "y"]).dictionary_encode()), compression="zstd")
    assert read(plain, tmp_path).num_rows == 2
    with pytest.raises(SourceFormatError, match="compressed"):
        read(packed, tmp_path)


@pytest.mark.parametrize("rows", [2**20, 2**62])
def test_rows_without_a_byte_are_refused(tmp_path: Path, rows: int) -> None:
    content = stream(batch(a=pa.nulls(7)))
    claims = content.replace(struct.pack("<q", 7), struct.pack("<q", rows))
    with pytest.raises(SourceFormatError, match=r"claims \d+ rows in 0 bytes"):
        read(claims, tmp_path)


def test_a_text_that_many_rows_share_counts_for_each_of_them(tmp_path: Path) -> None:
    text = "x" * 10_000
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int8()), pa.array([text]))
    content = stream(batch(a=shared))
    assert len(content) < 20_000
    assert read(content, tmp_path, 10_000_000).num_rows == 1000
    with pytest.raises(SourceFormatError, match="unpacks to more than 9999999 bytes"):
        read(content, tmp_path, 9_999_999)


def test_views_of_one_text_count_for_each_of_them(tmp_path: Path) -> None:
    one = pa.array(["x" * 10_000], pa.string_view())
    views = pa.Array.from_buffers(
        pa.string_view(), 1000, [None, pa.py_buffer(one.buffers()[1].to_pybytes() * 1000), one.buffers()[2]]
    )
    content = stream(batch(a=pa.ListArray.from_arrays(pa.array([0, 500, 1000], pa.int32()), views)))
    with pytest.raises(SourceFormatError, match="unpacks to more"):
        read(content, tmp_path, 9_999_999)


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array([1])),
        pa.array([[None], [None], []], pa.list_(pa.null())),
        pa.array([[1], [2], []], pa.list_view(pa.int8())),
        pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])]),
    ],
)
def test_types_that_claim_more_than_they_bring_are_refused_by_name(tmp_path: Path, column: pa.Array) -> None:
    with pytest.raises(SourceFormatError, match=r"column 'a' has type .* not taken") as refusal:
        read(stream(batch(a=column)), tmp_path)
    assert refusal.value.details["column"] == "a"


def test_what_follows_the_end_is_refused_and_not_lost(tmp_path: Path) -> None:
    content = stream(batch(a=pa.array([1])))
    with pytest.raises(SourceFormatError, match=r"\d+ bytes follow its end"):
        read(content + content, tmp_path)


def test_very_many_columns_are_refused(tmp_path: Path) -> None:
    wide = pa.record_batch([pa.array([1])] * 4097, names=[f"c{number}" for number in range(4097)])
    with pytest.raises(SourceFormatError, match="4097 columns"):
        read(stream(wide), tmp_path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"[]", b"ARROW1\0\0", b"\xff" * 64])
def test_what_is_no_stream_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SourceFormatError, match="no sound Arrow IPC stream"):
        read(content, tmp_path)


def test_texts_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    broken = stream(batch(a=pa.array(["needle"]))).replace(b"needle", b"nee\xffle")
    with pytest.raises(SourceFormatError, match="UTF"):
        read(broken, tmp_path)


def test_every_cut_and_every_changed_byte_is_read_whole_or_refused(tmp_path: Path) -> None:
    content = stream(batch(a=pa.array([1, 2, 3]), b=pa.array(["x", "yy", None]).dictionary_encode()))
    outcomes = set[str]()
    for place in range(0, len(content), 3):
        for changed in (
            content[:place],
            content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :],
        ):
            try:
                outcomes.add(f"rows {read(changed, tmp_path, 10_000_000).num_rows}")
            except SourceFormatError:
                outcomes.add("refused")
    assert "refused" in outcomes
