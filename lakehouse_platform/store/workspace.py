"""A transaction's private copy of a table: a Delta log of its own over the table's files and new ones beside them.

The copy lives in a directory of the table, so that its new files can become the table's by one commit, without being
moved. Its log names the table's files by absolute path, which the engine reads (deltalake 1.6.6) but cannot rewrite;
rewriting is `transaction.py`'s part. What a crash leaves behind, no version refers to.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from lakehouse_platform.store.checks import named_violations
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY, Action, commit_file, list_log, read_commit
from lakehouse_platform.store.partitions import check_partition_texts, partition_text
from lakehouse_platform.store.properties import CHANGE_DATA_FEED, CHECKPOINT_INTERVAL
from lakehouse_platform.store.snapshot import add_actions, arrow_schema, properties

DIRECTORY_PREFIX = "tx-"
_DIRECTORY = re.compile(r"tx-[0-9a-f]{32}")
_NEVER = str(2**31 - 1)


class Workspace:
    """The private copy of one version of a table.

    Attributes:
        location: Where the copy stands.
    """

    def __init__(self, base: DeltaTable, owner: Location) -> None:
        self.location = owner.child(new_directory_name())
        self._owner = owner
        self._root = f"{owner.uri}/" if not owner.is_local else f"file://{owner.uri}/"
        self._partitions = base.metadata().partition_columns
        self._base_files = {row["path"]: row for row in add_actions(base).to_pylist()}
        self._write_log(base)

    def open(self) -> DeltaTable:
        """Open the copy as it stands."""
        return open_table(self.location)

    def add(self, rows: pa.Table) -> None:
        """Add rows; the engine checks constraints and writes the files."""
        copy = self.open()
        check_partition_texts(rows, self._partitions, self._owner.name)
        with translated(self._owner), named_violations(copy, rows, self._owner.name):
            write_deltalake(copy, rows, mode="append")

    def drop(self, paths: Iterable[str]) -> None:
        """Take files out of the copy.

        Args:
            paths: As `open_paths` gives them.
        """
        # Written by hand: the engine would encode the paths anew, and then they would name no file of the log.
        now = time.time_ns() // 1_000_000
        removals = [
            {"remove": {"path": path, "deletionTimestamp": now, "dataChange": True}} for path in paths
        ]
        self._write_commit(self.open().version() + 1, removals)

    def net_change(self) -> tuple[list[AddAction], list[RemoveAction]]:
        """Return the actions that turn the table's version into the copy."""
        live = set(add_actions(self.open()).column("path").to_pylist())
        kept = {path.removeprefix(self._root) for path in live if path.startswith(self._root)}
        added = [moved_add(self.location.name, add) for add in self._own_adds() if add["path"] in live]
        removed = [
            removal(row, self._partitions) for path, row in self._base_files.items() if path not in kept
        ]
        return added, removed

    def discard(self, *, keep_data: bool) -> None:
        """Delete the copy's log, and its data files unless the table now refers to some of them."""
        with translated(self._owner):
            if keep_data:
                self.location.filesystem().delete_dir(LOG_DIRECTORY)
            else:
                self._owner.filesystem().delete_dir(self.location.name)

    def table_path(self, path: str) -> str:
        """Return a path of the copy's log as a path relative to the table."""
        return (
            path.removeprefix(self._root) if path.startswith(self._root) else f"{self.location.name}/{path}"
        )

    def _own_adds(self) -> list[Action]:
        commits = (read_commit(self.location, version) for version in list_log(self.location).commits[1:])
        return [cast("Action", action["add"]) for actions in commits for action in actions if "add" in action]

    def _write_log(self, base: DeltaTable) -> None:
        files = [self._base_add(row, base) for row in self._base_files.values()]
        write_first_commit(base, self.location, files)

    def _write_commit(self, version: int, actions: Sequence[Action]) -> None:
        _write_commit(self.location, version, actions)

    def _base_add(self, row: Mapping[str, Any], base: DeltaTable) -> Action:
        return {
            "add": {
                "path": self._root + row["path"],
                "partitionValues": partition_texts(row, self._partitions),
                "size": row["size_bytes"],
                "modificationTime": row["modification_time"],
                "dataChange": False,
                "stats": json.dumps(_statistics(row, arrow_schema(base))),
            }
        }


def new_directory_name() -> str:
    """Return the name of a new directory for files that are not yet the table's."""
    return DIRECTORY_PREFIX + uuid.uuid4().hex


def is_workspace(name: str) -> bool:
    """Tell whether a directory's name is that of a private copy, perhaps one that a crash left behind."""
    return _DIRECTORY.fullmatch(name) is not None


def write_first_commit(base: DeltaTable, place: Location, files: Sequence[Action] = ()) -> None:
    """Make a table with the definition of another one.

    Args:
        base: The table that it resembles.
        place: Where it will stand.
        files: Add actions of its first files.
    """
    if place.is_local:
        place.path.joinpath(LOG_DIRECTORY).mkdir(parents=True)
    _write_commit(place, 0, [_protocol(base), _metadata(base), *files])


def partition_texts(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str | None]:
    """Return a live file's partition values as the log writes them.

    Args:
        row: The file's row of `add_actions`.
        columns: The table's partition columns.
    """
    return {column: partition_text(row["partition." + column]) for column in columns}


# The engine encodes the paths of hand-made actions once more than those it reads from a log, hence `unquote`.
def removal(row: Mapping[str, Any], partition_columns: Sequence[str]) -> RemoveAction:
    """Return the action that removes a live file; see `partition_texts` for the arguments."""
    return RemoveAction(
        path=unquote(row["path"]),
        data_change=True,
        deletion_timestamp=time.time_ns() // 1_000_000,
        size=row["size_bytes"],
        partition_values=cast("Any", partition_texts(row, partition_columns)),
    )


def moved_add(folder: str, add: Action) -> AddAction:
    """Return the action that adds a file of a table in a subdirectory to the table above it."""
    return AddAction(
        path=unquote(f"{folder}/{add['path']}"),
        size=int(add["size"]),
        partition_values=add["partitionValues"],
        modification_time=int(add["modificationTime"]),
        data_change=True,
        stats=add.get("stats") or "{}",
    )


def _write_commit(place: Location, version: int, actions: Sequence[Action]) -> None:
    text = "\n".join(json.dumps(action) for action in actions)
    with translated(place), place.filesystem().open_output_stream(commit_file(version)) as stream:
        stream.write(text.encode())


def _protocol(table: DeltaTable) -> Action:
    protocol = table.protocol()
    features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    return {
        "protocol": {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            **{key: value for key, value in features.items() if value is not None},
        }
    }


def _metadata(table: DeltaTable) -> Action:
    metadata = table.metadata()
    # Change files would be written into the copy; readers derive the changes from the final commit's files instead.
    # A checkpoint would clean up the copy's log, which `net_change` reads whole.
    configuration = {**properties(table), CHANGE_DATA_FEED: "false", CHECKPOINT_INTERVAL: _NEVER}
    return {
        "metaData": {
            "id": str(metadata.id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": table.schema().to_json(),
            "partitionColumns": metadata.partition_columns,
            "configuration": configuration,
        }
    }


def _statistics(row: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Return file statistics of the columns whose JSON form is plain; the others only skip fewer files."""
    names = [field.name for field in schema if _has_plain_statistics(field.type) and "." not in field.name]

    def values(prefix: str) -> dict[str, Any]:
        pairs = {name: row.get(prefix + name) for name in names}
        return {name: value for name, value in pairs.items() if value is not None}

    if row.get("num_records") is None:
        return {}
    return {
        "numRecords": row["num_records"],
        "minValues": values("min."),
        "maxValues": values("max."),
        "nullCount": values("null_count."),
    }


def _has_plain_statistics(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
