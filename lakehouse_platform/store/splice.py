"""Rows of data files replaced by position: one commit that rewrites only the touched files and keeps their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, cast
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from lakehouse_platform.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    ConstraintViolationError,
    InfrastructureError,
    StorageError,
    UnsupportedFeatureError,
)
from lakehouse_platform.store.cast import conform
from lakehouse_platform.store.commit import AppTransaction, Committer, Stamp
from lakehouse_platform.store.cuts import Cut, FileSplices, effective, spliced
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.files import FileReader
from lakehouse_platform.store.keys import check_absent, check_distinct
from lakehouse_platform.store.new_files import NewFile, NewFiles, now_ms
from lakehouse_platform.store.partitions import check_partition_texts, partition_values
from lakehouse_platform.store.properties import APPEND_ONLY
from lakehouse_platform.store.read_ahead import read_ahead
from lakehouse_platform.store.snapshot import (
    add_actions,
    arrow_schema,
    constraints,
    has_deletion_vectors,
    primary_key,
    properties,
    require_known_paths,
    require_plain_columns,
)
from lakehouse_platform.store.workspace import partition_texts, removal

__all__ = ["Cut", "FileSplices", "SpliceCounts", "SpliceResult", "splice"]

# Rules of a column that only the engine knows how to check (Delta protocol, "Column Invariants", "Generated Columns").
_COLUMN_RULES = (b"delta.invariants", b"delta.generationExpression")


@dataclass(frozen=True, slots=True)
class SpliceCounts:
    """What a splice means to the one who asked for it; positions alone do not tell an update from delete and insert.

    Attributes:
        inserted: Rows that are new.
        updated: Rows that changed.
        deleted: Rows that are gone.
    """

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True, slots=True)
class SpliceResult:
    """A splice: the version that it made (the current one if nothing changed) and its rows."""

    version: int
    rows_inserted: int
    rows_updated: int
    rows_deleted: int


def splice(
    committer: Committer,
    version: int,
    files: Sequence[FileSplices],
    appended: pa.Table | None = None,
    *,
    transaction: AppTransaction | None = None,
    counts: SpliceCounts | None = None,
) -> SpliceResult:
    """Replace rows of data files by position and add rows at the end, as one commit on the newest version.

    Each touched file is written anew in order, in bounded memory, and takes the old one's place in the order of files;
    a file without rows left is only removed. New rows of another partition than their file's go to new files at the
    end, as `appended` does. What others append meanwhile stays beside the changes.

    A table with a change data feed gets no change files: readers of the feed then take every row of the old files as
    deleted and every row of the new ones as inserted (deltalake 1.6.6, and so does the Delta protocol).

    Args:
        committer: Commits on the table.
        version: The version whose files the positions count in, for the message of a conflict.
        files: The cuts; positions count the rows that are not deleted.
        appended: Rows to add at the end.
        transaction: Splice at most once for this application transaction.
        counts: What the commit says of itself; None to take rows of one cut as updates, as many as go and come.

    Raises:
        CommitConflictError: A touched file is not live any more; nothing was written.
        InvalidArgumentError: Cuts overlap or reach beyond their file.
        SchemaMismatchError, LossyCastError, ConstraintViolationError, DuplicateKeyError: The new rows do not fit, or
            the table is append-only.
        UnsupportedFeatureError: The table has column mapping, or a touched file has a deletion vector.
    """
    touched = effective(files)
    told = counts or _derived(touched, appended)
    if not touched and (appended is None or appended.num_rows == 0):
        return SpliceResult(open_table(committer.location).version(), 0, 0, 0)
    job = _Splice(committer, version, touched, appended, told)
    keep_data = False
    try:
        done = committer.commit(job.act, guard=job.guard, transaction=transaction, silent=True)
        keep_data = True
    except CommitOutcomeUnknownError:
        keep_data = True
        raise
    finally:
        job.close(keep_data=keep_data)
    return SpliceResult(done.version, told.inserted, told.updated, told.deleted)


@dataclass(frozen=True, slots=True)
class _LiveFile:
    """A touched file: its row of the add actions and its partition."""

    row: Mapping[str, Any]
    partition: Mapping[str, pa.Scalar]


@dataclass(frozen=True, slots=True)
class _Placed:
    """New rows by where they go.

    Attributes:
        cuts: The cuts of each touched file, with the rows that stay in its partition.
        elsewhere: Rows for new files.
    """

    cuts: Mapping[str, tuple[Cut, ...]]
    elsewhere: pa.Table

    def staying(self) -> pa.Table:
        """Return the new rows of touched files."""
        parts = [cut.rows for cuts in self.cuts.values() for cut in cuts]
        return pa.concat_tables(parts) if parts else self.elsewhere.slice(0, 0)


@dataclass(slots=True)
class _Prepared:
    """Files that were written for a table of one definition; data files never change, so attempts share them."""

    definition: tuple[object, ...]
    workshop: NewFiles
    files: Sequence[NewFile] = ()
    fresh_keys: pa.Table | None = None


@dataclass(slots=True)
class _Splice:
    committer: Committer
    version: int
    touched: Mapping[str, tuple[Cut, ...]]
    appended: pa.Table | None
    counts: SpliceCounts
    _prepared: _Prepared | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.committer.location.name

    def guard(self, table: DeltaTable) -> None:
        """Refuse a table on which the cuts cannot be made."""
        require_plain_columns(table, "changing rows in place", self.name)
        if not self.touched:
            return
        require_known_paths(table, "changing rows in place", self.name)
        if properties(table).get(APPEND_ONLY) == "true":
            raise ConstraintViolationError(
                f"Table {self.name} is append-only (delta.appendOnly): rows cannot be changed or removed.",
                table=self.name,
            )
        gone = set(self.touched) - set(add_actions(table).column("path").to_pylist())
        if gone:
            raise CommitConflictError(
                f"Another writer changed rows of table {self.name} since version {self.version} that stand beside the "
                "changed ones; nothing was written. Read the table again and repeat the change.",
                table=self.name,
                version=table.version(),
                files=sorted(gone),
            )
        self._refuse_vectors(table)

    def act(self, table: DeltaTable, stamp: Stamp) -> None:
        """Commit; the files are written once, however often it is tried."""
        prepared = self._prepare(table)
        if prepared.fresh_keys is not None:
            key = prepared.fresh_keys.column_names
            check_absent(table, prepared.fresh_keys, key, self.name, index=self.committer.key_index)
        actions = self._actions(table, prepared.files)
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            partition_by=table.metadata().partition_columns,
            # Compare and swap: the engine does not see that a file we remove was compacted away meanwhile.
            commit_properties=stamp(exact=True, metadata=self._metadata(actions)),
        )

    def close(self, *, keep_data: bool) -> None:
        """Clean up; the outcome matters more than what is left, to which no version refers."""
        if self._prepared is not None:
            with suppress(InfrastructureError, StorageError), translated(self.committer.location):
                self._prepared.workshop.discard(keep_data=keep_data)

    def _prepare(self, table: DeltaTable) -> _Prepared:
        definition = _definition(table)
        if self._prepared is not None and self._prepared.definition == definition:
            return self._prepared
        self.close(keep_data=False)
        self._prepared = _Prepared(definition, NewFiles(self.committer.location, table))
        self._write_files(table, self._prepared)
        return self._prepared

    def _write_files(self, table: DeltaTable, prepared: _Prepared) -> None:
        live = self._live(table)
        placed = self._place(table, live)
        staying = placed.staying()
        key = primary_key(table)
        if key:
            check_distinct(pa.concat_tables([staying, placed.elsewhere]), key, self.name)
        check_partition_texts(placed.elsewhere, table.metadata().partition_columns, self.name)
        if _has_rules(table):
            prepared.workshop.check_rows(staying)
        prepared.workshop.add_rows(placed.elsewhere)
        gone = self._rewrite(table, prepared.workshop, live, placed.cuts)
        if key:
            new = pa.concat_tables([staying.select(key), placed.elsewhere.select(key)])
            prepared.fresh_keys = _without(new, gone)
        prepared.files = prepared.workshop.moved()

    def _rewrite(
        self,
        table: DeltaTable,
        workshop: NewFiles,
        live: Mapping[str, _LiveFile],
        cuts: Mapping[str, tuple[Cut, ...]],
    ) -> list[pa.RecordBatch]:
        """Write the touched files anew and return the keys of the rows that were taken out."""
        schema, key = arrow_schema(table), list(primary_key(table))
        partitions = table.metadata().partition_columns
        inside = pa.schema([field for field in schema if field.name not in partitions])
        reader = FileReader.of(self.committer.location, schema, str(table.metadata().id))
        gone: list[pa.RecordBatch] = []
        for path, file in live.items():
            with closing(read_ahead(reader.read(path, file.partition, None))) as batches:
                changed = spliced(_bare(batches), cuts[path], lambda batch: gone.append(batch.select(key)))
                workshop.rewrite(path, changed, inside)
        return gone

    def _place(self, table: DeltaTable, live: Mapping[str, _LiveFile]) -> _Placed:
        """Return the new rows in the table's columns, each where its partition is."""
        schema = arrow_schema(table)
        given = [cut.rows for cuts in self.touched.values() for cut in cuts]
        given += [] if self.appended is None else [self.appended]
        rows = conform(pa.concat_tables(given, promote_options="default"), schema, name=self.name)
        rows = pa.Table.from_batches(list(_bare(rows.combine_chunks().to_batches())), _bare_schema(schema))
        placed: dict[str, tuple[Cut, ...]] = {}
        elsewhere: list[pa.Table] = []
        at = 0
        for path, cuts in self.touched.items():
            own: list[Cut] = []
            for cut in cuts:
                part = rows.slice(at, cut.rows.num_rows)
                at += cut.rows.num_rows
                here, other = _split(part, live[path].partition)
                own.append(replace(cut, rows=here))
                elsewhere += [other] if other is not None else []
            placed[path] = tuple(own)
        return _Placed(placed, pa.concat_tables([*elsewhere, rows.slice(at)]))

    def _live(self, table: DeltaTable) -> dict[str, _LiveFile]:
        actions = add_actions(table)
        wanted = pc.SetLookupOptions(pa.array(list(self.touched), pa.string()))
        mask = pc.call_function("is_in", [actions.column("path").cast(pa.string())], wanted)
        rows = actions.filter(mask).to_pylist()
        values: list[dict[str, pa.Scalar]] = [{} for _ in rows]
        if table.metadata().partition_columns:
            typed = partition_values(table).filter(mask)
            values = [{c: typed.column(c)[n] for c in typed.column_names} for n in range(len(rows))]
        found = {row["path"]: _LiveFile(row, value) for row, value in zip(rows, values, strict=True)}
        return {path: found[path] for path in self.touched}

    def _actions(self, table: DeltaTable, files: Sequence[NewFile]) -> list[AddAction | RemoveAction]:
        columns = table.metadata().partition_columns
        live = self._live(table)
        removals = [removal(file.row, columns) for file in live.values()]
        last = max([now_ms(), *(ms + 1 for ms in _modification_times(table))])
        adds: list[AddAction] = []
        for number, file in enumerate(files):
            old = live[file.replaces].row if file.replaces is not None else None
            if old is None:
                adds.append(file.action(last + number))
            else:
                adds.append(file.action(old["modification_time"], partition_texts(old, columns)))
        return [*removals, *adds]

    def _metadata(self, actions: Sequence[AddAction | RemoveAction]) -> dict[str, Any]:
        removed = sum(isinstance(action, RemoveAction) for action in actions)
        # Named as the engine's merge names them.
        return {
            "isBlindAppend": not self.touched,
            "operationMetrics": {
                "num_target_rows_inserted": self.counts.inserted,
                "num_target_rows_updated": self.counts.updated,
                "num_target_rows_deleted": self.counts.deleted,
                "num_target_files_added": len(actions) - removed,
                "num_target_files_removed": removed,
            },
        }

    def _refuse_vectors(self, table: DeltaTable) -> None:
        # The engine cannot remove a file together with its vector: such a file would stay (deltalake 1.6.6).
        if not has_deletion_vectors(table):
            return
        vectors = pa.table(cast("Any", table.deletion_vectors()))
        hidden = [unquote(uri) for uri in vectors.column("filepath").to_pylist()]
        for path in self.touched:
            if any(uri.endswith(f"/{unquote(path)}") for uri in hidden):
                raise UnsupportedFeatureError(
                    f"Data file {path} of {self.name} has a deletion vector, with which its rows cannot be changed in "
                    "place: compact the table first.",
                    table=self.name,
                    feature="deletionVectors",
                )


def _derived(touched: Mapping[str, tuple[Cut, ...]], appended: pa.Table | None) -> SpliceCounts:
    pairs = [(cut.stop - cut.start, cut.rows.num_rows) for cuts in touched.values() for cut in cuts]
    updated = sum(map(min, pairs))
    return SpliceCounts(
        inserted=sum(came for _, came in pairs) - updated + (appended.num_rows if appended else 0),
        updated=updated,
        deleted=sum(went for went, _ in pairs) - updated,
    )


def _definition(table: DeltaTable) -> tuple[object, ...]:
    """Return everything on which the rows of a new file depend."""
    metadata, protocol = table.metadata(), table.protocol()
    return (
        str(metadata.id),
        table.schema().to_json(),
        tuple(metadata.partition_columns),
        tuple(sorted(properties(table).items())),
        tuple(protocol.writer_features or ()),
        protocol.min_writer_version,
    )


def _has_rules(table: DeltaTable) -> bool:
    rules = (rule for field in arrow_schema(table) for rule in field.metadata or {})
    return bool(constraints(table)) or any(rule in _COLUMN_RULES for rule in rules)


def _bare(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches without the columns' own rules and metadata, in which files and new rows differ."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=_bare_schema(batch.schema))


def _bare_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, field.type) for field in schema])


def _modification_times(table: DeltaTable) -> list[int]:
    return add_actions(table).column("modification_time").cast(pa.int64()).to_pylist()


def _split(rows: pa.Table, partition: Mapping[str, pa.Scalar]) -> tuple[pa.Table, pa.Table | None]:
    """Return the rows that belong into a partition, and the others."""
    if not partition or rows.num_rows == 0:
        return rows, None
    masks = [_equals(rows.column(name), value) for name, value in partition.items()]
    here = reduce(lambda some, other: pc.call_function("and", [some, other]), masks)
    return rows.filter(here), rows.filter(pc.call_function("invert", [here]))


def _equals(column: pa.ChunkedArray, value: pa.Scalar) -> pa.ChunkedArray:
    if not value.is_valid:
        return column.is_null()
    return pc.fill_null(pc.call_function("equal", [column, value]), False)


def _without(keys: pa.Table, gone: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the keys that are none of those that were taken out."""
    if not gone:
        return keys
    taken = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(gone)))
    left = pl.DataFrame(pl.from_arrow(keys)).join(taken, on=keys.column_names, how="anti")
    return left.to_arrow().cast(keys.schema)
