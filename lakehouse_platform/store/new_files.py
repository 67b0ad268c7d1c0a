"""Data files on their way into a table: written in a directory of its own below it, then moved to where they stay.

What a crash leaves behind, no version refers to.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction

from lakehouse_platform.store.checks import named_violations
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import list_log, read_commit
from lakehouse_platform.store.rewrite import adopt, successor_path, write_rows
from lakehouse_platform.store.workspace import new_directory_name, write_first_commit


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file that stands where the table will have it.

    Attributes:
        path: Relative to the table, as the file system has it.
        add: What the engine says of it: size, partition values, statistics.
        replaces: The data file whose rows it takes over, as the log writes it; None if its rows are new.
    """

    path: str
    add: Mapping[str, Any]
    replaces: str | None = None

    def action(self, modified_ms: int, partition_values: Mapping[str, str | None] | None = None) -> AddAction:
        """Return the action that adds it to the table.

        Args:
            modified_ms: Decides where its rows stand among those of other files.
            partition_values: Its partition, if it is not the one that the engine knows.
        """
        return AddAction(
            path=self.path,
            size=int(self.add["size"]),
            partition_values=self.add["partitionValues"] if partition_values is None else partition_values,
            modification_time=modified_ms,
            data_change=True,
            stats=self.add.get("stats") or "{}",
        )


class NewFiles:
    """The new data files of one change of a table."""

    def __init__(self, owner: Location, like: DeltaTable) -> None:
        self._owner = owner
        self._like = like
        self._home = owner.child(new_directory_name())
        self._replaced: dict[str, str] = {}
        self._moved: list[str] = []

    def add_rows(self, rows: pa.Table) -> None:
        """Write rows to new files, in order within each partition; the engine checks constraints."""
        self._engine_writes(self._home.child("added"), rows)

    def check_rows(self, rows: pa.Table) -> None:
        """Let the engine check rows that other files will hold."""
        self._engine_writes(self._home.child("checked"), rows)

    def rewrite(self, path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write what becomes of a data file; nothing if no row is left.

        Args:
            path: The file as the log writes it.
            batches: The rows.
            schema: The columns in the file.
        """
        place = self._home.child("rewritten")
        if place.is_local:
            place.path.mkdir(parents=True, exist_ok=True)
        name = f"{len(self._replaced)}.parquet"
        if write_rows(place, name, batches, schema):
            self._replaced[name] = path

    def moved(self) -> list[NewFile]:
        """Move all files to where they stay and return them, rewritten ones first."""
        return [*self._moved_rewritten(), *self._moved_added()]

    def discard(self, *, keep_data: bool) -> None:
        """Delete what is left of the directory, and the files that were moved out of it unless the table has them."""
        filesystem = self._owner.filesystem()
        for path in [] if keep_data else self._moved:
            with suppress(FileNotFoundError):
                filesystem.delete_file(path)
        with suppress(FileNotFoundError):
            filesystem.delete_dir(self._home.name)

    def _engine_writes(self, place: Location, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        write_first_commit(self._like, place)
        # One batch at a time: the engine mixes several up (deltalake 1.6.6).
        for batch in rows.combine_chunks().to_batches():
            part, copy = pa.Table.from_batches([batch]), open_table(place)
            with named_violations(copy, part, self._owner.name):
                write_deltalake(copy, part, mode="append")

    def _moved_rewritten(self) -> Iterator[NewFile]:
        if not self._replaced:
            return
        place = self._home.child("rewritten")
        for name, add in adopt(place, self._like).items():
            old = self._replaced[name]
            yield self._move(place, name, NewFile(successor_path(unquote(old)), add, old))

    def _moved_added(self) -> Iterator[NewFile]:
        place = self._home.child("added")
        for version in list_log(place).commits[1:]:
            adds = [cast("Mapping[str, Any]", a["add"]) for a in read_commit(place, version) if "add" in a]
            for add in sorted(adds, key=lambda add: add["path"]):
                name = unquote(add["path"])
                yield self._move(place, name, NewFile(name, add))

    def _move(self, place: Location, name: str, file: NewFile) -> NewFile:
        filesystem = self._owner.filesystem()
        if self._owner.is_local:
            self._owner.path.joinpath(file.path).parent.mkdir(parents=True, exist_ok=True)
        self._moved.append(file.path)
        filesystem.move(f"{self._home.name}/{place.name}/{name}", file.path)
        return file


def now_ms() -> int:
    """Return the time as add and remove actions have it."""
    return time.time_ns() // 1_000_000
