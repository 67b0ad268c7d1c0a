"""One opened version of a table that can be kept: its columns, live files and their rows in file order.

Finding out whether it is still the newest costs two looks at the log; the next version is made by applying its log
entries to the files known already, and is opened anew only where they say more than that files came and went.
"""

from __future__ import annotations

import hashlib
import json
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.errors import DataFilesMissingError, DeltaTableError
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.files import FileReader, opened_data_file
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import Action, commit_info, read_commit
from lakehouse_platform.store.log_marks import LogMark
from lakehouse_platform.store.partitions import partition_values
from lakehouse_platform.store.scan import without
from lakehouse_platform.store.snapshot import add_actions, arrow_schema, constraints, primary_key, properties
from lakehouse_platform.store.table import Table

# Beyond so many log entries a checkpoint is likely, and opening anew is cheaper.
_MOST_STEPS = 32
_STEP_FEATURES = frozenset({"metaData", "protocol"})
# Arrow reads the log's texts of these types as the engine does; tables with other partition columns are opened anew.
_TEXT_TYPES = (pa.string(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.bool_(), pa.date32())
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One live data file.

    Attributes:
        path: As the table's log writes it.
        size: Bytes.
        rows: Rows that are not deleted, or None if the writer recorded no statistics.
        modified_ms: When its writer says that it was written.
        token: Identity of its rows; equal for equal rows of the same file.
        partition: Values of the partition columns.
        kept: Which rows are not deleted; None if all are there.
    """

    path: str = field(compare=False)
    size: int = field(compare=False)
    rows: int | None = field(compare=False)
    modified_ms: int
    token: bytes
    partition: Mapping[str, pa.Scalar] = field(compare=False, repr=False)
    kept: pa.BooleanArray | None = field(default=None, compare=False, repr=False)

    @property
    def order(self) -> tuple[int, str]:
        """Where it stands among the files of its version."""
        return self.modified_ms, self.path


@dataclass(frozen=True, slots=True)
class Pinned:
    """One version of a table; never changes.

    Attributes:
        table: The table.
        version: Its version.
        table_id: The id in its metadata: another one after it was dropped and made anew.
        reader: Reads the rows of its files.
        key: The declared primary key.
        constraints: CHECK constraints by name.
        properties: The table's properties.
        partition_columns: Columns whose values are in the log.
        committed_ns: When the version was committed, in nanoseconds since 1970.
        files: The live files, oldest first.
    """

    table: Table
    version: int
    table_id: str
    reader: FileReader
    key: tuple[str, ...]
    constraints: dict[str, str]
    properties: dict[str, str]
    partition_columns: tuple[str, ...]
    committed_ns: int
    files: tuple[PinnedFile, ...] = field(repr=False)
    _by_path: dict[str, PinnedFile] = field(repr=False)
    _mark: LogMark = field(repr=False)

    @classmethod
    def open(cls, table: Table, version: int | None = None) -> Pinned:
        """Open the newest or a given version.

        Raises:
            TableNotFoundError, NotADeltaTableError, VersionNotFoundError: See `engine.open_table`.
        """
        location = table.location
        engine = open_table(location, version)
        with translated(location):
            schema, metadata = without(arrow_schema(engine), table.hidden), engine.metadata()
            files = _live_files(engine)
            number = engine.version()
            return cls(
                table=table,
                version=number,
                table_id=str(metadata.id),
                reader=FileReader.of(location, schema, str(metadata.id)),
                key=primary_key(engine),
                constraints=dict(constraints(engine)),
                properties=dict(properties(engine)),
                partition_columns=tuple(metadata.partition_columns),
                committed_ns=_committed_ns(location, number, files),
                files=files,
                _by_path={file.path: file for file in files},
                _mark=LogMark.of(location, number),
            )

    @property
    def schema(self) -> pa.Schema:
        """The columns in plain Arrow types."""
        return self.reader.schema

    @property
    def has_plain_files(self) -> bool:
        """Whether the rows are what the files alone say, without column mapping and deletion vectors."""
        if self.properties.get("delta.columnMapping.mode", "none") != "none":
            return False
        return all(file.kept is None for file in self.files)

    def file(self, path: str) -> PinnedFile:
        """Return a live file by its path in the log.

        Raises:
            DataFilesMissingError: The version has no such file.
        """
        if path not in self._by_path:
            raise DataFilesMissingError(
                f"Version {self.version} of table {self.table.name} has no data file {path!r}.", path=path
            )
        return self._by_path[path]

    def read_rows(self, path: str) -> Iterator[pa.RecordBatch]:
        """Return a live file's rows in file order, in the table's columns."""
        file = self.file(path)
        return self.reader.read(file.path, file.partition, file.kept)

    def raw(self, path: str) -> Path | pa.NativeFile:
        """Return where a live file is on the local disk, or else a reader of its bytes, to be closed by the caller."""
        name = self.file(path).path
        if self.table.location.is_local and "://" not in name:
            return self.table.location.path / unquote(name)
        return open_raw(self.table.location, name)

    def is_newest(self) -> bool:
        """Tell whether no commit followed and the table is still the same one."""
        return self._mark.is_newest()

    def newer(self) -> Pinned:
        """Return the newest version: this object itself if it still is.

        Raises:
            TableNotFoundError, NotADeltaTableError: The table was dropped.
        """
        if self.is_newest():
            return self
        location = self.table.location
        state: Pinned | None = self if self._mark.is_there() else None
        for _ in range(_MOST_STEPS):
            if state is None:
                break
            try:
                with translated(location):
                    actions = _next_actions(location, state.version + 1)
            except (ValueError, DataFilesMissingError):
                break
            if actions is None:
                return state
            state = state.after(actions)
        return Pinned.open(self.table)

    def after(self, actions: Sequence[Action]) -> Pinned | None:
        """Return the version that the next commit's actions make of this one; None if only the engine can tell."""
        if any(not _STEP_FEATURES.isdisjoint(action) for action in actions):
            return None
        by_path, files = dict(self._by_path), list(self.files)
        gone = [action["remove"]["path"] for action in actions if "remove" in action]
        for path in gone:
            if by_path.pop(path, None) is None:
                return None
        if gone:
            files = [file for file in files if file.path in by_path]
        for add in (action["add"] for action in actions if "add" in action):
            file = self._added(add)
            if file is None or file.path in by_path:
                return None
            by_path[file.path] = file
            insort(files, file, key=lambda one: one.order)
        version = self.version + 1
        return replace(
            self,
            version=version,
            committed_ns=_time_ns(commit_info(list(actions))) or _newest_ns(files),
            files=tuple(files),
            _by_path=by_path,
            _mark=LogMark.of(self.table.location, version),
        )

    def _added(self, add: Mapping[str, Any]) -> PinnedFile | None:
        texts: Mapping[str, str | None] = add.get("partitionValues") or {}
        if add.get("deletionVector") or set(texts) != set(self.partition_columns):
            return None
        kinds = {name: self.schema.field(name).type for name in texts}
        if any(kind not in _TEXT_TYPES for kind in kinds.values()):
            return None
        partition = {name: pa.scalar(texts[name] or None).cast(kind) for name, kind in kinds.items()}
        rows = json.loads(add.get("stats") or "{}").get("numRecords")
        return _pinned_file(add["path"], add["size"], rows, add["modificationTime"], partition, None)


def open_raw(location: Location, path: str) -> pa.NativeFile:
    """Open a data file's bytes by its path in the log.

    Raises:
        DataFilesMissingError: The file is gone.
    """
    with translated(location):
        return opened_data_file(location, path)


def _next_actions(location: Location, version: int) -> list[Action] | None:
    try:
        return read_commit(location, version)
    except FileNotFoundError:
        return None


def _live_files(engine: DeltaTable) -> tuple[PinnedFile, ...]:
    actions = add_actions(engine)
    columns = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    times = actions.column("modification_time").cast(pa.int64()).to_pylist()
    known = "num_records" in actions.column_names
    rows = actions.column("num_records").to_pylist() if known else [None] * actions.num_rows
    partitions, vectors = _partitions(engine), _vectors(engine, actions.column("path").to_pylist())
    files = [
        _pinned_file(path, size, count, time, partition, vectors.get(path))
        for path, size, count, time, partition in zip(*columns, rows, times, partitions, strict=True)
    ]
    return tuple(sorted(files, key=lambda file: file.order))


def _pinned_file(
    path: str,
    size: int,
    rows: int | None,
    modified_ms: int,
    partition: Mapping[str, pa.Scalar],
    kept: pa.BooleanArray | None,
) -> PinnedFile:
    values = sorted((name, repr(value.as_py())) for name, value in partition.items())
    digest = hashlib.blake2b(repr((path, size, values)).encode(), digest_size=16)
    if kept is not None:
        digest.update(repr(len(kept)).encode() + kept.cast(pa.int8()).buffers()[1].to_pybytes())
        rows = None if rows is None else rows - (len(kept) - kept.true_count)
    return PinnedFile(path, size, rows, modified_ms, digest.digest(), partition, kept)


def _partitions(engine: DeltaTable) -> Sequence[Mapping[str, pa.Scalar]]:
    count = add_actions(engine).num_rows
    if not engine.metadata().partition_columns:
        return [{}] * count
    values = partition_values(engine)
    return [{name: values.column(name)[row] for name in values.column_names} for row in range(count)]


def _vectors(engine: DeltaTable, paths: Sequence[str]) -> Mapping[str, pa.BooleanArray]:
    """Return the rows that deletion vectors keep, by the file's path in the log."""
    if "deletionVectors" not in (engine.protocol().reader_features or []):
        return {}
    vectors = pa.table(cast("Any", engine.deletion_vectors()))
    root = unquote(engine.table_uri).removeprefix("file://").rstrip("/") + "/"
    by_name = {unquote(path).removeprefix("file://"): path for path in paths}
    found: dict[str, pa.BooleanArray] = {}
    for uri, kept in zip(vectors.column("filepath"), vectors.column("selection_vector"), strict=True):
        whole = unquote(uri.as_py()).removeprefix("file://")
        path = by_name.get(whole.removeprefix(root)) or by_name.get(whole)
        if path is None:
            raise DeltaTableError(
                f"A deletion vector of {root} names the unknown file {whole!r}.", path=whole
            )
        found[path] = kept.values
    return found


def _committed_ns(location: Location, version: int, files: Sequence[PinnedFile]) -> int:
    actions = _next_actions(location, version)
    return (_time_ns(commit_info(actions)) if actions else 0) or _newest_ns(files)


def _time_ns(info: Mapping[str, Any]) -> int:
    return int(info.get("inCommitTimestamp") or info.get("timestamp") or 0) * _NS_PER_MS


def _newest_ns(files: Sequence[PinnedFile]) -> int:
    """Return a time for a version whose commit file does not tell it: it was made when its newest file was."""
    return max((file.modified_ms for file in files), default=0) * _NS_PER_MS
