"""An edit meets a newer version."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_platform.errors import CommitConflictError
from lakehouse_platform.nfs.edits.changes import GhostImage, plan_changes
from lakehouse_platform.nfs.edits.locate import Splices, locate
from lakehouse_platform.nfs.edits.positions import row_positions
from lakehouse_platform.text.csv_edit import parse_lines
from lakehouse_platform.text.csv_lines import row_starts
from lakehouse_platform_tests.support.byte_image import ByteContent, ByteImage, spliced

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
HEADER = b"id,name\n"


def _image(*, key: tuple[str, ...] = (), **files: str) -> ByteImage:
    tables = {path: parse_lines(text.encode(), SCHEMA.names, SCHEMA) for path, text in files.items()}
    return ByteImage(tables, SCHEMA, key)


def _located(base: ByteImage, text: bytes, head: ByteImage) -> Splices:
    return locate(plan_changes(base, ByteContent(HEADER + text)), head)


BASE = _image(a="1,a\n2,b\n", b="3,c\n4,d\n")


def test_live_files_are_cut_at_the_same_positions() -> None:
    splices = _located(BASE, b"1,a\n2,B\n4,d\n", _image(a="1,a\n2,b\n", b="3,c\n4,d\n", c="9,z\n"))

    assert [
        (file.path, [(cut.start, cut.stop, cut.rows.to_pylist()) for cut in file.cuts])
        for file in splices.files
    ] == [
        ("a", [(1, 2, [{"id": 2, "name": "B"}])]),
        ("b", [(0, 1, [])]),
    ]
    assert splices.appended is None
    assert (splices.counts.inserted, splices.counts.updated, splices.counts.deleted) == (0, 1, 1)


def test_rows_of_vanished_files_are_found_by_their_lines() -> None:
    head = _image(compacted="9,z\n1,a\n2,b\n3,c\n4,d\n")

    result = spliced(head, _located(BASE, b"1,a\n2,B\n4,d\n", head))

    assert result.data == HEADER + b"9,z\n1,a\n2,B\n4,d\n"


def test_a_file_with_another_number_of_rows_counts_as_vanished() -> None:
    head = _image(a="2,b\n", b="3,c\n4,d\n")

    assert spliced(head, _located(BASE, b"1,a\n2,B\n3,c\n4,d\n", head)).data == HEADER + b"2,B\n3,c\n4,d\n"


def test_rows_at_the_end_are_appended() -> None:
    splices = _located(BASE, b"1,a\n2,b\n3,c\n4,d\n5,e\n", BASE)

    assert splices.files == ()
    assert splices.appended is not None
    assert splices.appended.to_pylist() == [{"id": 5, "name": "e"}]


@pytest.mark.parametrize(
    "head", [{"a": "1,a\n2,b\n", "b": "3,c\n4,d\n", "c": "9,z\n"}, {"a": "1,a\n2,b\n", "n": "4,d\n9,z\n"}]
)
def test_a_file_of_only_the_header_removes_the_rows_that_it_had(head: dict[str, str]) -> None:
    splices = _located(BASE, b"", _image(**head))

    assert spliced(_image(**head), splices).data == HEADER + b"9,z\n"
    assert splices.counts.deleted == (4 if "b" in head else 3)


def test_no_change_is_nothing_to_commit() -> None:
    assert _located(BASE, b"4,d\n1,a\n2,b\n3,c\n", BASE).is_empty


def test_a_file_that_loses_all_rows_is_one_cut() -> None:
    splices = _located(BASE, b"3,c\n4,d\n", BASE)

    assert [(cut.start, cut.stop) for cut in splices.files[0].cuts] == [(0, 2)]


def test_a_row_inserted_in_a_large_file_goes_to_the_end() -> None:
    large = "".join(f"{number},{'x' * 200}\n" for number in range(50_000))
    base = _image(a="100000,a\n100001,b\n", large=large)
    text = base.data[len(HEADER) :]

    inside = _located(base, text.replace(b"\n7,", b"\n-1,new\n7,"), base)
    between = _located(base, text.replace(b"\n0,", b"\n-1,new\n0,"), base)
    rewritten = _located(base, text.replace(b"\n7,x", b"\n-1,new\n7,y"), base)

    assert (inside.files, inside.appended is not None) == ((), True)
    assert [(file.path, file.cuts[0].start) for file in between.files] == [("a", 2)]
    assert [(file.path, file.cuts[0].rows.num_rows) for file in rewritten.files] == [("large", 2)]


@pytest.mark.parametrize(
    ("text", "head", "words"),
    [
        (b"1,a\n2,B\n", {"n": "1,a\n2,theirs\n"}, "id = 2 was changed by another writer too"),
        (b"1,a\n2,B\n", {"n": "1,a\n"}, "'2,b' was changed or deleted"),
        (b"1,a\n", {"n": "1,a\n2,theirs\n"}, "id = 2 was changed by another writer too"),
        (
            b"1,a\n2,b\n3,mine\n",
            {"a": "1,a\n2,b\n", "n": "3,theirs\n"},
            "another writer added a row with id = 3",
        ),
    ],
)
def test_both_changing_one_row_is_a_conflict(text: bytes, head: dict[str, str], words: str) -> None:
    with pytest.raises(CommitConflictError) as caught:
        _located(_image(key=("id",), a="1,a\n2,b\n"), text, _image(key=("id",), **head))

    assert words in caught.value.message


def test_deleting_a_row_that_is_gone_already_is_no_conflict() -> None:
    splices = _located(_image(key=("id",), a="1,a\n2,b\n"), b"1,a\n", _image(key=("id",), n="1,a\n"))

    assert splices.is_empty
    assert splices.counts.deleted == 0


def test_equal_rows_are_each_found_once() -> None:
    head = _image(n="1,a\n1,a\n1,a\n")

    result = spliced(head, _located(_image(a="1,a\n1,a\n1,a\n"), b"1,a\n", head))

    assert result.data == HEADER + b"1,a\n"


def test_of_equal_rows_another_one_is_changed_where_a_writer_deleted_the_first() -> None:
    base = _image(a="1,a\n2,b\n", b="1,a\n3,c\n")
    head = _image(n="2,b\n", b="1,a\n3,c\n")
    changed = _located(base, b"1,A\n2,b\n1,a\n3,c\n", head)
    assert spliced(head, changed).data == HEADER + b"2,b\n1,A\n3,c\n"
    deleted = _located(base, b"2,b\n3,c\n", head)
    assert spliced(head, deleted).data == HEADER + b"2,b\n3,c\n"


def test_an_edit_of_what_the_client_wrote_is_found_wherever_it_is_now() -> None:
    ghost = GhostImage(ByteContent(b'id,name\r\n1,"a"\r\n2,b\r\n'), SCHEMA)

    splices = locate(plan_changes(ghost, ByteContent(b'id,name\r\n1,"a"\r\n2,c\r\n3,d\r\n')), BASE)

    assert spliced(BASE, splices).data == HEADER + b"1,a\n2,c\n3,c\n4,d\n3,d\n"


@pytest.mark.parametrize("special", ["", "\0"])
def test_a_file_with_very_many_cuts_is_handed_over_whole_unless_a_text_cannot_be_read_back(
    special: str,
) -> None:
    rows = pa.table([range(22_000), [f"n{n}{special}" for n in range(22_000)]], schema=SCHEMA)
    base = ByteImage({"a": rows}, SCHEMA)
    lines = base.data[len(HEADER) :].splitlines(keepends=True)
    lines[::2] = [line.replace(b"n", b"N").replace(b"\0", b"") for line in lines[::2]]
    lines[15_001:15_001] = [b"-1,new\n"]

    splices = _located(base, b"".join(lines), base)

    assert len(splices.files[0].cuts) == (11_000 if special else 1)
    assert spliced(base, splices).data == HEADER + b"".join(lines)


def test_positions_of_many_rows_are_counted_and_of_few_looked_up() -> None:
    base = _image(
        a="".join(f"{n},x\n" for n in range(3000)), empty="", b="".join(f"{n},y\n" for n in range(3000))
    )
    starts = len(HEADER) + row_starts(base.data[len(HEADER) :])[:-1]
    expected = [(0, n) for n in range(3000)] + [(2, n) for n in range(3000)]
    for chosen in (np.arange(6000), np.array([0, 2999, 3000, 5999]), np.array([], np.int64)):
        segments, rows = row_positions(base, starts[chosen])

        assert list(zip(segments.tolist(), rows.tolist(), strict=True)) == [expected[at] for at in chosen]


def test_a_row_inserted_where_a_file_and_a_deleted_row_are_gone_is_not_lost() -> None:
    head = _image(n="2,b\n", b="3,c\n4,d\n")

    result = spliced(head, _located(BASE, b"5,e\n2,b\n3,c\n4,d\n", head))

    assert sorted(result.data.splitlines()) == sorted((HEADER + b"2,b\n3,c\n4,d\n5,e\n").splitlines())


def test_of_equal_rows_that_are_all_deleted_one_may_be_gone_already() -> None:
    base, head = _image(a="0,x\n0,x\n1,a\n"), _image(n="0,x\n1,a\n")

    assert spliced(head, _located(base, b"1,a\n", head)).data == HEADER + b"1,a\n"
