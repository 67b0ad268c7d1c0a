"""NFS arguments that are refused, and results that are cut to what a client has room for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_platform.nfs.operations import (
    Attributes,
    Entry,
    FileType,
    Listing,
    NfsError,
    SetAttributes,
    Status,
)
from lakehouse_platform.nfs.wire.nfs3 import PROGRAM, Nfs3
from lakehouse_platform.nfs.wire.nfs3_results import post_op
from lakehouse_platform.nfs.wire.xdr import MALFORMED, Unpacker
from lakehouse_platform_tests.support.nfs_xdr import Reader, opaque, sattr, u32, u64

HANDLE = opaque(b"handle")
NEW = sattr(SetAttributes())
NAMED = {
    Nfs3.CREATE: lambda name: HANDLE + opaque(name) + u32(0) + NEW,
    Nfs3.MKDIR: lambda name: HANDLE + opaque(name) + NEW,
    Nfs3.SYMLINK: lambda name: HANDLE + opaque(name) + NEW + opaque(b"target"),
    Nfs3.REMOVE: lambda name: HANDLE + opaque(name),
    Nfs3.RMDIR: lambda name: HANDLE + opaque(name),
    Nfs3.RENAME: lambda name: HANDLE + opaque(b"good") + HANDLE + opaque(name),
    Nfs3.LOOKUP: lambda name: HANDLE + opaque(name),
}
ATTRIBUTES = Attributes(
    FileType.REGULAR, 0o644, 10, 1, 2, 3, 4, mtime_ns=5, ctime_ns=6, atime_ns=7, nlink=1, used=4096
)


def refusal(procedure: Nfs3, message: bytes) -> Status:
    with pytest.raises(NfsError) as caught:
        PROGRAM.procedures[procedure].pull(Unpacker(message))
    return caught.value.status


@pytest.mark.parametrize("procedure", NAMED, ids=lambda procedure: procedure.name)
@pytest.mark.parametrize("name", [b"", b"a/b", b"/", b"../etc", b"a\0b"])
def test_a_path_is_no_name(procedure: Nfs3, name: bytes) -> None:
    expected = Status.NOENT if procedure is Nfs3.LOOKUP else Status.INVAL
    assert refusal(procedure, NAMED[procedure](name)) is expected


@pytest.mark.parametrize("procedure", NAMED, ids=lambda procedure: procedure.name)
def test_a_name_of_256_bytes_is_too_long(procedure: Nfs3) -> None:
    assert refusal(procedure, NAMED[procedure](bytes(256))) is Status.NAMETOOLONG


@pytest.mark.parametrize("name", [b".", b".."])
def test_the_directory_itself_is_neither_made_nor_removed(name: bytes) -> None:
    for procedure in (Nfs3.CREATE, Nfs3.MKDIR, Nfs3.SYMLINK):
        assert refusal(procedure, NAMED[procedure](name)) is Status.EXIST
    for procedure in (Nfs3.REMOVE, Nfs3.RMDIR, Nfs3.RENAME):
        assert refusal(procedure, NAMED[procedure](name)) is Status.INVAL
    assert PROGRAM.procedures[Nfs3.LOOKUP].pull(Unpacker(NAMED[Nfs3.LOOKUP](name))) == (b"handle", name)


def test_a_write_that_announces_more_than_it_carries_is_invalid() -> None:
    message = HANDLE + u64(0) + u32(5, 2) + opaque(b"four")
    assert refusal(Nfs3.WRITE, message) is Status.INVAL


def test_a_write_that_carries_more_than_it_announces_writes_what_it_announces() -> None:
    message = HANDLE + u64(0) + u32(2, 2) + opaque(b"four")
    assert PROGRAM.procedures[Nfs3.WRITE].pull(Unpacker(message))[2] == b"fo"


def test_offsets_and_sizes_beyond_a_signed_number_are_too_big() -> None:
    assert refusal(Nfs3.WRITE, HANDLE + u64(2**63 - 2) + u32(4, 2) + opaque(b"four")) is Status.FBIG
    size = u32(0, 0, 0, 1) + u64(2**63) + u32(0, 0, 0)
    assert refusal(Nfs3.SETATTR, HANDLE + size) is Status.FBIG


def test_a_second_has_fewer_than_a_billion_nanoseconds() -> None:
    assert refusal(Nfs3.SETATTR, HANDLE + NEW + u32(1, 0, 10**9)) is Status.INVAL


def test_a_long_link_target_is_refused() -> None:
    assert refusal(Nfs3.SYMLINK, HANDLE + opaque(b"l") + NEW + opaque(bytes(4097))) is Status.NAMETOOLONG


@pytest.mark.parametrize(
    ("procedure", "message"),
    [
        (Nfs3.GETATTR, opaque(bytes(65))),
        (Nfs3.GETATTR, u32(0xFFFFFFFF)),
        (Nfs3.GETATTR, b""),
        (Nfs3.SETATTR, HANDLE + u32(2)),
        (Nfs3.SETATTR, HANDLE + u32(0, 0, 0, 0, 3, 0, 0)),
        (Nfs3.WRITE, HANDLE + u64(0) + u32(4, 3) + opaque(b"four")),
        (Nfs3.WRITE, HANDLE + u64(0) + u32(4, 2, 0xFFFFFFFF)),
        (Nfs3.CREATE, HANDLE + opaque(b"name") + u32(3)),
        (Nfs3.CREATE, HANDLE + opaque(b"name") + u32(2) + bytes(7)),
        (Nfs3.READDIR, HANDLE + u64(0) + bytes(8)),
        (Nfs3.LOOKUP, HANDLE + opaque(bytes(5000))),
    ],
)
def test_arguments_that_mean_nothing_are_malformed(procedure: Nfs3, message: bytes) -> None:
    with pytest.raises(MALFORMED):
        PROGRAM.procedures[procedure].pull(Unpacker(message))


def test_modes_lose_what_is_no_permission_and_access_what_is_no_right() -> None:
    new = PROGRAM.procedures[Nfs3.SETATTR].pull(Unpacker(HANDLE + u32(1, 0o100644, 0, 0, 0, 0, 0, 0)))[1]
    assert new == SetAttributes(mode=0o644)
    assert PROGRAM.procedures[Nfs3.ACCESS].pull(Unpacker(HANDLE + u32(0xFFFFFFFF)))[1] == 0x3F


def test_times_before_1970_and_after_2106_are_told_as_near_as_can_be() -> None:
    told = Reader(post_op(replace(ATTRIBUTES, mtime_ns=-1, ctime_ns=2**32 * 10**9))).post_op()
    assert told
    assert (told.mtime_ns, told.ctime_ns) == (0, (2**32 - 1) * 10**9)


def test_a_file_of_unknown_occupation_occupies_its_size() -> None:
    told = Reader(post_op(replace(ATTRIBUTES, used=0))).post_op()
    assert told
    assert told.used == 10


LISTING = Listing([Entry(b"name", 1, 3, b"handle", ATTRIBUTES), Entry(b"other", 2, 4)], None)


def listed(procedure: Nfs3, listing: Listing, *limits: int) -> bytes:
    return b"".join(PROGRAM.procedures[procedure].push((b"handle", 0, *limits), listing, b""))


@pytest.mark.parametrize(("procedure", "limits"), [(Nfs3.READDIR, [40]), (Nfs3.READDIRPLUS, [8192, 100])])
def test_a_client_without_room_for_one_entry_is_told_so(procedure: Nfs3, limits: list[int]) -> None:
    with pytest.raises(NfsError) as caught:
        listed(procedure, LISTING, *limits)
    assert caught.value.status is Status.TOOSMALL


def test_even_an_empty_listing_needs_some_room() -> None:
    assert listed(Nfs3.READDIR, Listing([], None), 20) == bytes(4 + 4 + 8 + 4) + u32(1)
    with pytest.raises(NfsError):
        listed(Nfs3.READDIR, Listing([], None), 19)


def test_the_room_for_names_is_a_wish_that_one_entry_may_exceed() -> None:
    one = listed(Nfs3.READDIRPLUS, LISTING, 0, 8192)
    assert one.endswith(u32(0, 0))
    assert b"name" in one
    assert b"other" not in one
    assert listed(Nfs3.READDIRPLUS, LISTING, 8192, 8192).endswith(u32(0, 1))


def test_a_reply_is_never_longer_than_one_transfer() -> None:
    many = Listing([Entry(b"name" * 60, number, number + 3) for number in range(10_000)], None)
    assert len(listed(Nfs3.READDIR, many, 0xFFFFFFFF)) <= 4 + (1 << 20)
    assert len(listed(Nfs3.READDIRPLUS, many, 0xFFFFFFFF, 0xFFFFFFFF)) <= 4 + (1 << 20)


@pytest.mark.parametrize(
    ("procedure", "words"),
    [
        (Nfs3.GETATTR, 0), (Nfs3.SETATTR, 2), (Nfs3.LOOKUP, 1), (Nfs3.ACCESS, 1), (Nfs3.READLINK, 1), (Nfs3.READ, 1),
        (Nfs3.WRITE, 2), (Nfs3.CREATE, 2), (Nfs3.MKDIR, 2), (Nfs3.SYMLINK, 2), (Nfs3.MKNOD, 2), (Nfs3.REMOVE, 2),
        (Nfs3.RMDIR, 2), (Nfs3.RENAME, 4), (Nfs3.LINK, 3), (Nfs3.READDIR, 1), (Nfs3.READDIRPLUS, 1),
        (Nfs3.FSSTAT, 1), (Nfs3.FSINFO, 1), (Nfs3.PATHCONF, 1), (Nfs3.COMMIT, 2),
    ],
)  # fmt: skip
def test_a_refusal_has_the_shape_of_rfc_1813(procedure: Nfs3, words: int) -> None:
    refused = b"".join(PROGRAM.procedures[procedure].refuse(Status.STALE))
    assert refused == u32(70) + bytes(4 * words)


def test_all_21_procedures_beside_null_are_there_and_changes_are_never_repeated() -> None:
    assert set(PROGRAM.procedures) == set(Nfs3)
    assert {number for number, procedure in PROGRAM.procedures.items() if not procedure.is_repeatable} == {
        Nfs3.SETATTR, Nfs3.WRITE, Nfs3.CREATE, Nfs3.MKDIR, Nfs3.SYMLINK, Nfs3.REMOVE, Nfs3.RMDIR, Nfs3.RENAME,
        Nfs3.COMMIT,
    }  # fmt: skip
