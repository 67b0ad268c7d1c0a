"""Whatever can be said in NFS arrives as it was meant, packed by one implementation and unpacked by another."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.operations import (
    Access,
    Attributes,
    CreateMode,
    Entry,
    FileType,
    Found,
    Limits,
    Listing,
    Made,
    ReadData,
    ServerTime,
    SetAttributes,
    Space,
    Stable,
    Written,
)
from lakehouse_platform.nfs.wire import nfs3, nfs3_results
from lakehouse_platform.nfs.wire.nfs3 import Nfs3
from lakehouse_platform.nfs.wire.records import RecordAssembler
from lakehouse_platform.nfs.wire.rpc import Call, Reply, pull_call
from lakehouse_platform.nfs.wire.xdr import Unpacker
from lakehouse_platform_tests.support.nfs_client import auth_sys, call_message
from lakehouse_platform_tests.support.nfs_xdr import Reader, opaque, sattr, u32, u64

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
OFFSETS = st.integers(0, nfs3_results.MAX_OFFSET - 2**20)
TIMES = st.integers(0, 2**32 * 10**9 - 1)
HANDLES = st.binary(max_size=64)
NAMES = st.binary(min_size=1, max_size=255).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in {b".", b".."}
)
NEW_TIMES = st.none() | TIMES | st.builds(ServerTime)
NEW = st.builds(
    SetAttributes, mode=st.none() | st.integers(0, 0o7777), uid=st.none() | U32, gid=st.none() | U32,
    size=st.none() | OFFSETS, atime=NEW_TIMES, mtime=NEW_TIMES,
)  # fmt: skip
ATTRIBUTES = st.builds(
    Attributes, type=st.sampled_from(FileType), mode=U32, size=U64, fileid=U64, fsid=U64, uid=U32, gid=U32,
    mtime_ns=TIMES, ctime_ns=TIMES, atime_ns=TIMES, nlink=U32, used=st.integers(1, 2**64 - 1),
)  # fmt: skip
MAYBE = st.none() | ATTRIBUTES
ENTRIES = st.builds(
    Entry, name=NAMES, fileid=U64, cookie=U64, handle=st.none() | HANDLES, attributes=MAYBE
)  # fmt: skip


def pulled(procedure: Nfs3, message: bytes) -> tuple[object, ...]:
    unpacker = Unpacker(message)
    arguments = nfs3.PROGRAM.procedures[procedure].pull(unpacker)
    unpacker.finish()
    return arguments


def pushed(procedure: Nfs3, result: object, *arguments: object) -> Reader:
    results: Reply = nfs3.PROGRAM.procedures[procedure].push(arguments, result, b"verifier")
    reader = Reader(b"".join(results))
    assert reader.u32() == 0
    return reader


def same_time(one: object, other: object) -> bool:
    return isinstance(one, ServerTime) == isinstance(other, ServerTime) and (
        isinstance(one, ServerTime) or one == other
    )


def same(one: SetAttributes, other: SetAttributes) -> bool:
    without_times = replace(one, atime=None, mtime=None) == replace(other, atime=None, mtime=None)
    return without_times and same_time(one.atime, other.atime) and same_time(one.mtime, other.mtime)


@given(handle=HANDLES, new=NEW, guard=st.none() | TIMES)
def test_setattr_says_which_attributes_to_set(handle: bytes, new: SetAttributes, guard: int | None) -> None:
    told = u32(0) if guard is None else u32(1, *divmod(guard, 10**9))
    got_handle, got_new, got_guard = pulled(Nfs3.SETATTR, opaque(handle) + sattr(new) + told)
    assert (got_handle, got_guard) == (handle, guard)
    assert isinstance(got_new, SetAttributes)
    assert same(got_new, new)


@given(
    handle=HANDLES,
    name=NAMES,
    new=NEW,
    verifier=st.binary(min_size=8, max_size=8),
    mode=st.sampled_from(CreateMode),
)
def test_create_says_how(
    handle: bytes, name: bytes, new: SetAttributes, verifier: bytes, mode: CreateMode
) -> None:
    how = verifier if mode is CreateMode.EXCLUSIVE else sattr(new)
    got = pulled(Nfs3.CREATE, opaque(handle) + opaque(name) + u32(mode) + how)
    assert got[:3] == (handle, name, mode)
    assert got[4] == (verifier if mode is CreateMode.EXCLUSIVE else b"")
    assert isinstance(got[3], SetAttributes)
    assert same(got[3], SetAttributes() if mode is CreateMode.EXCLUSIVE else new)


@given(handle=HANDLES, name=NAMES, target=st.binary(max_size=4096), new=NEW)
def test_symlink_says_where_to(handle: bytes, name: bytes, target: bytes, new: SetAttributes) -> None:
    got = pulled(Nfs3.SYMLINK, opaque(handle) + opaque(name) + sattr(new) + opaque(target))
    assert got[:3] == (handle, name, target)


@given(source=HANDLES, name=NAMES, target=HANDLES, new_name=NAMES)
def test_rename_says_from_where_to_where(source: bytes, name: bytes, target: bytes, new_name: bytes) -> None:
    message = b"".join(map(opaque, (source, name, target, new_name)))
    assert pulled(Nfs3.RENAME, message) == (source, name, target, new_name)


@given(handle=HANDLES, offset=OFFSETS, data=st.binary(max_size=100), stable=st.sampled_from(Stable))
def test_write_carries_its_bytes(handle: bytes, offset: int, data: bytes, stable: Stable) -> None:
    got = pulled(Nfs3.WRITE, opaque(handle) + u64(offset) + u32(len(data), stable) + opaque(data))
    assert got == (handle, offset, data, stable)


@given(handle=HANDLES, offset=U64, count=U32)
def test_a_read_never_asks_for_more_than_one_transfer(handle: bytes, offset: int, count: int) -> None:
    got = pulled(Nfs3.READ, opaque(handle) + u64(offset) + u32(count))
    assert got == (handle, min(offset, nfs3_results.MAX_OFFSET), min(count, nfs3_results.MAX_TRANSFER))


@given(attributes=ATTRIBUTES)
def test_getattr_tells_every_attribute(attributes: Attributes) -> None:
    reader = pushed(Nfs3.GETATTR, attributes)
    assert reader.attributes() == attributes
    reader.end()


@given(handle=HANDLES, attributes=MAYBE, directory=MAYBE)
def test_lookup_and_create_tell_handle_and_attributes(
    handle: bytes, attributes: Attributes | None, directory: Attributes | None
) -> None:
    reader = pushed(Nfs3.LOOKUP, Found(handle, attributes, directory))
    assert (reader.opaque(), reader.post_op(), reader.post_op()) == (handle, attributes, directory)
    reader.end()
    reader = pushed(Nfs3.CREATE, Made(handle, attributes, directory))
    assert (reader.maybe(reader.opaque), reader.post_op(), reader.wcc()) == (handle, attributes, directory)
    reader.end()


@given(pieces=st.lists(st.binary(max_size=20)), eof=st.booleans(), attributes=MAYBE)
def test_read_sends_all_pieces_as_they_are(
    pieces: list[bytes], eof: bool, attributes: Attributes | None
) -> None:
    data = b"".join(pieces)
    reader = pushed(Nfs3.READ, ReadData([memoryview(piece) for piece in pieces], eof, attributes))
    assert (reader.post_op(), reader.u32(), reader.flag(), reader.opaque()) == (
        attributes,
        len(data),
        eof,
        data,
    )
    reader.end()


@given(count=U32, stable=st.sampled_from(Stable), attributes=MAYBE)
def test_write_and_commit_tell_the_verifier(
    count: int, stable: Stable, attributes: Attributes | None
) -> None:
    reader = pushed(Nfs3.WRITE, Written(count, stable, attributes))
    assert (reader.wcc(), reader.u32(), reader.u32(), reader.take(8)) == (
        attributes,
        count,
        stable,
        b"verifier",
    )
    reader.end()
    reader = pushed(Nfs3.COMMIT, attributes)
    assert (reader.wcc(), reader.take(8)) == (attributes, b"verifier")
    reader.end()


@given(
    space=st.builds(Space, total_bytes=U64, free_bytes=U64, total_files=U64, free_files=U64, attributes=MAYBE)
)
def test_fsstat_never_says_more_than_a_signed_number_holds(space: Space) -> None:
    reader = pushed(Nfs3.FSSTAT, space)
    assert reader.post_op() == space.attributes
    total, free, available, files, free_files, available_files = (reader.u64() for _ in range(6))
    most = nfs3_results.MAX_OFFSET
    assert (total, free, available) == (min(space.total_bytes, most), *[min(space.free_bytes, most)] * 2)
    assert (files, free_files) == (min(space.total_files, most), min(space.free_files, most))
    assert available_files == free_files
    assert reader.u32() == 0
    reader.end()


@given(attributes=MAYBE, granted=st.builds(Access, st.integers(0, 0x3F)), target=st.binary(max_size=100))
def test_access_readlink_and_fsinfo_end_where_they_should(
    attributes: Attributes | None, granted: Access, target: bytes
) -> None:
    reader = pushed(Nfs3.ACCESS, (granted, attributes))
    assert (reader.post_op(), reader.u32()) == (attributes, granted)
    reader.end()
    reader = pushed(Nfs3.READLINK, (target, attributes))
    assert (reader.post_op(), reader.opaque()) == (attributes, target)
    reader.end()
    reader = pushed(Nfs3.FSINFO, Limits(attributes))
    assert reader.post_op() == attributes
    reader.take(48)
    reader.end()


@given(
    entries=st.lists(ENTRIES, max_size=30),
    directory=MAYBE,
    plus=st.booleans(),
    names=st.integers(0, 2000),
    room=st.integers(1000, 4000),
)
def test_pages_of_a_listing_fit_and_miss_nothing(
    entries: list[Entry], directory: Attributes | None, plus: bool, names: int, room: int
) -> None:
    seen: list[Entry] = []
    for _ in range(len(entries) + 1):
        listing = Listing(entries[len(seen) :], directory)
        page, size, eof = _plus_page(listing, names, room) if plus else _page(listing, room)
        assert size <= room
        seen += page
        if eof:
            break
        assert page
    assert seen == (entries if plus else [replace(one, handle=None, attributes=None) for one in entries])


def _page(listing: Listing, room: int) -> tuple[list[Entry], int, bool]:
    reader = pushed(Nfs3.READDIR, listing, b"handle", 0, room)
    assert reader.post_op() == listing.directory
    assert reader.take(8) == bytes(8)
    entries: list[Entry] = []
    while reader.flag():
        entries.append(Entry(fileid=reader.u64(), name=reader.opaque(), cookie=reader.u64()))
    return _ended(reader, entries)


def _plus_page(listing: Listing, names: int, room: int) -> tuple[list[Entry], int, bool]:
    reader = pushed(Nfs3.READDIRPLUS, listing, b"handle", 0, names, room)
    assert reader.post_op() == listing.directory
    assert reader.take(8) == bytes(8)
    entries: list[Entry] = []
    while reader.flag():
        fileid, name, cookie, attributes = reader.u64(), reader.opaque(), reader.u64(), reader.post_op()
        entries.append(Entry(name, fileid, cookie, reader.maybe(reader.opaque), attributes))
    return _ended(reader, entries)


def _ended(reader: Reader, entries: list[Entry]) -> tuple[list[Entry], int, bool]:
    eof = reader.flag()
    reader.end()
    return entries, reader.position - 4, eof


@given(
    machine=st.binary(max_size=255),
    uid=U32,
    gids=st.lists(U32, max_size=16),
    xid=U32,
    body=st.binary(max_size=40),
)
def test_a_call_tells_who_and_what(machine: bytes, uid: int, gids: list[int], xid: int, body: bytes) -> None:
    call = pull_call(call_message(xid, 100003, 6, body, auth_sys(machine, uid, tuple(gids))))
    assert isinstance(call, Call)
    assert (call.xid, call.program, call.version, call.procedure) == (xid, 100003, 3, 6)
    who = call.credential
    assert (who.flavor, who.machine, who.uid, who.gids) == (1, machine, uid, (0, *gids))
    assert bytes(call.arguments.rest()) == body


@given(data=st.data(), records=st.lists(st.binary(min_size=1, max_size=60), max_size=8))
def test_records_survive_any_fragments_and_any_pieces(data: st.DataObject, records: list[bytes]) -> None:
    stream = b"".join(_fragmented(record, data) for record in records)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    assembler = RecordAssembler(60)
    got: list[bytes] = []
    for start, stop in itertools.pairwise([0, *cuts, len(stream)]):
        piece = bytearray(stream[start:stop])
        got += map(bytes, assembler.feed(memoryview(piece)))
        piece[:] = bytes(len(piece))
    assert got == records


def _fragmented(record: bytes, data: st.DataObject) -> bytes:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(record)), max_size=4)))
    pieces = [record[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(record)])]
    marks = [len(piece) for piece in pieces[:-1]] + [len(pieces[-1]) | 1 << 31]
    return b"".join(u32(mark) + piece for mark, piece in zip(marks, pieces, strict=True))
