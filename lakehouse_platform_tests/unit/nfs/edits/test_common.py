"""What two contents share at their beginnings and ends, in whole rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.common import skip_common, skip_common_end
from lakehouse_platform.nfs.edits.side import Side
from lakehouse_platform_tests.support.byte_image import ByteContent

SCHEMA = pa.schema([("a", pa.string())])
_ROWS = st.lists(st.sampled_from([b"a\n", b"b\n", b'"\n"\n', b'"a\n\n"\n', b'""""\n']), max_size=8)


def _side(rows: list[bytes]) -> Side:
    return Side.of(ByteContent(b"".join(rows)), ("a",), SCHEMA, 0, is_canonical=True)


def _shared(left: list[bytes], right: list[bytes]) -> int:
    """Return how many rows two lists share at their beginnings."""
    pairs = [one == other for one, other in zip(left, right, strict=False)]
    return pairs.index(False) if False in pairs else len(pairs)


@given(_ROWS, _ROWS)
def test_equal_rows_at_the_beginning_are_skipped(left: list[bytes], right: list[bytes]) -> None:
    ours, theirs = _side(left), _side(right)

    skipped = skip_common(ours, theirs, 0, 0, ours.end, theirs.end)

    assert skipped == len(b"".join(left[: _shared(left, right)]))


@given(_ROWS, _ROWS)
def test_rows_skipped_at_the_end_are_equal_and_all_but_one_at_most(
    left: list[bytes], right: list[bytes]
) -> None:
    ours, theirs = _side(left), _side(right)

    skipped = skip_common_end(ours, theirs, 0, 0, ours.end, theirs.end)

    shared = _shared(left[::-1], right[::-1])
    sizes = [len(b"".join(rows)) for rows in (left[len(left) - n :] for n in range(shared + 1))]
    assert skipped in sizes[max(0, shared - 1) :]


@pytest.mark.parametrize("size", [10, 40_000, 200_000, 5_000_000])
def test_blocks_of_any_size_are_compared(size: int) -> None:
    row = b"x" * size + b"\n"
    ours, theirs = _side([b"1\n", row, b"2\n", row, b"3\n"]), _side([b"1\n", row, b"9\n", row, b"3\n"])

    assert skip_common(ours, theirs, 0, 0, ours.end, theirs.end) == 2 + len(row)
    assert skip_common_end(ours, theirs, 0, 0, ours.end, theirs.end) == 2 + len(row)


@pytest.mark.parametrize(
    ("data", "columns", "end"),
    [
        (b"h\na\nb", 2, 6),
        (b"h\na\n\n\r\n", 2, 4),
        (b"h\na\r\n\n", 2, 5),
        (b"h\n\n\n", 2, 2),
        (b"h\na\n\n", 1, 5),
        (b"h\na\n" + b"\n" * 200_000, 2, 4),
        (b"h\n", 2, 2),
        (b"h", 2, 1),
    ],
)
def test_rows_end_before_the_empty_lines_at_the_end(data: bytes, columns: int, end: int) -> None:
    names = tuple("ab"[:columns])
    schema = pa.schema([(name, pa.string()) for name in names])
    start = min(2, len(data))

    assert Side.of(ByteContent(data), names, schema, start, is_canonical=False).end == end
