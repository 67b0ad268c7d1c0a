"""Whatever a table holds, its images are what the writers make of its rows, and every slice is a part of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.nfs.tree.image import Form, Image
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.csv_source import CsvOptions, open_csv
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.json_rows import rows_from_json
from lakehouse_platform.text.json_write import table_to_json
from lakehouse_platform_tests.support.arbitrary import same, tables
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column
from lakehouse_platform_tests.support.tables import PEOPLE

_ROW = st.fixed_dictionaries(
    {
        "id": st.integers(0, 99),
        "name": st.none() | st.sampled_from(["", "a", 'x"\n"', "\n", ",", '"']),
        "age": st.none() | st.integers(0, 9),
    }
)


def whole(image: Image) -> bytes:
    return b"".join(image.read(0, image.size))


@given(tables(), st.data())
def test_every_type_is_shown_exactly(tmp_path: Path, table: pa.Table, data: st.DataObject) -> None:
    place = tmp_path / str(len(list(tmp_path.iterdir())))
    foreign = HandmadeTable(place / "lake" / "t")
    foreign.path.mkdir(parents=True)
    fields = [column(field.name, field.type) for field in table.schema]
    adds = foreign.add(table.slice(0, 2), name="a"), foreign.add(table.slice(2), name="b")
    foreign.create(fields, *adds, protocol=Protocol.with_features("timestampNtz"))
    cache = SegmentCache(place / "state", 1 << 20)
    images = Images(DeltaStore(LakehouseConfig(base_path=str(place / "lake"))).table("t"), cache)
    csv, lines, array = (images.refresh(form) for form in (Form.CSV, Form.JSONL, Form.JSON))
    rows = table.combine_chunks().to_batches()
    assert whole(csv) == csv_header(table.schema) + b"".join(map(csv_rows, rows))
    assert whole(array) == table_to_json(table).encode()
    assert same(rows_from_json(whole(lines), table.schema), table)
    (place / "t.csv").write_bytes(whole(csv))
    with open_csv(place / "t.csv", CsvOptions(schema=table.schema, delimiter=",")) as source:
        assert same(source.reader.read_all(), table)
    for image in (csv, lines, array):
        start, count = data.draw(st.integers(0, image.size)), data.draw(st.integers(0, image.size))
        assert b"".join(image.read(start, count)) == whole(image)[start : start + count]
    cache.close()


@settings(max_examples=20)
@given(st.lists(st.lists(_ROW, min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0, 300))
def test_each_row_is_found_at_its_offset_whatever_was_evicted(
    tmp_path: Path, appends: list[list[dict[str, object]]], budget: int
) -> None:
    place = tmp_path / str(len(list(tmp_path.iterdir())))
    table = DeltaStore(LakehouseConfig(base_path=str(place / "lake"), durability="os")).create("t", PEOPLE)
    cache = SegmentCache(place / "state", budget)
    images = Images(table, cache)
    images.refresh()
    for number, rows in enumerate(appends):
        table.append(rows)
        image = images.refresh()
        offset = image.segments[number].start
        for row in range(len(rows)):
            assert image.row_position(offset) == (number, row)
            offset += len(csv_rows(pa.RecordBatch.from_pylist([rows[row]], PEOPLE)))
        assert offset == image.size
    data = whole(images.refresh())
    for earlier in images.retained():
        assert whole(earlier) == data[: earlier.size]
    cache.close()
