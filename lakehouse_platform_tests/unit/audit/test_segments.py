from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.audit.segments import (
    Segment,
    decode_segment,
    encode_header,
    encode_record,
)


def _write(directory: Path, first: int, *payloads: bytes) -> Path:
    segment = Segment(directory, "w", first)
    for payload in payloads:
        segment.append(encode_record(payload), 1)
    segment.close()
    return segment.path


def test_what_is_appended_is_read_back_with_its_numbers(tmp_path: Path) -> None:
    path = _write(tmp_path, 7, b"one", b"", b"three")
    assert decode_segment(path.read_bytes()) == [(7, b"one"), (8, b""), (9, b"three")]


def test_a_segment_cut_anywhere_gives_the_records_before_the_cut() -> None:
    records = [encode_record(b"x" * size) for size in (0, 1, 30)]
    data = encode_header(1) + b"".join(records)
    ends = [len(encode_header(1)) + sum(map(len, records[:n])) for n in range(4)]
    for cut in range(len(data) + 1):
        whole = sum(end <= cut for end in ends[1:])
        assert len(decode_segment(data[:cut])) == whole


def test_a_flipped_bit_ends_the_records_before_it() -> None:
    data = bytearray(encode_header(1) + encode_record(b"first") + encode_record(b"second"))
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1
        assert len(decode_segment(bytes(flipped))) < 2


def test_zeros_after_a_crash_are_no_records() -> None:
    data = encode_header(1) + encode_record(b"first")
    assert decode_segment(data + bytes(4096)) == [(1, b"first")]


def test_a_file_of_something_else_has_no_records() -> None:
    assert decode_segment(b"") == decode_segment(b"x" * 100) == []


def test_a_segment_that_cannot_be_begun_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Segment(tmp_path / "absent", "w", 1)
