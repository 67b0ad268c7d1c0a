"""An edited text, whatever it is, becomes exactly the rows that it shows, and keeps what others changed meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import CommitConflictError
from lakehouse_platform.nfs.edits.changes import GhostImage, plan_changes
from lakehouse_platform.nfs.edits.locate import locate
from lakehouse_platform.text.csv_edit import parse_lines, render_table
from lakehouse_platform.text.csv_write import csv_header
from lakehouse_platform_tests.support.arbitrary import same, tables
from lakehouse_platform_tests.support.byte_image import ByteContent, ByteImage, spliced

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.string()), pa.field("x", pa.float64())])
_TEXTS = st.sampled_from(["", "a", "b,c", 'q"', "l\nl", None])
_ROW = st.tuples(st.integers(0, 9), _TEXTS, st.sampled_from([1.5, 2.0, None]))
_EDIT = st.tuples(st.sampled_from(["delete", "insert", "change"]), st.integers(0, 99), _ROW)

Row = tuple[Any, ...]


def _table(rows: list[Row]) -> pa.Table:
    columns = [[row[number] for row in rows] for number in range(len(SCHEMA))]
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def _rows(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


def _all_rows(image: ByteImage) -> list[Row]:
    return [row for rows in image.files.values() for row in _rows(rows)]


def _text(rows: list[Row]) -> bytes:
    return csv_header(SCHEMA) + render_table(_table(rows))


def _edited(rows: list[Row], edits: list[tuple[str, int, Row]]) -> list[Row]:
    rows = list(rows)
    for kind, place, row in edits:
        if kind == "insert" or not rows:
            rows.insert(place % (len(rows) + 1), row)
        elif kind == "delete":
            del rows[place % len(rows)]
        else:
            rows[place % len(rows)] = row
    return rows


@st.composite
def images(draw: st.DrawFn, *, keyed: bool = False) -> ByteImage:
    """An image of up to four files, keyed by unique ids or with rows that repeat."""
    if keyed:
        ids = iter(draw(st.permutations(range(20))))
        files = draw(st.lists(st.lists(_ROW, max_size=5), max_size=4))
        files = [[(next(ids), *row[1:]) for row in rows] for rows in files]
    else:
        files = draw(st.lists(st.lists(_ROW, max_size=6), max_size=4))
    return ByteImage(
        {f"f{n}": _table(rows) for n, rows in enumerate(files)}, SCHEMA, ("id",) if keyed else ()
    )


@given(tables())
def test_lines_are_parsed_into_the_rows_they_show(table: pa.Table) -> None:
    lines = render_table(table)
    parsed = parse_lines(lines, table.schema.names, table.schema)

    assert same(parsed, table)
    assert render_table(parsed) == lines


@given(images(), st.lists(_EDIT, max_size=6))
def test_an_edit_of_the_newest_version_makes_the_table_what_the_text_shows(
    image: ByteImage, edits: list[tuple[str, int, Row]]
) -> None:
    text = _text(_edited(_all_rows(image), edits))

    changes = plan_changes(image, ByteContent(text))
    result = spliced(image, locate(changes, image))

    assert Counter(_all_rows(result)) == Counter(
        _rows(parse_lines(text.split(b"\n", 1)[1], SCHEMA.names, SCHEMA))
    )
    removed, added = Counter(_all_rows(image)), Counter(_all_rows(result))
    assert changes.deleted + changes.updated == (removed - added).total()
    assert changes.added.num_rows == (added - removed).total()


@given(images(keyed=True), st.lists(_EDIT, max_size=6))
def test_rows_keep_the_order_of_the_text_unless_rows_were_only_moved(
    image: ByteImage, edits: list[tuple[str, int, Row]]
) -> None:
    rows = _edited(_all_rows(image), [(k, p, (20 + n, *r[1:])) for n, (k, p, r) in enumerate(edits)])

    result = spliced(image, locate(plan_changes(image, ByteContent(_text(rows))), image))

    assert result.data == _text(rows)


@given(images(), st.randoms())
def test_another_order_of_rows_is_no_change(image: ByteImage, random: Any) -> None:
    rows = _all_rows(image)
    random.shuffle(rows)

    assert plan_changes(image, ByteContent(_text(rows))).is_empty


@given(images(), st.permutations(SCHEMA.names), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_the_same_rows_written_in_another_way_are_no_change(
    image: ByteImage, names: list[str], end: str, mark: bool, whole: bool
) -> None:
    lines = [",".join(names)]
    for row in _all_rows(image):
        values = dict(zip(SCHEMA.names, row, strict=True))
        lines.append(",".join(_quoted(values[name]) for name in names))
    data = ("\ufeff" * mark + "".join(line + end for line in lines)).encode()

    assert plan_changes(image, ByteContent(data if whole else data.removesuffix(end.encode()))).is_empty


def _quoted(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return "" if value is None else '"' + text.replace('"', '""') + '"'


@given(images(), st.lists(_EDIT, max_size=4), st.lists(_EDIT, max_size=4))
def test_what_a_client_wrote_before_can_be_edited_again(
    image: ByteImage, first: list[tuple[str, int, Row]], second: list[tuple[str, int, Row]]
) -> None:
    once = _edited(_all_rows(image), first)
    twice = _edited(once, second)
    published = spliced(image, locate(plan_changes(image, ByteContent(_text(once))), image))
    ghost = GhostImage(ByteContent(_text(once)), SCHEMA)

    result = spliced(published, locate(plan_changes(ghost, ByteContent(_text(twice))), published))

    assert Counter(_all_rows(result)) == Counter(twice)


def _changed(image: ByteImage, edits: list[tuple[str, int, Row]], compacted: bool) -> ByteImage:
    """Return a newer version of an image: other rows, in the same files or in one new file."""
    text = _text(_edited(_all_rows(image), edits))
    newer = spliced(image, locate(plan_changes(image, ByteContent(text)), image))
    if not compacted:
        return newer
    return ByteImage({"compacted": _table(_all_rows(newer))}, SCHEMA, image.key)


@given(images(keyed=True), st.lists(_EDIT, max_size=3), st.lists(_EDIT, max_size=3), st.booleans())
def test_concurrent_edits_of_keyed_rows_are_both_kept_or_conflict(
    image: ByteImage, mine: list[tuple[str, int, Row]], theirs: list[tuple[str, int, Row]], compacted: bool
) -> None:
    base = {row[0]: row for row in _all_rows(image)}
    my_rows = {row[0]: row for row in _edited(list(base.values()), _with_ids(mine, 20))}
    newer = _changed(image, _with_ids(theirs, 30), compacted)
    their_rows = {row[0]: row for row in _all_rows(newer)}
    changes = plan_changes(image, ByteContent(_text(list(my_rows.values()))))

    if _conflicting(base, my_rows, their_rows):
        with pytest.raises(CommitConflictError):
            locate(changes, newer)
        return
    result = spliced(newer, locate(changes, newer))

    assert {row[0]: row for row in _all_rows(result)} == _merged(base, my_rows, their_rows)
    assert len(_all_rows(result)) == len(_merged(base, my_rows, their_rows))


def _with_ids(edits: list[tuple[str, int, Row]], first: int) -> list[tuple[str, int, Row]]:
    return [(kind, place, (first + number, *row[1:])) for number, (kind, place, row) in enumerate(edits)]


def _merged(base: Mapping[int, Row], mine: Mapping[int, Row], theirs: Mapping[int, Row]) -> dict[int, Row]:
    touched = {key for key in {*base, *mine} if base.get(key) != mine.get(key)}
    kept = {key: row for key, row in theirs.items() if key not in touched}
    return kept | {key: mine[key] for key in touched if key in mine}


def _conflicting(base: Mapping[int, Row], mine: Mapping[int, Row], theirs: Mapping[int, Row]) -> bool:
    touched = {key for key in {*base, *mine} if base.get(key) != mine.get(key)}
    return any(base.get(key) != theirs.get(key) and (key in mine or key in theirs) for key in touched)


@given(images(), st.lists(_EDIT, max_size=3), st.lists(_ROW, max_size=3), st.booleans())
def test_rows_that_another_writer_appends_stay(
    image: ByteImage, mine: list[tuple[str, int, Row]], theirs: list[Row], compacted: bool
) -> None:
    rows = _edited(_all_rows(image), mine)
    files = {"compacted": _table(_all_rows(image))} if compacted else dict(image.files)
    newer = ByteImage({**files, "appended": _table(theirs)}, SCHEMA)

    result = spliced(newer, locate(plan_changes(image, ByteContent(_text(rows))), newer))

    assert Counter(_all_rows(result)) == Counter(rows + theirs)
