import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidRowsError, SourceFormatError
from lakehouse_platform.services.sent_rows import SentForm, SentRows
from lakehouse_platform.store.merge import MergeSource

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("score", pa.float64())]
)
MB = 2**20


def arrow(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return sink.getvalue().to_pybytes()


ROWS = [{"id": 1, "name": "a", "score": 0.5}, {"id": 2, "name": None, "score": None}]
BODIES = {
    SentForm.JSON: json.dumps(ROWS).encode(),
    SentForm.NDJSON: b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
    SentForm.CSV: b"name,id,score\na,1,0.5\n,2,\n",
    SentForm.ARROW: arrow(ROWS),
}


def sent(form: SentForm, content: bytes, tmp_path: Path | None = None, most_json: int = MB) -> SentRows:
    held: bytes | Path = content
    if tmp_path is not None:
        held = tmp_path / "secret-name"
        held.write_bytes(content)
    return SentRows(form, held, len(content), 64 * MB, most_json)


def read(rows: SentRows, schema: pa.Schema = SCHEMA, *, evolve: bool = False) -> pa.Table:
    with rows.opened(schema, evolve=evolve) as source:
        try:
            return source.reader.read_all()
        except Exception:
            source.raise_pending()
            raise


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("form", SentForm)
def test_the_same_rows_come_out_of_every_form(form: SentForm, in_file: bool, tmp_path: Path) -> None:
    rows = sent(form, BODIES[form], tmp_path if in_file else None)
    assert read(rows).cast(SCHEMA).to_pylist() == ROWS


def test_one_json_object_is_one_row() -> None:
    assert read(sent(SentForm.JSON, b'{"id": 7}')).to_pylist() == [{"id": 7, "name": None, "score": None}]


@pytest.mark.parametrize(
    ("form", "content", "line", "column"),
    [
        (SentForm.JSON, b'[{"id": 1}, {"id": "x"}]', ("row", 2), "id"),
        (SentForm.JSON, b'[{"id": 1}, {"id": 2, "nmae": "x"}]', ("row", 2), "nmae"),
        (SentForm.JSON, b'[{"id": 1.5}]', ("row", 1), "id"),
        (SentForm.JSON, b'[{"name": "x"}]', ("row", 1), "id"),
        (SentForm.NDJSON, b'{"id": 1}\n{"id": true}\n', ("line", 2), "id"),
        (SentForm.CSV, b"id,name,score\n1,a,0.5\n2,b,high\n", ("line", 3), "score"),
        (SentForm.CSV, b"id,name\n1,a\n,b\n", ("line", 3), "id"),
        (SentForm.CSV, b"id,nmae\n1,a\n", None, "nmae"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_row_that_does_not_fit_is_named_with_its_line_and_column(
    form: SentForm, content: bytes, line: tuple[str, int] | None, column: str, in_file: bool, tmp_path: Path
) -> None:
    with pytest.raises((InvalidRowsError, SourceFormatError)) as refusal:
        read(sent(form, content, tmp_path if in_file else None))
    details = refusal.value.details
    assert details["column"] == column
    assert line is None or details[line[0]] == line[1]
    assert "secret-name" not in json.dumps(refusal.value.to_dict(), default=str)


@pytest.mark.parametrize("form", [SentForm.JSON, SentForm.NDJSON, SentForm.CSV])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\x00", b"[", b'{"id": 1', b'"', b"[[[[", b"\n\n1"])
def test_what_is_not_of_its_form_is_refused_or_empty(form: SentForm, content: bytes) -> None:
    with contextlib.suppress(InvalidRowsError, SourceFormatError):
        assert read(sent(form, content)).num_rows == 0


@pytest.mark.parametrize("form", [SentForm.JSON, SentForm.NDJSON, SentForm.CSV])
def test_gzip_inside_is_refused_and_not_unpacked(form: SentForm) -> None:
    with pytest.raises(SourceFormatError, match="gzip inside"):
        read(sent(form, gzip.compress(BODIES[form])))


def test_a_json_array_and_a_line_of_ndjson_have_a_limit() -> None:
    long = json.dumps([{"id": 1, "name": "x" * 2000}]).encode()
    with pytest.raises(SourceFormatError, match="may have 1000 bytes"):
        read(sent(SentForm.JSON, long, most_json=1000))
    line = json.dumps({"id": 1, "name": "x" * 9 * MB}).encode()
    with pytest.raises(SourceFormatError, match="longer than 1 MB"):
        read(sent(SentForm.NDJSON, line, most_json=MB))
    with pytest.raises(SourceFormatError, match="may have 1000 bytes"):
        sent(SentForm.NDJSON, long, most_json=1000).to_merge(SCHEMA)


def test_deeply_nested_json_is_refused() -> None:
    deep = b'[{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]"
    with pytest.raises(InvalidRowsError):
        read(sent(SentForm.JSON, deep))


def test_new_columns_come_with_arrow_and_csv_and_not_with_json() -> None:
    more = pa.schema([*SCHEMA, ("extra", pa.int32())])
    arrow_rows = read(sent(SentForm.ARROW, arrow([{"id": 1, "extra": 5}], more)), evolve=True)
    assert arrow_rows.schema.field("extra").type == pa.int32()
    csv_rows = read(sent(SentForm.CSV, b"id,extra\n1,5\n2,\n"), evolve=True)
    assert csv_rows.column("extra").to_pylist() == [5, None]
    with pytest.raises(SourceFormatError, match="add them first"):
        read(sent(SentForm.JSON, b'[{"id": 1, "extra": 5}]'), evolve=True)


def test_merging_json_tells_which_row_gives_which_column() -> None:
    found = sent(SentForm.JSON, b'[{"id": 1, "name": "x"}, {"id": 2, "_op": "DELETE"}]').to_merge(SCHEMA)
    assert isinstance(found, MergeSource)
    assert found.rows.column("_op").to_pylist() == [None, "DELETE"]
    assert "score" not in found.rows.column_names
    assert set(found.given) == {"name"}


def test_merging_csv_leaves_out_the_columns_that_its_header_does_not_name() -> None:
    found = sent(SentForm.CSV, b"_op,id,name\nDELETE,1,\n,2,x\n").to_merge(SCHEMA)
    assert isinstance(found, pa.Table)
    assert sorted(found.column_names) == ["_op", "id", "name"]
    assert found.column("_op").to_pylist() == ["DELETE", None]
    with pytest.raises(SourceFormatError, match="nmae"):
        sent(SentForm.CSV, b"id,nmae\n1,x\n").to_merge(SCHEMA)


def test_merging_arrow_takes_its_columns() -> None:
    found = sent(SentForm.ARROW, arrow(ROWS)).to_merge(SCHEMA)
    assert isinstance(found, pa.Table)
    assert found.to_pylist() == ROWS


def test_very_many_header_names_take_little_time() -> None:
    header = ",".join(f"c{number}" for number in range(200_000)).encode() + b"\n"
    with pytest.raises(SourceFormatError):
        read(sent(SentForm.CSV, header))
