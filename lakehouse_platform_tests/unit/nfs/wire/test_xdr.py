"""Taking XDR apart never reads past the end and never believes a length."""

from __future__ import annotations

from struct import Struct

import pytest

from lakehouse_platform.nfs.wire.xdr import MALFORMED, Unpacker, opaque


def test_numbers_are_big_endian() -> None:
    unpacker = Unpacker(bytes(range(12)))
    assert unpacker.uint() == 0x00010203
    assert unpacker.hyper() == 0x0405060708090A0B


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_number_that_is_cut_off_is_malformed(size: int) -> None:
    with pytest.raises(MALFORMED):
        Unpacker(bytes(size)).uint()
    with pytest.raises(MALFORMED):
        Unpacker(bytes(size + 4)).hyper()
    with pytest.raises(MALFORMED):
        Unpacker(bytes(size + 4)).numbers(Struct(">2I"))


def test_a_boolean_is_0_or_1() -> None:
    unpacker = Unpacker(bytes([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]))
    assert [unpacker.flag(), unpacker.flag()] == [False, True]
    with pytest.raises(ValueError, match="2 is no boolean"):
        unpacker.flag()


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", b"abcd", b"abcde"])
def test_bytes_are_padded_to_four(data: bytes) -> None:
    packed = opaque(data)
    assert len(packed) % 4 == 0
    unpacker = Unpacker(packed + b"rest")
    assert bytes(unpacker.opaque(10)) == data
    assert bytes(unpacker.rest()) == b"rest"


def test_a_length_above_the_limit_is_malformed_even_if_the_bytes_are_there() -> None:
    with pytest.raises(ValueError, match="at most 3"):
        Unpacker(opaque(b"abcd")).opaque(3)


def test_a_length_without_its_bytes_is_malformed() -> None:
    with pytest.raises(ValueError, match="fewer follow"):
        Unpacker(b"\xff\xff\xff\xfc" + bytes(100)).opaque(1 << 32)


def test_missing_padding_is_malformed() -> None:
    with pytest.raises(ValueError, match="fewer follow"):
        Unpacker(b"\0\0\0\3abc").opaque(10)


def test_what_is_left_over_is_malformed() -> None:
    unpacker = Unpacker(bytes(8))
    unpacker.uint()
    with pytest.raises(ValueError, match="4 bytes too many"):
        unpacker.finish()
    unpacker.uint()
    unpacker.finish()
