"""What an edited text means."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.edits.changes import Changes, GhostImage, plan_changes
from lakehouse_platform.nfs.edits.locate import locate
from lakehouse_platform.text.csv_edit import render_table
from lakehouse_platform_tests.support.byte_image import ByteContent, ByteImage, spliced

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
HEADER = b"id,name,x\n"


def _image(*files: str, key: tuple[str, ...] = (), schema: pa.Schema = SCHEMA) -> ByteImage:
    from lakehouse_platform.text.csv_edit import parse_lines

    tables = {f"f{n}": parse_lines(text.encode(), schema.names, schema) for n, text in enumerate(files)}
    return ByteImage(tables, schema, key)


def _plan(image: ByteImage, text: bytes) -> Changes:
    return plan_changes(image, ByteContent(text))


def _counts(changes: Changes) -> tuple[int, int, int]:
    return changes.inserted, changes.updated, changes.deleted


BASE = _image("1,a,1.5\n2,b,\n", '3,"",2.0\n')


def test_the_same_text_is_no_change() -> None:
    assert _plan(BASE, BASE.data).is_empty


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (b'1,a,1.5\n2,b,\n3,"",2.0\n4,d,\n', (1, 0, 0)),
        (b"1,a,1.5\n2,b,\n", (0, 0, 1)),
        (b'1,a,1.5\n2,c,\n3,"",2.0\n', (0, 1, 0)),
        (b'0,n,\n1,a,1.5\n3,"",2.0\n', (1, 0, 1)),
        (b"", (0, 0, 3)),
    ],
)
def test_rows_are_inserted_updated_and_deleted(text: bytes, counts: tuple[int, int, int]) -> None:
    changes = _plan(BASE, HEADER + text)

    assert _counts(changes) == counts
    assert spliced(BASE, locate(changes, BASE)).data == HEADER + text


@pytest.mark.parametrize(
    "text",
    [
        b'id,name,x\n1,a,1.50\n"2","b",\n3,"",2\n',
        b'id,name,x\n3,"",2.0\n1,a,1.5\n2,b,\n',
        b'\xef\xbb\xbfid,name,x\r\n1,a,1.5\r\n2,b,\r\n3,"",2.0\r\n',
        b'x,id,name\n1.5,1,a\n,2,b\n2.0,3,""\n',
        b'id,name,x\n1,a,1.5\n2,b,\n3,"",2.0',
        b'id,name,x\n1,a,1.5\n2,b,\n3,"",2.0\n\n\r\n',
    ],
)
def test_another_way_to_write_the_same_rows_is_no_change(text: bytes) -> None:
    assert _plan(BASE, text).is_empty


def test_a_row_that_moved_and_changed_is_updated_in_its_place() -> None:
    changes = _plan(BASE, b"id,name,x\n3,new,2.0\n1,a,1.5\n2,b,\n")

    assert _counts(changes) == (0, 1, 0)
    assert spliced(BASE, locate(changes, BASE)).data == b"id,name,x\n1,a,1.5\n2,b,\n3,new,2.0\n"


def test_rows_without_a_key_are_paired_by_their_place() -> None:
    schema = pa.schema([("name", pa.string()), ("x", pa.float64())])
    image = _image("a,1.0\na,1.0\nb,2.0\n", schema=schema)

    changes = _plan(image, b"name,x\na,1.0\nc,1.0\nb,2.0\nd,\n")

    assert _counts(changes) == (1, 1, 0)


def test_an_inferred_key_that_repeats_does_not_pair() -> None:
    changes = _plan(_image("1,a,\n1,b,\n2,c,\n"), b"id,name,x\n1,z,\n1,y,\n2,c,\n")

    assert _counts(changes) == (0, 2, 0)


def test_removed_rows_are_read_on_demand() -> None:
    changes = _plan(BASE, b'id,name,x\n3,"",2.0\n')

    assert changes.removed_lines(np.array([False, True])) == b"2,b,\n"
    assert changes.removed_columns(np.array([True, True]), ("id",)).to_pylist() == [{"id": 1}, {"id": 2}]


def test_a_bad_line_is_named_by_its_line_in_the_text() -> None:
    with pytest.raises(RowError) as caught:
        _plan(BASE, b'id,name,x\n1,a,1.5\n2,b,\n3,"",2.0\n4,d,\n5,e,bad\n')

    assert (caught.value.line, caught.value.column) == (6, "x")


@pytest.mark.parametrize("text", [b"id,name,x\n1,a,1.5\n\n2,b,\n", b"x,name,id\n1.5,a,1\n\n,b,2\n"])
def test_an_empty_line_between_rows_is_refused(text: bytes) -> None:
    with pytest.raises(RowError, match="Line 3: the line is empty"):
        _plan(BASE, text)


def test_a_wrong_header_is_refused() -> None:
    with pytest.raises(RowError, match="must be the header"):
        _plan(BASE, b"1,a,1.5\n")


def test_a_column_that_may_be_left_out_becomes_null() -> None:
    changes = plan_changes(BASE, ByteContent(b'id,name\n1,a\n2,b\n3,""\n'), allow_missing=True)

    assert _counts(changes) == (0, 2, 0)
    assert changes.added.column("x").null_count == 2


def test_lines_of_a_ghost_are_compared_as_the_table_shows_them() -> None:
    ghost = GhostImage(ByteContent(b"id,name,x\r\n1,a,1.50\r\n2,b,\r\n"), SCHEMA)

    changes = plan_changes(ghost, ByteContent(b"id,name,x\n1,a,1.5\n"))

    assert _counts(changes) == (0, 0, 1)
    assert changes.removed_lines(np.array([True])) == b"2,b,\n"


def _many(rows: int) -> list[bytes]:
    return [b"%d,name %d,%d.5\n" % (number, number * 7919 % rows, number % 10) for number in range(rows)]


@pytest.mark.parametrize("changed", [1, 40, 5000])
def test_edits_of_many_rows_keep_the_order_of_the_text(changed: int) -> None:
    lines = _many(40_000)
    image = _image(b"".join(lines[:15_000]).decode(), b"".join(lines[15_000:]).decode())
    choice = random.Random(changed)
    for number in range(changed):
        place = choice.randrange(len(lines))
        edit = choice.choice(
            [[], [b"%d,new,\n" % (100_000 + number)], [lines[place], b"%d,,\n" % (200_000 + number)]]
        )
        lines[place : place + 1] = edit
    text = HEADER + b"".join(lines)

    result = spliced(image, locate(_plan(image, text), image))

    assert result.data == text


def test_a_shuffled_file_with_some_changes_is_only_those_changes() -> None:
    lines = _many(30_000)
    image = _image(b"".join(lines).decode())
    random.Random(1).shuffle(lines)
    edited = [*lines[:100], b"100000,new,\n", *lines[105:]]

    changes = _plan(image, HEADER + b"".join(edited))

    assert _counts(changes) == (1, 0, 5)
    assert Counter(spliced(image, locate(changes, image)).data.splitlines()) == Counter(
        (HEADER + b"".join(edited)).splitlines()
    )


def test_a_whole_file_written_in_another_form_keeps_the_order_of_its_new_rows() -> None:
    lines = _many(20_000)
    image = _image(b"".join(lines).decode())
    edited = [*lines[:9_000], b"100000,new,\n", *lines[9_000:]]
    quoted = [
        b",".join(b'"' + field + b'"' if field else b"" for field in line[:-1].split(b",")) for line in edited
    ]

    changes = _plan(image, HEADER + b"\n".join(quoted))

    assert spliced(image, locate(changes, image)).data == HEADER + b"".join(edited)


def test_every_row_changed_is_an_update_of_every_row() -> None:
    lines = _many(30_000)
    image = _image(b"".join(lines).decode())
    text = HEADER + b"".join(line.replace(b"name", b"NAME") for line in lines)

    changes = _plan(image, text)

    assert _counts(changes) == (0, 30_000, 0)
    assert spliced(image, locate(changes, image)).data == text


def test_rows_larger_than_all_blocks_are_compared() -> None:
    long = "x" * 300_000
    image = _image(f"1,{long},\n2,{long}y,\n3,c,\n")
    text = HEADER + f"1,{long},\n2,{long}z,\n3,c,\n".encode()

    changes = _plan(image, text)

    assert _counts(changes) == (0, 1, 0)
    assert render_table(changes.added) == f"2,{long}z,\n".encode()


def test_quotes_hide_line_ends_at_both_ends_of_the_difference() -> None:
    image = _image('1,"a\nb\n",\n2,"\n\n",\n3,"c\nd",\n')
    text = HEADER + b'1,"a\nb\n",\n2,"\nx\n",\n3,"c\nd",\n'

    changes = _plan(image, text)

    assert _counts(changes) == (0, 1, 0)
    assert spliced(image, locate(changes, image)).data == text
