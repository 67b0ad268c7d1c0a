"""A server of the mount in its own process, with tables to serve and a client, and a bare sender to compare it with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deltalake import write_deltalake

from bench.data import rows
from bench.nfs_peers import BareSender
from bench.workshop import Workshop
from lakehouse_platform_tests.support.mounted_lake import ServerProcess
from lakehouse_platform_tests.support.nfs_streams import StreamingClient

_FILES = 8  # of a table, unless told otherwise


@dataclass(frozen=True, slots=True)
class Mounted:
    """A client, and the mount of one server that serves all tables of a directory."""

    client: StreamingClient
    server: ServerProcess
    export: str

    def file(self, table: str) -> bytes:
        """Return the handle of a table's data.csv."""
        return self.client.walk(f"{table}/data/data.csv")


def serve(workshop: Workshop) -> Mounted:
    state = workshop.place / "state"
    state.mkdir(mode=0o700)
    lake = workshop.place / "lake"
    lake.mkdir(exist_ok=True)
    server = ServerProcess(str(lake), state).start()
    workshop.cleanup.callback(server.close)
    client = workshop.cleanup.enter_context(StreamingClient(server.port))
    export = server.ready["exports"]["sync"]
    client.mount(export)
    return Mounted(client, server, export)


def make_table(workshop: Workshop, name: str, count: int, files: int = _FILES) -> Path:
    place, size = workshop.place / "lake" / name, -(-count // files)
    for first in range(0, count, size):
        write_deltalake(place, rows(min(size, count - first), first), mode="append")
    return place


def bare_sender(workshop: Workshop, size: int) -> BareSender:
    sender = BareSender.start(size)
    workshop.cleanup.callback(sender.close)
    return sender
