"""Every procedure, over a real connection to a real server."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pytest

from lakehouse_platform.nfs.operations import Access, CreateMode, FileType, SetAttributes, Stable, Status
from lakehouse_platform_tests.support.memory_filesystem import MemoryFilesystem
from lakehouse_platform_tests.support.nfs_client import (
    MOUNT,
    NFS,
    PORTMAP,
    NfsClient,
    NfsStatusError,
    RpcRefusedError,
)
from lakehouse_platform_tests.support.nfs_server import nfs_server
from lakehouse_platform_tests.support.nfs_xdr import opaque, u32


@dataclass
class Mounted:
    port: int
    client: NfsClient
    root: bytes
    filesystem: MemoryFilesystem


@pytest.fixture
def mounted() -> Generator[Mounted]:
    filesystem = MemoryFilesystem()
    filesystem.add_file("data/data.csv", b"a,b\n1,2\n")
    with nfs_server(filesystem) as server, NfsClient(server.port) as client:
        yield Mounted(server.port, client, client.mount("/export"), filesystem)


def refusal_of(error: pytest.ExceptionInfo[NfsStatusError]) -> Status:
    return error.value.status


def test_a_sub_path_can_be_mounted_and_others_cannot(mounted: Mounted) -> None:
    assert mounted.client.mount("/export/data") == mounted.client.lookup(mounted.root, "data")
    with pytest.raises(NfsStatusError) as refused:
        mounted.client.mount("/etc")
    assert refusal_of(refused) is Status.NOENT


def test_exports_are_listed_and_unmounting_is_noted(mounted: Mounted) -> None:
    assert mounted.client.exports() == [(b"/export", [b"everyone"])]
    mounted.client.unmount("/export")
    assert mounted.filesystem.unmounted == [b"/export"]
    assert mounted.client.call(MOUNT, 2).u32() == 0
    mounted.client.call(MOUNT, 4).end()


def test_the_port_mapper_names_this_very_port(mounted: Mounted) -> None:
    assert mounted.client.call(PORTMAP, 3, u32(NFS, 3, 6, 0)).u32() == mounted.port
    assert mounted.client.call(PORTMAP, 3, u32(MOUNT, 3, 6, 0)).u32() == mounted.port


def test_files_are_found_read_and_described(mounted: Mounted) -> None:
    handle = mounted.client.walk("data/data.csv")
    assert mounted.client.read_all(handle) == b"a,b\n1,2\n"
    assert mounted.client.read(handle, 4, 2).data == b"1,"
    assert not mounted.client.read(handle, 4, 2).eof
    assert mounted.client.read(handle, 8, 2) == mounted.client.read(handle, 1 << 63, 2)
    attributes = mounted.client.getattr(handle)
    assert (attributes.type, attributes.size) == (FileType.REGULAR, 8)
    assert mounted.client.access(handle, Access.READ | Access.MODIFY) == Access.READ | Access.MODIFY


def test_files_are_made_written_moved_and_removed(mounted: Mounted) -> None:
    client, root = mounted.client, mounted.root
    handle = client.create(root, "new", CreateMode.GUARDED, SetAttributes(mode=0o600))
    assert client.write(handle, 0, b"hello", Stable.UNSTABLE).verifier == client.commit(handle)
    assert client.write(handle, 5, b" world").committed is Stable.FILE_SYNC
    assert mounted.filesystem.content(handle) == b"hello world"
    client.truncate(handle, 5)
    client.rename(root, "new", client.walk("data"), "moved")
    assert client.read_all(client.walk("data/moved")) == b"hello"
    client.remove(client.walk("data"), "moved")
    with pytest.raises(NfsStatusError) as refused:
        client.getattr(handle)
    assert refusal_of(refused) is Status.STALE


def test_an_exclusive_file_is_made_once_and_its_maker_may_ask_again(mounted: Mounted) -> None:
    client, root = mounted.client, mounted.root
    handle = client.create(root, "lock", CreateMode.EXCLUSIVE, verifier=b"12345678")
    assert client.create(root, "lock", CreateMode.EXCLUSIVE, verifier=b"12345678") == handle
    with pytest.raises(NfsStatusError) as refused:
        client.create(root, "lock", CreateMode.EXCLUSIVE, verifier=b"87654321")
    assert refusal_of(refused) is Status.EXIST


def test_directories_and_links_are_made_and_removed(mounted: Mounted) -> None:
    client, root = mounted.client, mounted.root
    directory = client.mkdir(root, "d")
    link = client.symlink(directory, "l", "../data")
    assert client.readlink(link) == b"../data"
    with pytest.raises(NfsStatusError) as refused:
        client.rmdir(root, "d")
    assert refusal_of(refused) is Status.NOTEMPTY
    client.remove(directory, "l")
    client.rmdir(root, "d")
    assert [entry.name for entry in client.readdir(root)] == [b".", b"..", b"data"]


def test_a_guard_stops_a_change_to_a_file_that_has_changed(mounted: Mounted) -> None:
    handle = mounted.client.walk("data/data.csv")
    with pytest.raises(NfsStatusError) as refused:
        mounted.client.setattr(handle, SetAttributes(size=0), guard_ns=1)
    assert refusal_of(refused) is Status.NOT_SYNC
    assert mounted.client.setattr(handle, SetAttributes(mode=0o600), mounted.client.getattr(handle).ctime_ns)


@pytest.mark.parametrize("count", [300, 4096, 1 << 16])
def test_a_large_directory_is_listed_in_pages(mounted: Mounted, count: int) -> None:
    names = [f"file-{number}" for number in range(500)]
    for name in names:
        mounted.filesystem.add_file(f"many/{name}", b"x")
    directory = mounted.client.walk("many")
    expected = [".", "..", *names]
    assert [entry.name.decode() for entry in mounted.client.readdir(directory, count)] == expected
    plus = mounted.client.readdirplus(directory, count, max(count, 400))
    assert [entry.name.decode() for entry in plus] == expected
    assert plus[7].attributes == mounted.client.getattr(plus[7].handle or b"")


def test_limits_and_space_are_told(mounted: Mounted) -> None:
    info = mounted.client.fsinfo(mounted.root)
    assert (info.rtmax, info.wtmax, info.rtpref, info.time_delta_ns) == (1 << 20, 1 << 20, 1 << 20, 1)
    assert info.properties == 0x1A
    assert mounted.client.fsstat(mounted.root).available_bytes == 1 << 39
    assert mounted.client.pathconf(mounted.root).max_name == 255


def test_a_megabyte_goes_there_and_back(mounted: Mounted) -> None:
    data = bytes(range(256)) * 4096
    handle = mounted.client.create(mounted.root, "big")
    assert mounted.client.write(handle, 0, data, Stable.UNSTABLE).count == 1 << 20
    assert mounted.client.read(handle, 0, 0xFFFFFFFF).data == data
    assert mounted.client.write(handle, 0, data + b"more").count == 1 << 20


@pytest.mark.parametrize("procedure", [11, 15], ids=["MKNOD", "LINK"])
def test_what_is_not_supported_says_so(mounted: Mounted, procedure: int) -> None:
    with pytest.raises(NfsStatusError) as refused:
        mounted.client.operate(procedure, opaque(mounted.root) + opaque(b"name") + u32(7))
    assert refusal_of(refused) is Status.NOTSUPP


def test_an_unknown_program_is_unavailable_and_the_connection_stays(mounted: Mounted) -> None:
    with pytest.raises(RpcRefusedError) as refused:
        mounted.client.call(100227, 0)
    assert refused.value.why == (0, 1)
    mounted.client.call(NFS, 0).end()
