"""A lakehouse that a real server exports and a real kernel mounts: tables are made, edited by tools, and looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.kernel_guest import PROFILES, KernelGuest

PEOPLE = Schema(
    [Field("id", "Int64"), Field("name", "String"), Field("age", "Int32"), Field("city", "String")]
)
ROWS = [
    {"id": 1, "name": "Alice", "age": 30, "city": "NYC"},
    {"id": 2, "name": "Bob", "age": 25, "city": "SF"},
    {"id": 3, "name": "Charlie", "age": 35, "city": "LA"},
]


@dataclass
class ServerProcess:
    """`lakehouse nfs serve` in a process of its own, which can be killed and started again.

    Attributes:
        source: What it serves.
        state: Its state directory.
        ready: The line that it prints once it answers.
    """

    source: str
    state: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    port: int = 0
    arguments: Sequence[str] = ()
    ready: dict[str, Any] = field(default_factory=dict[str, Any])
    _process: subprocess.Popen[str] | None = None

    def start(self) -> ServerProcess:
        """Start it and wait until it answers."""
        words = ["nfs", "serve", self.source, "--port", str(self.port), "--state", str(self.state), "--json"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lakehouse_platform", *words, *self.arguments],
            stdout=subprocess.PIPE,
            stderr=(self.state.parent / f"{self.state.name}.log").open("a"),
            text=True,
            env={**os.environ, **self.environment},
        )
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            log = (self.state.parent / f"{self.state.name}.log").read_text()
            raise RuntimeError(f"the server did not start: {log}")
        self.ready = json.loads(line)
        self.port = self.ready["port"]  # the same after a restart
        return self

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process
        return self._process.pid

    def kill(self) -> None:
        """End it as a crash does."""
        assert self._process
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float = 30) -> int:
        """End it as an operator does; return its exit status."""
        assert self._process
        self._process.terminate()
        return self._process.wait(seconds)

    def close(self) -> None:
        """End it if it runs."""
        if self._process and self._process.poll() is None:
            self.kill()


@dataclass
class MountedTable:
    """A table, the guest in which it is mounted, and where.

    Attributes:
        table: The table itself, for looking at what landed.
        guest: Runs the tools.
        directory: The table's `data` directory in the guest.
        profile: How it is mounted.
    """

    table: Table
    guest: KernelGuest
    directory: str
    profile: str

    def run(self, command: str, timeout_s: float = 120) -> tuple[int, str]:
        """Run a command in the table's data directory."""
        return self.guest.run(f"cd {self.directory} && {command}", timeout_s)

    def rows(self) -> list[dict[str, Any]]:
        """Return the table's rows by their first column."""
        rows = self.table.scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: [(value is not None, str(value)) for value in row.values()])

    def ids(self) -> list[int]:
        """Return the ids, ordered."""
        return sorted(row["id"] for row in self.rows())

    def settled_version(self, above: int, within_s: float = 8.0) -> int:
        """Return the version once it is above a number and nothing more follows; the number itself if none comes."""
        return settled_versions([(self, above)], within_s)[0]


def settled_versions(tables: Sequence[tuple[MountedTable, int]], within_s: float = 8.0) -> list[int]:
    """Return the versions of tables, once each is above its number and nothing more follows."""

    def landed() -> Iterator[bool]:
        return (mounted.table.version() > above for mounted, above in tables)

    deadline = time.monotonic() + within_s
    while not all(landed()) and time.monotonic() < deadline:
        time.sleep(0.05)
    if any(landed()):
        time.sleep(0.6)  # a second commit for the same edit would come after the quiet time
    return [mounted.table.version() for mounted, _ in tables]


class MountedLake:
    """A lakehouse, its server, and its mounts in guests."""

    def __init__(self, directory: Path, place: Location | None = None) -> None:
        """Start the server of a new lakehouse.

        Args:
            directory: Where the server's state is, and the lakehouse too if it has no other place.
            place: Where the lakehouse is.
        """
        place = place or Location(str(directory / "lake"), {})
        options = dict(place.options)
        self.directory = directory
        self.store = DeltaStore(
            LakehouseConfig(base_path=place.uri, storage_options=options, durability="os")
        )
        (directory / "lake").mkdir(parents=True)
        (directory / "state").mkdir(mode=0o700)
        environment = {"LAKEHOUSE_STORAGE_OPTIONS": json.dumps(options)} if options else {}
        self.server = ServerProcess(place.uri, directory / "state", environment).start()
        self._tables = 0

    def mount(self, guest: KernelGuest, profile: str, at: str) -> None:
        """Mount the whole lakehouse in a guest."""
        guest.mount(self.server.port, self.server.ready["exports"][profile], at, PROFILES[profile])

    def table(self, **arguments: Any) -> Table:
        """Create a table with the three people."""
        self._tables += 1
        name = f"people{self._tables}"
        table = self.store.table(name)
        schema = arguments.pop("schema", PEOPLE)
        rows = arguments.pop("rows", ROWS)
        table.create(schema, **arguments)
        if rows:
            table.append(rows)
        return table

    def close(self) -> None:
        """End the server."""
        self.server.close()
