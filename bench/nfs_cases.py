"""The mount, asked over TCP: beside a bare sender, Polars, and commits of the raw library."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import polars as pl
from deltalake import DeltaTable

from bench.nfs_edit_cases import edit_cases
from bench.nfs_served import bare_sender, make_table, serve
from bench.pairs import Pair, Side, Step, Target
from bench.workshop import Case, Sizes, Workshop, linked_copy
from lakehouse_platform.nfs.operations import Access
from lakehouse_platform_tests.support.nfs_client import NFS
from lakehouse_platform_tests.support.nfs_streams import StreamingClient
from lakehouse_platform_tests.support.nfs_xdr import opaque, u32, u64

# Issue 3: 1 GB/s or 60 % of a bare asyncio TCP sender, whichever is lower; half again what Polars takes to write the
# same CSV; 0.3 ms for a stat; 5 000 small operations in a second.
_BYTES_PER_MS = 1_000_000
_SHARE_OF_BARE = 1 / 0.6
_COLD = Target(ratio=1.5)
_STAT_MS, _SMALL_MS = 0.3, 0.2

_UNDER_WAY = 16
_SMALL_READ = 4096
_PINGED = 112  # bytes of a GETATTR reply
_TIMES = "%Y-%m-%dT%H:%M:%S%.fZ"


def nfs_cases(sizes: Sizes) -> tuple[Case, ...]:
    """Return the cases of the mount; those that need a program are left out where it is missing."""
    large = f"{sizes.mount_rows:,} rows".replace(",", " ")
    libnfs = Case(f"warm read of {large} by libnfs / bare sender", _warm_read_by_libnfs, 11)
    return (
        Case(f"warm read of {large} / bare sender", _warm_read, 11),
        *((libnfs,) if shutil.which("nfs-cat") else ()),
        Case(f"cold read of {large} / Polars writes the CSV", _cold_read, 5, _COLD),
        *edit_cases(sizes),
        Case(f"{sizes.calls} × stat / bare round trips", _stat, 21),
        Case(f"{sizes.calls} small operations / bare round trips", _small_operations, 21),
    )


# ── Reading ───────────────────────────────────────────────────────────────────────────────────────────


def _warm_read(workshop: Workshop) -> Pair:
    make_table(workshop, "large", workshop.sizes.mount_rows)
    mounted = serve(workshop)
    handle = mounted.file("large")
    size = mounted.client.getattr(handle).size
    bare = bare_sender(workshop, size)
    return Pair(
        Side(lambda: bare.receive(size)),
        Side(lambda: _read_through(mounted.client, handle, size)),
        _warm_target(size),
    )


def _warm_read_by_libnfs(workshop: Workshop) -> Pair:
    make_table(workshop, "large", workshop.sizes.mount_rows)
    mounted = serve(workshop)
    size = mounted.client.getattr(mounted.file("large")).size
    bare = bare_sender(workshop, size)
    port = mounted.server.port
    url = f"nfs://127.0.0.1{mounted.export}/large/data/data.csv?version=3&nfsport={port}&mountport={port}"
    command = ["nfs-cat", url]
    return Pair(
        Side(lambda: bare.receive(size)),
        Side(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)),
        _warm_target(size),
    )


def _warm_target(size: int) -> Target:
    return Target(_SHARE_OF_BARE, overhead_ms=0, limit_ms=size / _BYTES_PER_MS)


def _cold_read(workshop: Workshop) -> Pair:
    """Each run meets a table that the server has never seen: from its first LOOKUP to its last byte."""
    template = make_table(workshop, "template", workshop.sizes.mount_rows)
    mounted = serve(workshop)
    numbers = count()
    name = ""

    def renew() -> None:
        nonlocal name
        if name:
            shutil.rmtree(workshop.place / "lake" / name)
        name = f"cold{next(numbers)}"
        linked_copy(template, workshop.place / "lake" / name)

    def read() -> None:
        handle = mounted.file(name)
        _read_through(mounted.client, handle, mounted.client.getattr(handle).size)

    return Pair(Side(lambda: _polars_csv(template, workshop.place / "raw.csv")), Side(read, before=renew))


def _polars_csv(table: Path, target: Path) -> None:
    pl.scan_parquet(DeltaTable(table).file_uris()).sink_csv(target, datetime_format=_TIMES)


def _read_through(client: StreamingClient, handle: bytes, size: int) -> int:
    return sum(map(len, client.blocks(handle, size)))


# ── Small operations ──────────────────────────────────────────────────────────────────────────────────


def _stat(workshop: Workshop) -> Pair:
    make_table(workshop, "table", workshop.sizes.young_rows)
    mounted, calls = serve(workshop), workshop.sizes.calls
    handle = mounted.file("table")
    return Pair(
        Side(_pings(workshop, calls)),
        Side(lambda: [mounted.client.getattr(handle) for _ in range(calls)]),
        Target(ratio=1, overhead_ms=0, limit_ms=_STAT_MS * calls),
    )


def _small_operations(workshop: Workshop) -> Pair:
    """GETATTR, LOOKUP, ACCESS and READ in turns, 16 under way: what several busy programs ask for."""
    make_table(workshop, "table", workshop.sizes.young_rows)
    mounted, calls = serve(workshop), workshop.sizes.calls
    directory = mounted.client.walk("table/data")
    file = mounted.client.lookup(directory, "data.csv")
    asked = [
        (1, opaque(file)),
        (3, opaque(directory) + opaque(b"data.csv")),
        (4, opaque(file) + u32(int(Access.READ))),
        (6, opaque(file) + u64(0) + u32(_SMALL_READ)),
    ]
    batches = [asked * (_UNDER_WAY // len(asked))] * -(-calls // _UNDER_WAY)
    return Pair(
        Side(_pings(workshop, calls)),
        Side(lambda: [_ask(mounted.client, batch) for batch in batches]),
        Target(ratio=1, overhead_ms=0, limit_ms=_SMALL_MS * _UNDER_WAY * len(batches)),
    )


def _ask(client: StreamingClient, batch: Sequence[tuple[int, bytes]]) -> None:
    for procedure, arguments in batch:
        client.send(NFS, procedure, arguments)
    statuses = [client.receive().u32() for _ in batch]
    if any(statuses):
        raise AssertionError("an operation was refused")


def _pings(workshop: Workshop, calls: int) -> Step:
    bare = bare_sender(workshop, _PINGED)
    return lambda: [bare.receive(_PINGED) for _ in range(calls)]
