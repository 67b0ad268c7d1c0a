from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tickets import Profile
from lakehouse_platform.nfs.tree.handles import HANDLE_SIZE, Handle, Kind, decode, encode, fsid, hash64

KEYS = st.binary(min_size=32, max_size=32)
HANDLES = st.builds(
    Handle,
    kind=st.sampled_from(Kind),
    mount=st.binary(min_size=4, max_size=4),
    profile=st.sampled_from(Profile),
    table=st.binary(min_size=8, max_size=8),
    param=st.integers(0, 2**64 - 1),
)


@given(HANDLES, KEYS)
def test_a_handle_says_the_same_after_it_was_with_a_client(handle: Handle, key: bytes) -> None:
    encoded = encode(handle, key)
    assert len(encoded) == HANDLE_SIZE
    assert decode(encoded, key) == handle


@given(HANDLES, KEYS, st.integers(0, HANDLE_SIZE * 8 - 1))
def test_a_handle_with_one_bit_changed_is_bad(handle: Handle, key: bytes, bit: int) -> None:
    changed = bytearray(encode(handle, key))
    changed[bit // 8] ^= 1 << bit % 8
    _assert_bad(bytes(changed), key)


@given(HANDLES, KEYS, KEYS)
def test_a_handle_of_another_server_is_bad(handle: Handle, key: bytes, other: bytes) -> None:
    if key != other:
        _assert_bad(encode(handle, key), other)


@given(st.binary(max_size=64))
def test_any_other_bytes_are_bad(data: bytes) -> None:
    _assert_bad(data, bytes(32))


@given(HANDLES, HANDLES)
def test_the_number_of_a_file_depends_on_what_it_is_and_not_on_the_mount(one: Handle, other: Handle) -> None:
    same = (one.kind, one.table, one.param) == (other.kind, other.table, other.param)
    assert (one.fileid == other.fileid) == same
    assert 0 < one.fileid < 2**64


def test_each_profile_is_a_file_system_of_its_own() -> None:
    assert len({fsid(profile, bytes(32)) for profile in Profile} | {hash64(b"")}) == 3


def test_another_object_of_the_same_mount_keeps_what_is_not_said() -> None:
    handle = Handle(Kind.DATA, b"abcd", Profile.BULK, b"12345678", 1)
    assert handle.to(Kind.CSV) == Handle(Kind.CSV, b"abcd", Profile.BULK, b"12345678", 0)


def _assert_bad(data: bytes, key: bytes) -> None:
    with pytest.raises(NfsError) as caught:
        decode(data, key)
    assert caught.value.status is Status.BADHANDLE
