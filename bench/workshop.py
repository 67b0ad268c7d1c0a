"""Where a benchmark works: sizes, a directory, and tables that the raw libraries made."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from bench.data import SCHEMA, rows
from bench.pairs import USUAL, Pair, Side, Target
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much the cases work on.

    Attributes:
        rows: Rows of a large table.
        merge_rows: Rows merged into one.
        small_files: Files that compaction finds.
        skip_files: Files of the table whose scan can skip most.
        commits: Lengths of the logs that the scale cases open.
        stream_rows: Rows that stream through scan, export and import.
        mount_rows: Rows of a large table that is served.
        young_rows: Rows of a small table that is served.
        edited_rows: Rows of the table that `sed -i` goes through: a gigabyte of CSV.
        calls: Small operations in a row.
        checks: Checks of tokens in a row.
        entries: Entries recorded in the audit log.
        pairs: Factor on the number of pairs of each case.
    """

    rows: int = 1_000_000
    merge_rows: int = 1_000
    small_files: int = 1_000
    skip_files: int = 50
    commits: tuple[int, ...] = (10, 1_000, 5_000)
    stream_rows: int = 10_000_000
    mount_rows: int = 10_000_000
    young_rows: int = 10_000
    edited_rows: int = 17_000_000
    calls: int = 1_000
    checks: int = 1_000
    entries: int = 10_000
    pairs: float = 1.0


QUICK = Sizes(
    rows=5_000,
    merge_rows=50,
    small_files=20,
    skip_files=5,
    commits=(5,),
    stream_rows=5_000,
    mount_rows=5_000,
    young_rows=500,
    edited_rows=5_000,
    calls=20,
    checks=20,
    entries=200,
    pairs=0.1,
)


@dataclass(frozen=True, slots=True)
class Workshop:
    """The surroundings of a case.

    Attributes:
        place: An empty directory of its own.
        sizes: How much to work on.
        cleanup: Ends what the case has started.
    """

    place: Path
    sizes: Sizes
    cleanup: ExitStack = field(default_factory=ExitStack)

    def store(self, *, durability: str = "os") -> DeltaStore:
        """Return the store over the directory.

        Most cases leave durability to the operating system, as the raw libraries always do.
        """
        return DeltaStore(
            LakehouseConfig.model_validate({"base_path": str(self.place), "durability": durability})
        )

    def twins(self, table: pa.Table, *, durability: str = "os", files: int = 1) -> tuple[str, Table]:
        """Return the path of a raw table and a table of the store that hold the same rows in as many files."""
        size = -(-table.num_rows // files)
        raw = self.place / "raw"
        for name in ("raw", "ours"):
            for number in range(files):
                write_deltalake(self.place / name, table.slice(number * size, size), mode="append")
        return str(raw), self.store(durability=durability).table("ours")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a report.

    Attributes:
        name: What is measured.
        prepare: Makes the pair in a directory of its own.
        pairs: How many times it is measured.
        target: What is allowed; None if the case only informs.
    """

    name: str
    prepare: Callable[[Workshop], Pair]
    pairs: int
    target: Target | None = USUAL


def pair(raw: Callable[[], object], ours: Callable[[], object]) -> Pair:
    """Return a pair whose sides can be run again as they are."""
    return Pair(Side(raw), Side(ours))


def raw_fsync(path: str, version: int) -> None:
    """Force a commit to disk as the store does: its data files, its entry in the log, and their directories."""
    root = Path(path)
    entry = root / "_delta_log" / f"{version:020}.json"
    actions = map(json.loads, entry.read_bytes().splitlines())
    files = [entry, *(root / unquote(action["add"]["path"]) for action in actions if "add" in action)]
    for place in [*files, *{file.parent for file in files}, root]:
        descriptor = os.open(place, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def table_of_small_files(path: Path, files: int, rows_each: int) -> None:
    """Make a table of many files in one commit, which takes a tenth of the time of as many appends."""
    table = DeltaTable.create(str(path), SCHEMA)
    actions: list[AddAction | RemoveAction] = []
    for number in range(files):
        part = rows(rows_each, number * rows_each)
        file = path / f"part-{number:05}.parquet"
        pq.write_table(part, file)
        actions.append(_added(file, part.num_rows))
    table.create_write_transaction(actions, "append", SCHEMA)


def _added(file: Path, count: int) -> AddAction:
    about = file.stat()
    stats = json.dumps({"numRecords": count})
    return AddAction(
        file.name, about.st_size, {}, about.st_mtime_ns // 1_000_000, data_change=True, stats=stats
    )


def linked_copy(source: Path, target: Path) -> None:
    """Copy a table whose files nobody changes in place, without copying their bytes."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=os.link)
