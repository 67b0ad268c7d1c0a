from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tickets import Profile
from lakehouse_platform.nfs.tree.handles import (
    HANDLE_SIZE,
    MOUNT_BYTES,
    USER_HANDLE_SIZE,
    Handle,
    Kind,
    decode,
    encode,
    fsid,
    hash64,
    is_users,
    owned,
    session_of,
    user_mount,
    user_of,
)

KEYS = st.binary(min_size=32, max_size=32)
HANDLES = st.builds(
    Handle,
    kind=st.sampled_from(Kind),
    mount=st.binary(min_size=4, max_size=4),
    profile=st.sampled_from(Profile),
    table=st.binary(min_size=8, max_size=8),
    param=st.integers(0, 2**64 - 1),
)

USER_MOUNTS = st.builds(user_mount, st.binary(min_size=4, max_size=4), st.uuids(), st.uuids())
USER_HANDLES = st.builds(replace, HANDLES, mount=USER_MOUNTS)


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


@given(USER_HANDLES, KEYS)
def test_a_handle_of_a_users_mount_says_the_same_after_it_was_with_a_client(
    handle: Handle, key: bytes
) -> None:
    encoded = encode(handle, key)
    assert len(encoded) == USER_HANDLE_SIZE
    assert decode(encoded, key) == handle


@given(USER_HANDLES, KEYS, st.integers(0, USER_HANDLE_SIZE * 8 - 1))
def test_a_handle_of_a_users_mount_with_one_bit_changed_is_bad(handle: Handle, key: bytes, bit: int) -> None:
    changed = bytearray(encode(handle, key))
    changed[bit // 8] ^= 1 << bit % 8
    _assert_bad(bytes(changed), key)


@given(HANDLES, KEYS)
def test_the_owners_handles_are_to_the_byte_what_they_were_before_users_had_any(
    handle: Handle, key: bytes
) -> None:
    fields = (1, handle.kind, handle.profile, 0, handle.mount, handle.table, handle.param)
    body = struct.pack(">BBBB4s8sQ", *fields)
    assert encode(handle, key) == body + hashlib.blake2s(body, digest_size=8, key=key).digest()


@given(st.binary(min_size=4, max_size=4), st.uuids(), st.uuids())
def test_a_users_mount_tells_whose_it_is(mount: bytes, session: UUID, user: UUID) -> None:
    made = user_mount(mount, session, user)
    assert (made[:MOUNT_BYTES], session_of(made), user_of(made)) == (mount, str(session), str(user))
    assert is_users(made)
    assert not is_users(mount)


@given(USER_MOUNTS, USER_MOUNTS)
def test_what_is_kept_for_a_user_is_kept_for_all_mounts_of_that_user_alone(one: bytes, other: bytes) -> None:
    assert (owned(one, b"place") == owned(other, b"place")) == (user_of(one) == user_of(other))
    assert owned(one[:MOUNT_BYTES], b"place") == b"place" != owned(one, b"place")


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
