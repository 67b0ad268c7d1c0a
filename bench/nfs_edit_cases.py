"""Edits through the mount, each until its commit is there."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from bench.data import rows
from bench.nfs_served import Mounted, make_table, serve
from bench.pairs import Pair, Side, Target
from bench.workshop import Case, Sizes, Workshop, pair, raw_fsync
from lakehouse_platform.nfs.operations import Stable
from lakehouse_platform.text.csv_write import csv_rows
from lakehouse_platform_tests.support.nfs_streams import BLOCK, StreamingClient

# Issue 3.
_APPEND = Target(ratio=1, overhead_ms=10)
_APPEND_WITH_KEY = Target(ratio=1, overhead_ms=30)
_SAME = Target(ratio=1.2, overhead_ms=0)
_SED = Target(ratio=1, overhead_ms=0, limit_ms=30_000)


def edit_cases(sizes: Sizes) -> tuple[Case, ...]:
    """Return the cases of edits."""
    large = f"{sizes.mount_rows:,} rows".replace(",", " ")
    return (
        Case("append of one line / raw commit with fsync", partial(_append, key=False), 61, _APPEND),
        Case(
            "append of one line, key / raw commit with fsync",
            partial(_append, key=True),
            61,
            _APPEND_WITH_KEY,
        ),
        Case(f"append of one line, {large} / young table", _append_to_large, 61, _SAME),
        Case("sed -i of one row in 1 GB / local file", _sed, 2, _SED),
    )


# ── Appending ─────────────────────────────────────────────────────────────────────────────────────────


class _Appender:
    """Appends a line as a kernel client does that mounts with `sync`: WRITE, and GETATTR when the file is closed."""

    def __init__(self, mounted: Mounted, table: str, first: int) -> None:
        self._client = mounted.client
        self._handle = mounted.file(table)
        self._size = mounted.client.getattr(self._handle).size
        self._numbers = count(first)
        self._line = b""

    def prepare(self) -> None:
        """Make the next line."""
        self._line = csv_rows(rows(1, next(self._numbers)).to_batches()[0])

    def append(self) -> None:
        """Append it, and check that it was published when the file was closed."""
        line = self._line
        self._client.write(self._handle, self._size, line, Stable.FILE_SYNC)
        size = self._client.getattr(self._handle).size
        if size != self._size + len(line):
            raise AssertionError("the line was not published when the file was closed")
        self._size = size


def _append(workshop: Workshop, *, key: bool) -> Pair:
    size = workshop.sizes.young_rows
    raw, _ = (make_table(workshop, name, size, 1) for name in ("raw", "ours"))
    if key:
        Workshop(workshop.place / "lake", workshop.sizes).store().table("ours").set_primary_key(["id"])
    mounted = serve(workshop)
    return Pair(_side(_RawAppender(raw, size)), _side(_Appender(mounted, "ours", size)))


def _side(appender: _RawAppender | _Appender) -> Side:
    return Side(appender.append, before=appender.prepare)


class _RawAppender:
    """Appends a row by the raw library, and forces it to disk as the store does."""

    def __init__(self, place: Path, first: int) -> None:
        self._place = str(place)
        self._numbers = count(first)
        self._version = DeltaTable(place).version()
        self._rows = rows(0)

    def prepare(self) -> None:
        """Make the next row."""
        self._rows = rows(1, next(self._numbers))

    def append(self) -> None:
        """Append it."""
        write_deltalake(self._place, self._rows, mode="append")
        self._version += 1
        raw_fsync(self._place, self._version)


def _append_to_large(workshop: Workshop) -> Pair:
    """Both sides through the mount: the small table and the large one."""
    sizes = {"young": workshop.sizes.young_rows, "large": workshop.sizes.mount_rows}
    for name, size in sizes.items():
        make_table(workshop, name, size, 1)
    mounted = serve(workshop)
    young, large = (_side(_Appender(mounted, name, size)) for name, size in sizes.items())
    return Pair(young, large)


# ── Rewriting ─────────────────────────────────────────────────────────────────────────────────────────


def _sed(workshop: Workshop) -> Pair:
    """One name of one row is changed, in another place each time."""
    make_table(workshop, "large", workshop.sizes.edited_rows)
    mounted = serve(workshop)
    handle = mounted.file("large")
    size = mounted.client.getattr(handle).size
    local = workshop.place / "local.csv"
    with local.open("wb") as file:
        file.writelines(mounted.client.blocks(handle, size))
    lines, blocks = (_places(last) for last in (workshop.sizes.edited_rows, size // BLOCK))
    return pair(lambda: _local_sed(local, next(lines)), lambda: _mounted_sed(mounted, "large", next(blocks)))


def _places(last: int) -> Iterator[int]:
    chance = random.Random(0)
    while True:
        yield chance.randint(0, last)


def _local_sed(file: Path, line: int) -> None:
    subprocess.run(["sed", "-i", f"{line + 1}s/,user-/,edit-/", str(file)], check=True)


def _mounted_sed(mounted: Mounted, table: str, block: int) -> None:
    """Do what `sed -i` does: read all, write all to a new file beside it, and move that over the old one."""
    client, temporary = mounted.client, "sedAbCdEf"
    directory = client.walk(f"{table}/data")
    handle = client.lookup(directory, "data.csv")
    size = client.getattr(handle).size
    # Two connections, because a kernel has READs of the one and WRITEs of the other file under way at the same time.
    with StreamingClient(mounted.server.port) as reader:
        written = client.create(directory, temporary)
        client.write_blocks(written, _edited(reader.blocks(handle, size), block))
    client.rename(directory, temporary, directory, "data.csv")


def _edited(blocks: Iterator[memoryview], chosen: int) -> Iterator[bytes | memoryview]:
    for number, block in enumerate(blocks):
        yield bytes(block).replace(b",user-", b",edit-", 1) if number == chosen else block
