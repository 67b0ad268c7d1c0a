"""Operations at random, by several clients at once: each is answered, and the table stays a table."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from lakehouse_platform.nfs.operations import Access, CreateMode, SetAttributes, Stable
from lakehouse_platform_tests.protocol.mount.conftest import Served
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError

PLACES = [
    "",
    "people",
    "people/data",
    "people/data",
    "people/.query.d",
    "people/.versions",
    "people/.rejected",
]
FILES = ["data/data.csv", "data/data.csv", "data/data.json", ".query", "schema.sql", ".history"]
NAMES = [
    b"data.csv", b"data.csv~", b"data.json", b"schema.sql", b".query", b"data", b"people", b"a", b"b", b"x.sql",
    b".nfs1", b"dir", b"..", b".", b"", b"0", b"2099-01-01T00:00:00Z", b"x.parquet", b"users",
]  # fmt: skip
BODIES = [
    b"id,name,age\n1,n1,30\n2,n2,30\n", b"id,name,age\n", b"junk", b"", b"4,n4,1\n", b"SELECT 1 AS a", b"SELECT nope",
]  # fmt: skip


class Walker:
    """A client that does what comes to its mind."""

    def __init__(self, client: NfsClient, seed: int) -> None:
        self._client = client
        self._chance = random.Random(seed)
        self._places = [client.walk(path) for path in PLACES]
        self._handles = [client.walk(f"people/{path}") for path in FILES]
        self.statuses: list[str] = []

    def walk(self, steps: int) -> None:
        """Do some steps and note their statuses."""
        for _ in range(steps):
            try:
                self._chance.choice(self._steps())()
            except NfsStatusError as error:
                self.statuses.append(error.status.name)

    def _place(self) -> bytes:
        return self._chance.choice(self._places + self._handles[-3:])

    def _file(self) -> bytes:
        return self._chance.choice(self._handles + self._places[:1])

    def _found(self, handle: bytes) -> None:
        self._handles = [*self._handles[:12], handle]

    def _steps(self) -> list[Callable[[], object]]:
        client, chance, name = self._client, self._chance, self._chance.choice(NAMES)
        how = chance.choice([CreateMode.UNCHECKED, CreateMode.GUARDED])
        size = SetAttributes(size=chance.choice([None, 0, 0, 3]))
        return [
            lambda: self._found(client.lookup(self._place(), name)),
            lambda: self._found(client.create(self._place(), name, how, size)),
            lambda: self._found(
                client.create(self._place(), name, CreateMode.EXCLUSIVE, verifier=b"12345678")
            ),
            lambda: self._found(client.mkdir(self._place(), name)),
            lambda: self._found(client.symlink(self._place(), name, b"target")),
            lambda: client.remove(self._place(), name),
            lambda: client.rmdir(self._place(), name),
            lambda: client.rename(self._place(), name, self._place(), chance.choice(NAMES)),
            lambda: client.readdir(self._place(), 4096),
            lambda: client.readdirplus(self._place()),
            lambda: client.getattr(self._file()),
            lambda: client.access(self._file(), Access(0x3F)),
            lambda: client.read(self._file(), chance.choice([0, 5, 1 << 40]), chance.choice([0, 9, 1 << 20])),
            lambda: client.write(
                self._file(),
                chance.choice([0, 0, 12, 36]),
                chance.choice(BODIES),
                chance.choice(list(Stable)),
            ),
            lambda: client.truncate(self._file(), chance.choice([0, 12, 24, 5, 1 << 50])),
            lambda: client.setattr(self._file(), SetAttributes(mode=0o600), chance.choice([None, 5])),
            lambda: client.commit(self._file()),
            lambda: client.readlink(self._file()),
            lambda: client.fsstat(self._file()),
            lambda: client.pathconf(self._file()),
        ]


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_clients_do_breaks_the_server_or_the_table(served: Served, seed: int) -> None:
    walkers = [Walker(served.client(machine=b"m%d" % number), seed * 10 + number) for number in range(3)]
    threads = [threading.Thread(target=walker.walk, args=(400,)) for walker in walkers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = {status for walker in walkers for status in walker.statuses}
    assert statuses
    assert not statuses & {"SERVERFAULT", "BADHANDLE", "NOTSUPP"}
    served.stop()
    assert served.table.scan().to_arrow().schema.names == ["id", "name", "age"]
    served.start()
    view = served.client().walk("people/data")
    assert view
