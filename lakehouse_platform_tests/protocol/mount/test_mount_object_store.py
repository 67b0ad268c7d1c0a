"""A table on a real S3 server, as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.model.origin import Origin
from lakehouse_platform.nfs.service import NfsServer
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.protocol.mount.conftest import CSV, within
from lakehouse_platform_tests.support.nfs_client import NfsClient
from lakehouse_platform_tests.support.s3_server import S3Server
from lakehouse_platform_tests.support.tables import PEOPLE, people

pytestmark = pytest.mark.object_store


@pytest.fixture
def table(s3: S3Server) -> Table:
    """Three people on S3."""
    location = Location(f"{s3.fresh_uri()}/people", s3.options)
    made = Table(location, LakehouseConfig(), Origin()).create(PEOPLE)
    made.append(people(1, 2, 3))
    return made


def test_a_table_on_s3_is_read_edited_and_followed(table: Table, tmp_path: Path) -> None:
    with NfsServer(table, state_dir=tmp_path / "state") as server, NfsClient(server.port) as client:
        client.mount(server.exports["sync"])
        data, view = client.walk("data"), client.walk("data/data.csv")
        assert client.read_all(view) == CSV
        (parquet,) = (entry.name for entry in client.readdir(data) if entry.name.endswith(b".parquet"))
        assert client.read_all(client.lookup(data, parquet)).startswith(b"PAR1")
        table.append(people(4))
        assert within(2.0, lambda: client.getattr(view).size == len(CSV) + 8)
        handle = client.create(data, "t")
        client.write(handle, 0, CSV.replace(b"n1", b"m1"))
        client.rename(data, "t", data, "data.csv")
        # The row that came after the client had read the file was not touched.
        assert {row["name"] for row in table.scan().to_pylist()} == {"m1", "n2", "n3", "n4"}
        client.write(view, client.getattr(view).size, b"9,n9,30\n")
        client.getattr(view)
        assert b"n9" in client.read_all(view)
        assert client.read_all(client.walk(".versions/1/data.csv")) == CSV
        client.write(client.walk(".query"), 0, b"SELECT count(*) AS n FROM data")
        assert client.read_all(client.walk(".query")) == b"n\n5\n"
