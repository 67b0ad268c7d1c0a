"""The journal's files, against cuts and flips at any place and any cutting into segments."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.audit.segments import (
    Segment,
    decode_segment,
    encode_header,
    encode_record,
)
from lakehouse_platform.audit.writers import WriterLock

PAYLOADS = st.lists(st.binary(max_size=200), max_size=8)
FIRST = st.integers(1, 2**63)


def _whole(first: int, payloads: list[bytes]) -> bytes:
    return encode_header(first) + b"".join(map(encode_record, payloads))


@given(FIRST, PAYLOADS)
def test_any_records_are_read_back_with_their_numbers(first: int, payloads: list[bytes]) -> None:
    assert decode_segment(_whole(first, payloads)) == list(enumerate(payloads, first))


@given(FIRST, PAYLOADS, st.data())
def test_a_cut_leaves_exactly_the_records_before_it(
    first: int, payloads: list[bytes], data: st.DataObject
) -> None:
    written = _whole(first, payloads)
    cut = data.draw(st.integers(0, len(written)))
    whole = sum(len(_whole(first, payloads[: count + 1])) <= cut for count in range(len(payloads)))
    assert decode_segment(written[:cut]) == list(enumerate(payloads[:whole], first))


@given(FIRST, PAYLOADS, st.data())
def test_a_flipped_bit_leaves_no_wrong_record(first: int, payloads: list[bytes], data: st.DataObject) -> None:
    written = bytearray(_whole(first, payloads))
    place = data.draw(st.integers(0, len(written) - 1))
    written[place] ^= 1 << data.draw(st.integers(0, 7))
    found = decode_segment(bytes(written))
    assert found == list(enumerate(payloads, first))[: len(found)]
    assert len(found) < len(payloads) or not payloads


@given(st.binary(max_size=300))
def test_any_bytes_can_be_looked_at(data: bytes) -> None:
    assert decode_segment(data) == []


@given(FIRST, PAYLOADS, st.binary(max_size=60))
def test_what_follows_the_records_is_no_record(first: int, payloads: list[bytes], rest: bytes) -> None:
    assert decode_segment(_whole(first, payloads) + rest) == list(enumerate(payloads, first))


@given(st.lists(st.tuples(PAYLOADS.filter(bool), PAYLOADS), min_size=1, max_size=4))
def test_segments_give_each_record_once_though_refused_ones_stand_at_their_ends(
    segments: list[tuple[list[bytes], list[bytes]]],
) -> None:
    kept = [payload for payloads, _ in segments for payload in payloads]
    with tempfile.TemporaryDirectory() as place:
        directory, first = Path(place), 1
        for number, (payloads, refused) in enumerate(segments, 1):
            segment = Segment(directory, "w", first)
            # Nobody knows of a refused record at the very end, until a later segment says so.
            for payload in [*payloads, *(refused if number < len(segments) else [])]:
                segment.append(encode_record(payload), 1)
            segment.close()
            first += len(payloads)
        lock = WriterLock.take(directory, "w")
        assert lock is not None
        assert list(lock.records()) == list(enumerate(kept, 1))
        lock.close()
