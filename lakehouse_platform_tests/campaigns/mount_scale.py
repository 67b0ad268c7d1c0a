"""Thirty million rows, a gigabyte of CSV, through the mount: how long it takes, how much memory, and is it exact?

    python -m lakehouse_platform_tests.campaigns.mount_scale --rows 30000000
    python -m lakehouse_platform_tests.campaigns.mount_scale --rows 3000000 --guest

Each step is also done to a local file; afterwards every byte of the mount is compared with it, the table's rows are
counted, and the step must have been one commit. With `--guest` real tools work on a real kernel's mount, in an emulated
machine: believe its results, not its times.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import polars as pl
from deltalake import DeltaTable, write_deltalake

from bench.data import rows
from lakehouse_platform_tests.support.kernel_guest import KernelGuest, guest_image
from lakehouse_platform_tests.support.mounted_lake import ServerProcess
from lakehouse_platform_tests.support.mounted_tools import GuestTools, RawTools, Tools
from lakehouse_platform_tests.support.nfs_streams import StreamingClient
from lakehouse_platform_tests.support.process_memory import MemoryWatch

MOST_MEMORY_MB = 1_500
_COLUMNS = ["id", "name", "amount"]
_CHUNK = 1_000_000
_DELETED = 10_000


@dataclass
class Scale:
    """What is measured, and the local file that tells what is right.

    Attributes:
        tools: Work on the mount.
        client: Looks at the mount afterwards.
        table: The table's directory.
        local: The local file.
        lines: What to print.
    """

    tools: Tools
    client: StreamingClient
    table: Path
    local: Path
    lines: list[str] = field(default_factory=list[str])

    def timed(self, name: str, work: Callable[[], object]) -> None:
        """Do one step and note how long it took."""
        start = time.perf_counter()
        work()
        self.lines.append(f"{name:<44} {time.perf_counter() - start:9.3f} s")

    def edit(self, name: str, work: Callable[[], object], expected: Callable[[], object]) -> None:
        """Do one edit on the mount and on the local file; both must agree, and it must have been one commit."""
        version = self._version()
        self.timed(name, work)
        expected()
        assert self._version() == version + 1, f"{name}: {self._version() - version} commits"
        self.compare(name)

    def compare(self, name: str) -> None:
        """Compare every byte, and the number of rows."""
        # Not looked up before: that renders the file, which is a part of the first cat.
        handle = self.client.walk("data/data.csv")
        size = self.client.getattr(handle).size
        assert size == self.local.stat().st_size, f"{name}: {size} bytes, not {self.local.stat().st_size}"
        with self.local.open("rb") as local:
            for number, block in enumerate(self.client.blocks(handle, size)):
                assert block == local.read(len(block)), f"{name}: block {number} differs"
        counted = DeltaTable(self.table).count()
        expected = cast("int", pl.scan_csv(self.local).select(pl.len()).collect().item())
        assert counted == expected, f"{name}: {counted} rows in the table, {expected} in the file"

    def _version(self) -> int:
        return DeltaTable(self.table).version()


def main() -> None:
    """Run the campaign and print what each step took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--guest", action="store_true", help="by real tools on a real kernel's mount")
    parser.add_argument("--dir", type=Path, help="where to work (default: the system's temporary directory)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scale-", dir=arguments.dir) as directory:
        for line in run(Path(directory), arguments.rows, guest=arguments.guest):
            sys.stdout.write(line + "\n")


def run(directory: Path, rows: int, *, guest: bool = False) -> list[str]:
    """Make a table of so many rows, do every step, and return a line for each."""
    table, local = directory / "table", directory / "local.csv"
    _make(table, local, rows)
    with _served(table, directory / "state") as server, _tools(server, guest=guest) as tools:
        client = StreamingClient(server.port)
        client.mount(server.ready["exports"]["sync"])
        scale = Scale(tools, client, table, local)
        with MemoryWatch(server.pid) as memory:
            _steps(scale, rows)
        scale.lines.append(f"{'most memory of the server':<44} {memory.peak_mb:9.0f} MB")
        scale.lines.append(f"{'… without mapped files':<44} {memory.peak_private_mb:9.0f} MB")
        assert memory.peak_mb < MOST_MEMORY_MB, scale.lines
        client.close()
        return scale.lines


def _steps(scale: Scale, rows: int) -> None:
    tools, local = scale.tools, scale.local
    size = local.stat().st_size
    scale.timed(f"first cat, {size / 1e6:.0f} MB", lambda: _expect(tools.cat(), size))
    scale.timed("second cat", lambda: _expect(tools.cat(), size))
    scale.compare("reading")
    text = f"user-{rows // 2:08}"[:-2]
    scale.timed("grep -c", lambda: _expect(tools.grep(text), _local_grep(local, text)))
    line = f"{rows},appended,1.5\n"
    scale.edit("append of one line", lambda: tools.append(line), lambda: _local_append(local, line))
    old, new = f",user-{rows // 2:08},", f",edited by sed {rows},"
    scale.edit("sed -i of one row", lambda: tools.substitute(old, new), lambda: _local_sed(local, old, new))
    every, rest = max(2, rows // _DELETED), local.with_name("rest.csv")
    _leave_out(local, rest, every)
    scale.edit(
        f"cat new > data.csv without {rows // every} rows",
        lambda: tools.overwrite(rest, every),
        lambda: rest.replace(local),
    )


def _expect(got: int, wanted: int) -> None:
    assert got == wanted, f"{got}, not {wanted}"


def _make(table: Path, local: Path, count: int) -> None:
    with local.open("wb") as file:
        for first in range(0, count, _CHUNK):
            chunk = rows(min(_CHUNK, count - first), first).select(_COLUMNS)
            cast("pl.DataFrame", pl.from_arrow(chunk)).write_csv(file, include_header=first == 0)
            write_deltalake(table, chunk, mode="append")


@contextmanager
def _served(table: Path, state: Path) -> Generator[ServerProcess]:
    state.mkdir(mode=0o700)
    server = ServerProcess(str(table), state).start()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def _tools(server: ServerProcess, *, guest: bool) -> Generator[Tools]:
    if guest:
        with KernelGuest(guest_image()) as machine:
            yield GuestTools.mounted(machine, server)
    else:
        with StreamingClient(server.port) as reader, StreamingClient(server.port) as writer:
            yield RawTools.mounted(reader, writer, server)


# ── The same to the local file ────────────────────────────────────────────────────────────────────────


def _local_grep(local: Path, text: str) -> int:
    return int(subprocess.run(["grep", "-c", text, str(local)], check=True, capture_output=True).stdout)


def _local_append(local: Path, line: str) -> None:
    with local.open("a") as file:
        file.write(line)


def _local_sed(local: Path, old: str, new: str) -> None:
    subprocess.run(["sed", "-i", f"s/{old}/{new}/", str(local)], check=True)


def _leave_out(local: Path, rest: Path, every: int) -> None:
    """Copy all rows but each `every`-th."""
    with local.open("rb") as source, rest.open("wb") as target:
        target.writelines(line for number, line in enumerate(source) if number == 0 or number % every)


if __name__ == "__main__":
    main()
