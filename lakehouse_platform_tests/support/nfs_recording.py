"""Valid calls of every procedure, as a real client sends them."""

from __future__ import annotations

import struct

from lakehouse_platform.nfs.operations import Access, CreateMode, SetAttributes, Stable
from lakehouse_platform_tests.support.memory_filesystem import MemoryFilesystem
from lakehouse_platform_tests.support.nfs_client import MOUNT, NFS, PORTMAP, NfsClient, NfsStatusError
from lakehouse_platform_tests.support.nfs_server import nfs_server
from lakehouse_platform_tests.support.nfs_xdr import opaque, u32


class _Recorder(NfsClient):
    """Keeps every call that it sends."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.calls: list[bytes] = []

    def send_raw(self, data: bytes) -> None:
        (word,) = struct.unpack_from(">I", data)
        if word != 0x80000000 | (len(data) - 4):
            raise AssertionError("more than one record")
        self.calls.append(data[4:])
        super().send_raw(data)


def prepared_filesystem() -> MemoryFilesystem:
    """Return the file system whose handles the recorded calls carry."""
    filesystem = MemoryFilesystem(max_file=1 << 20)
    filesystem.add_file("data/data.csv", b"a,b\n1,2\n")
    for number in range(40):
        filesystem.add_file(f"many/file-{number}", b"x")
    return filesystem


def recorded_calls() -> list[bytes]:
    """Return the records of one call or more of each procedure of NFS, MOUNT and the port mapper."""
    with nfs_server(prepared_filesystem()) as server, _Recorder(server.port) as client:
        root = client.mount("/export")
        _ask_around(client, root)
        _change(client, root)
        return client.calls


def _ask_around(client: _Recorder, root: bytes) -> None:
    for program, procedure in (
        (NFS, 0),
        (MOUNT, 0),
        (MOUNT, 2),
        (MOUNT, 4),
        (MOUNT, 5),
        (PORTMAP, 0),
        (PORTMAP, 4),
    ):
        client.call(program, procedure)
    client.call(PORTMAP, 3, u32(NFS, 3, 6, 0))
    client.unmount("/export")
    handle = client.walk("data/data.csv")
    client.getattr(handle)
    client.access(handle, Access.READ | Access.MODIFY)
    client.read_all(handle)
    client.readdir(client.walk("many"), 500)
    client.readdirplus(client.walk("many"), 500, 2000)
    client.fsstat(root)
    client.fsinfo(root)
    client.pathconf(root)


def _change(client: _Recorder, root: bytes) -> None:
    made = client.create(
        root, "made", CreateMode.GUARDED, SetAttributes(mode=0o600, size=0, atime=1, mtime=2)
    )
    client.create(root, "only", CreateMode.EXCLUSIVE, verifier=b"12345678")
    client.write(made, 0, b"hello" * 20, Stable.UNSTABLE)
    client.commit(made)
    client.setattr(made, SetAttributes(size=3), client.getattr(made).ctime_ns)
    client.mkdir(root, "directory", SetAttributes(mode=0o755))
    client.readlink(client.symlink(root, "link", "../target"))
    client.rename(root, "made", client.walk("directory"), "moved")
    client.remove(client.walk("directory"), "moved")
    client.rmdir(root, "directory")
    for procedure in (11, 15):
        try:
            client.operate(procedure, opaque(root) + opaque(b"name") + u32(7, 0))
        except NfsStatusError as refused:
            if refused.status.name != "NOTSUPP":
                raise
