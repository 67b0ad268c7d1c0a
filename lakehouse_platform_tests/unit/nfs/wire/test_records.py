"""Records: put together from any pieces, bounded before anything is kept."""

from __future__ import annotations

import tracemalloc

import pytest

from lakehouse_platform.nfs.wire.records import RecordAssembler
from lakehouse_platform_tests.support.nfs_client import marked
from lakehouse_platform_tests.support.nfs_xdr import u32


def fed(assembler: RecordAssembler, data: bytes) -> list[bytes]:
    return [bytes(record) for record in assembler.feed(memoryview(data))]


def test_several_records_in_one_piece_come_out_one_by_one() -> None:
    assert fed(RecordAssembler(10), marked(b"one") + marked(b"two") + marked(b"")) == [b"one", b"two", b""]


def test_a_record_that_comes_byte_by_byte_comes_out_once() -> None:
    assembler = RecordAssembler(10)
    pieces = [bytes([byte]) for byte in marked(b"slowly")]
    assert [record for piece in pieces for record in fed(assembler, piece)] == [b"slowly"]


def test_fragments_are_joined() -> None:
    assert fed(RecordAssembler(10), u32(3) + b"one" + u32(0) + marked(b"two")) == [b"onetwo"]


def test_a_record_keeps_its_bytes_when_the_buffer_it_came_in_is_used_again() -> None:
    buffer = bytearray(marked(b"kept"))
    (record,) = RecordAssembler(10).feed(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert bytes(record) == b"kept"


@pytest.mark.parametrize(
    "hostile",
    [u32(11), u32(0xFFFFFFFF), u32(10) + bytes(10) + u32(1), (u32(1) + b"x") * 11, u32(5) + bytes(5) + u32(0x80000006)],
    ids=["one fragment", "the longest", "their sum", "many small", "the last"],
)  # fmt: skip
def test_more_than_the_limit_is_refused_before_it_is_kept(hostile: bytes) -> None:
    with pytest.raises(ValueError, match="more than 10 bytes"):
        fed(RecordAssembler(10), hostile)


def test_records_before_the_one_that_is_too_long_still_come_out() -> None:
    got: list[bytes | bytearray] = []
    with pytest.raises(ValueError, match="more than 10"):
        got.extend(RecordAssembler(10).feed(memoryview(marked(b"fine") + u32(11))))
    assert got == [b"fine"]


def test_an_announced_length_takes_no_memory() -> None:
    assembler = RecordAssembler(1 << 30)
    tracemalloc.start()
    try:
        assert fed(assembler, u32(0xC0000000 - (1 << 10)) + b"x") == []
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
