"""Data files of a table on disk and in an object store, read through a server as they are."""

from __future__ import annotations

from pathlib import Path

from lakehouse_platform.model.origin import Origin
from lakehouse_platform.nfs.service import NfsServer
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.nfs_client import NfsClient
from lakehouse_platform_tests.support.tables import PEOPLE


def test_data_files_are_shown_byte_by_byte(place: Location, config: LakehouseConfig, tmp_path: Path) -> None:
    table = Table(place, config, Origin())
    table.create(PEOPLE)
    table.append([{"id": n, "name": f"{n * 7919 % 999983}" * 9, "age": 1} for n in range(60_000)])
    (file,) = table.data_files()
    with place.filesystem().open_input_file(file.path) as source:
        data = source.read()
    server = NfsServer(table, state_dir=tmp_path / "state")
    server.start()
    try:
        client = NfsClient(server.port)
        client.mount(server.exports["sync"])
        handle = client.walk(f"data/{file.path}")
        assert client.getattr(handle).size == len(data)
        assert client.read_all(handle) == data
        for offset in range(0, len(data), 300_007):
            assert bytes(client.read(handle, offset, 4096).data) == data[offset : offset + 4096]
        client.close()
    finally:
        server.shutdown()
