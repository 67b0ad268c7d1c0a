"""Several changes of one table as one commit or none.

A transaction reads and writes a private copy of the version it began on (`workspace.py`), so it sees its own writes and
nobody else's. At the end the copy's files become the table's in one commit. It conflicts with every change that took
rows away meanwhile, and, on a table with a declared key, with every other write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InfrastructureError,
    StorageError,
    TransactionClosedError,
    UnsupportedFeatureError,
)
from lakehouse_platform.model.results import DeleteResult, MergeResult, UpdateResult
from lakehouse_platform.store.cast import conform
from lakehouse_platform.store.commit import Committer, Stamp
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.files import file_paths, read_files
from lakehouse_platform.store.keys import check_absent, check_distinct, key_range
from lakehouse_platform.store.limits import sql_limits
from lakehouse_platform.store.log import read_commit
from lakehouse_platform.store.memory_sql import query_arrow
from lakehouse_platform.store.merge import (
    OPERATION_COLUMN,
    MergeSource,
    RowOperation,
    merge_key,
    merge_rows,
    prepare_source,
)
from lakehouse_platform.store.predicates import parse_predicate, quote_identifier
from lakehouse_platform.store.rough_statistics import require_exact
from lakehouse_platform.store.rows import RowsIn, as_table, hold
from lakehouse_platform.store.scan import Rows, scan
from lakehouse_platform.store.skipping import files_opened
from lakehouse_platform.store.snapshot import (
    arrow_schema,
    data_files,
    has_deletion_vectors,
    primary_key,
    require_known_paths,
    uses_column_mapping,
)
from lakehouse_platform.store.sql import SqlResult, run_sql
from lakehouse_platform.store.workspace import Workspace
from lakehouse_platform.store.writes import assignments_sql

# Key columns are numbered while rows are matched, so that none can have these names.
_ROW = "row"
_SOURCE = "source"
# Actions of a commit that takes nothing away: commits made of these alone may stand between our version and ours.
_APPENDS = {"commitInfo", "add", "txn"}


class Transaction:
    """One table's transaction: a context manager that commits at its end, or not at all if the block fails.

    Example:
        >>> with store.transaction("orders") as tx:  # doctest: +SKIP
        ...     tx.delete("state = 'cancelled'")
        ...     tx.append(rows)
    """

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._name = committer.location.name
        self._base: DeltaTable | None = None
        self._workspace: Workspace | None = None
        self._version: int | None = None

    @property
    def version(self) -> int:
        """The version that the commit made.

        Raises:
            TransactionClosedError: It has not committed.
        """
        if self._version is None:
            raise TransactionClosedError("The transaction has not committed, so it has no version.")
        return self._version

    def __enter__(self) -> Self:
        if self._base is not None:
            raise TransactionClosedError(
                f"This transaction on {self._name} was used before: begin a new one.", table=self._name
            )
        location = self._committer.location
        self._base = open_table(location)
        if uses_column_mapping(self._base) or has_deletion_vectors(self._base):
            raise UnsupportedFeatureError(
                f"Table {self._name} has column mapping or deletion vectors, on which transactions are not supported: "
                "change it by single operations.",
                table=self._name,
            )
        require_known_paths(self._base, "a transaction", self._name)
        self._workspace = Workspace(self._base, location)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._workspace is None:
            return
        if error is not None:
            self.rollback()
            return
        self.commit()

    def append(self, data: RowsIn) -> None:
        """Add rows; with a declared key, only rows whose key is new.

        Raises:
            SchemaMismatchError, LossyCastError, ConstraintViolationError, DuplicateKeyError: The rows do not fit.
        """
        copy = self._open()
        rows = as_table(hold(data), arrow_schema(copy), name=self._name)
        if key := primary_key(copy):
            check_distinct(rows, key, self._name)
            check_absent(copy, rows, key, self._name)
        self._add(rows)

    def delete(self, predicate: str) -> DeleteResult:
        """Delete the rows that fulfil a predicate.

        Raises:
            InvalidPredicateError: The predicate is not one whole condition.
        """
        copy = self._open()
        condition = parse_predicate(predicate, arrow_schema(copy))
        if condition.is_never:
            return DeleteResult(version=self._base_version(), rows_deleted=0)
        require_exact(copy, condition, self._name)
        keep = f"SELECT * FROM f WHERE ({condition.sql()}) IS NOT TRUE"  # noqa: S608 - rendered by store.predicates
        before = self._count()
        self._rewrite(condition.sql(), lambda rows: _sql(rows, keep))
        return DeleteResult(version=self._base_version(), rows_deleted=before - self._count())

    def update(self, assignments: Mapping[str, str], predicate: str | None = None) -> UpdateResult:
        """Set columns to expressions in the rows that fulfil a predicate; see `DeltaStore.update`."""
        copy = self._open()
        schema = arrow_schema(copy)
        updates = assignments_sql(assignments, schema, primary_key(copy), self._name)
        condition = parse_predicate("TRUE" if predicate is None else predicate, schema)
        if condition.is_never:
            return UpdateResult(version=self._base_version(), rows_updated=0)
        require_exact(copy, condition, self._name)
        changed = sum(batch.num_rows for batch in self.scan(predicate=predicate).reader())
        columns = ", ".join(_updated(name, updates.get(name), condition.sql()) for name in schema.names)
        query = f"SELECT {columns} FROM f"  # noqa: S608 - rendered by store.predicates
        self._rewrite(condition.sql(), lambda rows: _sql(rows, query))
        return UpdateResult(version=self._base_version(), rows_updated=changed)

    def merge(self, data: RowsIn, on: Sequence[str] | None = None) -> MergeResult:
        """Insert, update and delete rows by key; see `DeltaStore.merge`."""
        copy = self._open()
        schema = arrow_schema(copy)
        key = merge_key(copy, on, self._name)
        rows = merge_rows(hold(data), schema, self._name)
        source = prepare_source(MergeSource(rows, {}), schema, key, self._name).rows
        operations = source.column(OPERATION_COLUMN).to_pylist()
        inserts = source.filter(pa.array([op == RowOperation.INSERT for op in operations], pa.bool_()))
        check_absent(copy, inserts, key, self._name)
        counts = self._merge(source, schema, key)
        return MergeResult(
            version=self._base_version(),
            rows_inserted=counts[0],
            rows_updated=counts[1],
            rows_deleted=counts[2],
        )

    def overwrite(self, data: RowsIn) -> None:
        """Replace all rows.

        Raises:
            SchemaMismatchError, LossyCastError, ConstraintViolationError, DuplicateKeyError: The rows do not fit.
        """
        copy = self._open()
        rows = as_table(hold(data), arrow_schema(copy), name=self._name)
        if key := primary_key(copy):
            check_distinct(rows, key, self._name)
        self._replace(file_paths(copy), rows)

    def scan(
        self, columns: Sequence[str] | None = None, predicate: str | None = None, limit: int | None = None
    ) -> Rows:
        """Return rows as this transaction sees them; see `DeltaStore.scan`."""
        copy = self._open()
        return scan(self._live().location, copy, columns=columns, predicate=predicate, limit=limit)

    def query(self, predicate: str) -> Rows:
        """Return the rows that fulfil a predicate, as this transaction sees them."""
        return self.scan(predicate=predicate)

    def sql(self, text: str) -> SqlResult:
        """Run a read-only query; the table is visible as `data` and under its name, as this transaction sees it.

        Raises:
            InvalidSqlError, SqlNotAllowedError, QueryLimitError: See `DeltaStore.sql`.
        """
        copy = self._open()
        return run_sql(text, {self._name: copy, "data": copy}, sql_limits(self._committer.config))

    def commit(self) -> int:
        """Commit everything as one version and return it; a transaction without changes makes no version.

        Raises:
            CommitConflictError: Another writer changed what this transaction depends on; nothing was written.
            TransactionClosedError: It is closed already.
        """
        workspace = self._live()
        added, removed = workspace.net_change()
        keep_data = False
        try:
            self._version = self._publish([*removed, *added]) if added or removed else self._base_version()
            keep_data = bool(added)
        except CommitOutcomeUnknownError:
            keep_data = True
            raise
        finally:
            self._close(keep_data=keep_data)
        return self._version

    def rollback(self) -> None:
        """Forget all changes; the table stays as it was."""
        self._live()
        self._close(keep_data=False)

    def _publish(self, actions: list[Any]) -> int:
        def act(table: DeltaTable, stamp: Stamp) -> None:
            # Compare and swap: the engine does not see that a file we remove was compacted away meanwhile, and the rows
            # would be there twice (deltalake 1.6.6). What may have happened since our version, `_check_rivals` knows.
            properties = stamp(exact=True)
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                partition_by=table.metadata().partition_columns,
                commit_properties=properties,
            )

        return self._committer.commit(act, guard=self._check_rivals, silent=True).version

    def _check_rivals(self, newest: DeltaTable) -> None:
        """Refuse every commit since our version but plain appends; on a keyed table those too, for they bring keys."""
        location = self._committer.location
        for version in range(self._base_version() + 1, newest.version() + 1):
            with translated(location):
                actions = read_commit(location, version)
            if all("commitInfo" in action for action in actions):
                continue
            if primary_key(newest) or any(not _APPENDS & action.keys() for action in actions):
                raise CommitConflictError(
                    f"Another writer changed table {self._name} in version {version}, unseen by this transaction; "
                    "nothing was written. Begin a new transaction and repeat the changes.",
                    table=self._name,
                    version=version,
                )

    def _merge(self, source: pa.Table, schema: pa.Schema, key: Sequence[str]) -> tuple[int, int, int]:
        taken: set[int] = set()
        updated = deleted = 0
        copy = self._open()
        for path in self._candidates(copy, key_range(source, key[0])) if source.num_rows else []:
            rows = self._read(copy, path)
            result = _merge_file(rows, source, key)
            if not result.matched:
                continue
            taken |= result.matched
            updated += result.updated
            deleted += result.deleted
            self._replace([path], result.rows)
        fresh = _insertable(source, taken)
        self._add(conform(fresh.drop([OPERATION_COLUMN]), schema, name=self._name))
        return fresh.num_rows, updated, deleted

    def _rewrite(self, where: str, transform: Callable[[pa.Table], pa.Table]) -> None:
        copy = self._open()
        for path in self._candidates(copy, where):
            rows = self._read(copy, path)
            result = transform(rows)
            if not result.equals(rows):
                self._replace([path], result)

    def _candidates(self, copy: DeltaTable, where: str) -> list[str]:
        """Return the files that may hold rows fulfilling a condition; data file names are unique."""
        names = {path: unquote(path).rsplit("/", 1)[-1] for path in file_paths(copy)}
        opened = files_opened(self._live().location, copy, where, set(names.values()))
        return [path for path, name in names.items() if name in opened]

    def _read(self, copy: DeltaTable, path: str) -> pa.Table:
        batches = read_files(self._committer.location, copy, [path], self._live().table_path)
        return pa.Table.from_batches(batches, arrow_schema(copy))

    def _replace(self, paths: list[str], rows: pa.Table) -> None:
        self._add(rows)
        self._live().drop(paths)

    def _add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._live().add(rows)

    def _count(self) -> int:
        files = data_files(self._open())
        return sum(file.rows or 0 for file in files)

    def _open(self) -> DeltaTable:
        return self._live().open()

    def _live(self) -> Workspace:
        if self._workspace is None:
            raise TransactionClosedError(
                f"The transaction on {self._name} is not open: use it inside its `with` block.",
                table=self._name,
            )
        return self._workspace

    def _base_version(self) -> int:
        assert self._base is not None  # noqa: S101 - set together with the workspace
        return self._base.version()

    def _close(self, *, keep_data: bool) -> None:
        workspace, self._workspace = self._live(), None
        # Whether the commit landed matters more than what is left of the copy, to which no version refers.
        with suppress(InfrastructureError, StorageError):
            workspace.discard(keep_data=keep_data)


@dataclass(frozen=True, slots=True)
class _MergedFile:
    """One file's rows after a merge, and which source rows matched in it."""

    rows: pa.Table
    matched: set[int]
    updated: int
    deleted: int


def _merge_file(rows: pa.Table, source: pa.Table, key: Sequence[str]) -> _MergedFile:
    ours = _indexed(rows, key, _ROW)
    theirs = _indexed(source, key, _SOURCE)
    pairs = ours.join(theirs, on=[str(number) for number in range(len(key))], how="inner")
    operations = source.column(OPERATION_COLUMN).take(pairs.get_column(_SOURCE).to_arrow()).to_pylist()
    hits = list(
        zip(pairs.get_column(_ROW).to_list(), pairs.get_column(_SOURCE).to_list(), operations, strict=True)
    )
    deleted = [row for row, _, operation in hits if operation == RowOperation.DELETE]
    updated = [(row, src) for row, src, operation in hits if operation != RowOperation.DELETE]
    gone = {row for row, _ in updated}.union(deleted)
    kept = rows.filter(pa.array([row not in gone for row in range(rows.num_rows)], pa.bool_()))
    changed = _changed(rows, source, updated)
    matched = {src for _, src, _ in hits}
    return _MergedFile(pa.concat_tables([kept, changed]), matched, len(updated), len(deleted))


def _changed(rows: pa.Table, source: pa.Table, pairs: list[tuple[int, int]]) -> pa.Table:
    old = rows.take(pa.array([row for row, _ in pairs], pa.int64()))
    new = source.take(pa.array([src for _, src in pairs], pa.int64()))
    columns = [
        new.column(name) if name in new.column_names else old.column(name) for name in rows.column_names
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _insertable(source: pa.Table, taken: set[int]) -> pa.Table:
    operations = source.column(OPERATION_COLUMN).to_pylist()
    wanted = (RowOperation.INSERT, RowOperation.UPSERT)
    return source.filter(
        pa.array([op in wanted and number not in taken for number, op in enumerate(operations)], pa.bool_())
    )


def _indexed(rows: pa.Table, key: Sequence[str], index: str) -> pl.DataFrame:
    keys = pa.table({str(number): rows.column(name) for number, name in enumerate(key)})
    return cast("pl.DataFrame", pl.from_arrow(keys)).with_row_index(index)


def _updated(name: str, expression: str | None, condition: str) -> str:
    column = quote_identifier(name)
    return (
        column
        if expression is None
        else f"CASE WHEN {condition} THEN {expression} ELSE {column} END AS {column}"
    )


def _sql(rows: pa.Table, query: str) -> pa.Table:
    """Run a query over one file's rows, keeping their order and types."""
    return conform(query_arrow(rows, query), rows.schema, name="the transaction") if rows.num_rows else rows
