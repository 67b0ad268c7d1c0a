"""Append, overwrite, delete and update: each one commit, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, cast

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from lakehouse_platform.errors import InvalidRowsError, SchemaMismatchError
from lakehouse_platform.model.results import DeleteResult, UpdateResult
from lakehouse_platform.store.cast import conform_stream, plain_schema
from lakehouse_platform.store.checks import first_row_outside, named_violations
from lakehouse_platform.store.commit import AppTransaction, Committer, Stamp, at_version
from lakehouse_platform.store.key_index import KeyIndex
from lakehouse_platform.store.keys import (
    check_absent,
    check_distinct,
)
from lakehouse_platform.store.partitions import check_partition_texts
from lakehouse_platform.store.predicates import parse_expression, parse_predicate, quote_identifier
from lakehouse_platform.store.properties import allows_evolution
from lakehouse_platform.store.rough_statistics import require_exact
from lakehouse_platform.store.rows import Held, RowsIn, as_table, hold
from lakehouse_platform.store.snapshot import (
    arrow_schema,
    primary_key,
    require_known_paths,
    require_plain_columns,
)
from lakehouse_platform.store.stream import Stream


def append(
    committer: Committer,
    data: RowsIn,
    *,
    evolve: bool = False,
    transaction: AppTransaction | None = None,
    expected_version: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> int:
    """Add rows; with a declared key, only rows whose key is new.

    Args:
        committer: Commits on the table.
        data: The rows; a stream is written in bounded memory.
        evolve: Add columns that the table lacks.
        transaction: Write at most once for this application transaction.
        expected_version: Write only as the commit right after this version (compare and swap); None after any.
        metadata: What the commit says about itself besides its origin.

    Returns:
        The version that now holds the rows; the current one if there were none.

    Raises:
        SchemaMismatchError, LossyCastError, ConstraintViolationError, DuplicateKeyError: The rows do not fit.
        CommitConflictError: A stream was overtaken by a change that an append depends on, or the table is not at the
            expected version any more.
    """
    held = hold(data)
    is_swap = expected_version is not None
    guard = at_version(committer.location.name, expected_version)

    def act(table: DeltaTable, stamp: Stamp) -> None:
        wider = evolve or allows_evolution(table.metadata().configuration)
        rows = _prepared(committer, held, table, evolve=wider, beside_existing=True)
        if isinstance(rows, Stream) or rows.num_rows or len(rows.schema) > len(arrow_schema(table)):
            _write(
                table,
                rows,
                stamp(exact=is_swap or bool(primary_key(table)), metadata=metadata),
                committer.location.name,
                mode="append",
                evolve=wider,
            )

    rerun = _replayable(held) and not is_swap
    return committer.commit(act, rerun=rerun, guard=guard, transaction=transaction).version


def overwrite(committer: Committer, data: RowsIn, *, evolve: bool = False) -> int:
    """Replace all rows in one commit; with `evolve` the columns too.

    Raises:
        SchemaMismatchError, LossyCastError, ConstraintViolationError, DuplicateKeyError: The rows do not fit.
    """
    held = hold(data)

    def act(table: DeltaTable, stamp: Stamp) -> None:
        require_known_paths(table, "overwriting", committer.location.name)
        rows = _prepared(committer, held, table, evolve=evolve)
        # The engine would let a concurrent append's rows stay beside the new ones: compare and swap.
        _write(table, rows, stamp(exact=True), committer.location.name, mode="overwrite", evolve=evolve)

    return committer.commit(act, rerun=_replayable(held)).version


def overwrite_where(committer: Committer, predicate: str, data: RowsIn) -> int:
    """Replace the rows that fulfil a predicate by rows that all fulfil it, in one commit.

    Raises:
        InvalidPredicateError: The predicate is not one whole condition.
        InvalidRowsError: A new row does not fulfil the predicate.
        ConstraintViolationError: A new row breaks a constraint.
        DuplicateKeyError: A new row's key stands in a row that stays.
    """
    held = hold(data)
    name = committer.location.name

    def act(table: DeltaTable, stamp: Stamp) -> None:
        require_plain_columns(table, "overwriting", name)
        require_known_paths(table, "overwriting", name)
        schema = arrow_schema(table)
        condition = parse_predicate(predicate, schema)
        rows = as_table(held, schema, name=name)
        key = primary_key(table)
        if condition.is_never:
            if rows.num_rows:
                raise InvalidRowsError(
                    f"No row can fulfil {predicate!r}, so none can be written in its place."
                )
            return
        require_exact(table, condition, name)
        if row := first_row_outside(rows, condition):
            raise InvalidRowsError(
                f"Row {row} does not fulfil {predicate!r}, in whose place the rows are written. Nothing was written.",
                row=row,
            )
        if key:
            check_distinct(rows, key, name)
            check_absent(table, rows, key, name, outside=condition.sql())
        where = None if condition.is_always else condition.sql()
        # As in `overwrite`: a file that was compacted meanwhile would stay beside the new rows.
        _write(table, rows, stamp(exact=True), name, mode="overwrite", predicate=where)

    return committer.commit(act, rerun=_replayable(held)).version


def delete(
    committer: Committer, predicate: str, *, transaction: AppTransaction | None = None
) -> DeleteResult:
    """Delete the rows that fulfil a predicate; those for which it is NULL stay.

    Args:
        committer: Commits on the table.
        predicate: Which rows; TRUE removes all files and rewrites none.
        transaction: Delete at most once for this application transaction.

    Raises:
        InvalidPredicateError: The predicate is not one whole condition over the table's columns.
    """

    def act(table: DeltaTable, stamp: Stamp) -> Mapping[str, Any]:
        condition = parse_predicate(predicate, arrow_schema(table))
        if condition.is_never:
            return {}
        require_known_paths(table, "deleting", committer.location.name)
        require_exact(table, condition, committer.location.name)
        # Without a condition the engine overlooks a compaction meanwhile, and its rows would stay: compare and swap.
        properties = stamp(exact=condition.is_always)
        return table.delete(None if condition.is_always else condition.sql(), commit_properties=properties)

    done = committer.commit(act, transaction=transaction)
    return DeleteResult(
        version=done.version, rows_deleted=int(committer.metrics(done).get("num_deleted_rows", 0))
    )


def update(
    committer: Committer, assignments: Mapping[str, str], predicate: str | None = None
) -> UpdateResult:
    """Set columns to expressions in the rows that fulfil a predicate.

    Args:
        committer: Commits on the table.
        assignments: Column name to expression text, such as `{"price": "price * 1.1", "note": "'sale'"}`.
        predicate: Which rows; None for all.

    Raises:
        InvalidPredicateError: The predicate or an expression cannot be understood, or has another type.
        SchemaMismatchError: An unknown column, or a column of the declared primary key.
    """

    def act(table: DeltaTable, stamp: Stamp) -> Mapping[str, Any]:
        schema = arrow_schema(table)
        values = assignments_sql(assignments, schema, primary_key(table), committer.location.name)
        updates = {quote_identifier(column): sql for column, sql in values.items()}
        condition = parse_predicate(predicate, schema) if predicate is not None else None
        if condition is not None and condition.is_never:
            return {}
        require_known_paths(table, "updating", committer.location.name)
        if condition is not None:
            require_exact(table, condition, committer.location.name)
        where = None if condition is None or condition.is_always else condition.sql()
        _check_new_partitions(table, values, where, committer.location.name)
        return table.update(updates=updates, predicate=where, commit_properties=stamp())

    done = committer.commit(act)
    return UpdateResult(
        version=done.version, rows_updated=int(committer.metrics(done).get("num_updated_rows", 0))
    )


def _check_new_partitions(table: DeltaTable, values: Mapping[str, str], where: str | None, name: str) -> None:
    """Refuse an update that would give a partition column a text that is read as NULL."""
    for column in table.metadata().partition_columns:
        if column in values:
            query = f"SELECT DISTINCT {values[column]} AS {quote_identifier(column)} FROM t WHERE {where or 'TRUE'}"  # noqa: S608
            stream: Any = QueryBuilder().register("t", table).execute(query)
            found = pa.table(stream)
            check_partition_texts(found.cast(plain_schema(found.schema)), (column,), name)


def guarded_keys(
    batches: Iterator[pa.RecordBatch],
    key: Sequence[str],
    name: str,
    beside: DeltaTable | None,
    index: KeyIndex | None = None,
) -> Iterator[pa.RecordBatch]:
    """Pass batches on and fail at their end, before they are committed, if their keys are not new and distinct.

    Only the key columns are kept in memory.
    """
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        kept.append(batch.select(list(key)))
        yield batch
    if kept:
        # The engine consumes the stream on a thread of its runtime, where a second query of it panics.
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(_check_keys, pa.Table.from_batches(kept), key, name, beside, index).result()


def _prepared(
    committer: Committer, held: Held, table: DeltaTable, *, evolve: bool, beside_existing: bool = False
) -> pa.Table | Stream:
    """Return held rows in the table's columns, with their keys checked, now or as they stream."""
    name, index = committer.location.name, committer.key_index
    key = primary_key(table)
    beside = table if beside_existing else None
    if isinstance(held, pa.RecordBatchReader):
        schema, conformed = conform_stream(held, arrow_schema(table), name=name, evolve=evolve)
        batches = checked_partitions(conformed, table.metadata().partition_columns, name)
        return Stream(schema, guarded_keys(batches, key, name, beside, index) if key else batches)
    # One batch, because the engine mixes several up (deltalake 1.6.6) and a file is read in its own order.
    rows = as_table(held, arrow_schema(table), name=name, evolve=evolve).combine_chunks()
    if key:
        _check_keys(rows, key, name, beside, index)
    return rows


def checked_partitions(
    batches: Iterator[pa.RecordBatch], columns: Sequence[str], name: str
) -> Iterator[pa.RecordBatch]:
    """Pass batches on and fail at the first with a text that is read as NULL in a partition column."""
    for batch in batches:
        check_partition_texts(pa.Table.from_batches([batch]), columns, name)
        yield batch


def _check_keys(
    rows: pa.Table, key: Sequence[str], name: str, beside: DeltaTable | None, index: KeyIndex | None
) -> None:
    check_distinct(rows, key, name)
    if beside is not None:
        check_absent(beside, rows, key, name, index=index)


def _replayable(held: Held) -> bool:
    return not isinstance(held, pa.RecordBatchReader)


def _write(
    table: DeltaTable,
    rows: pa.Table | Stream,
    properties: CommitProperties,
    name: str,
    *,
    mode: Literal["append", "overwrite"],
    evolve: bool = False,
    predicate: str | None = None,
) -> None:
    if isinstance(rows, pa.Table):
        check_partition_texts(rows, table.metadata().partition_columns, name)
    schema_mode = ("merge" if mode == "append" else "overwrite") if evolve else None
    with rows.source_errors() if isinstance(rows, Stream) else named_violations(table, rows, name):
        write_deltalake(
            table,
            cast("pa.Table", rows.reader if isinstance(rows, Stream) else rows),
            mode=cast("Any", mode),
            schema_mode=cast("Any", schema_mode),
            predicate=predicate,
            commit_properties=properties,
        )


def assignments_sql(
    assignments: Mapping[str, str], schema: pa.Schema, key: Sequence[str], name: str
) -> dict[str, str]:
    """Return each column's new value as engine-safe SQL.

    Raises:
        SchemaMismatchError: A column is unknown or part of the key, or none is named.
        InvalidPredicateError: An expression cannot be understood.
    """
    if not assignments:
        raise SchemaMismatchError(f"An update of {name} needs at least one column to set.", table=name)
    for column in assignments:
        if column not in schema.names:
            raise SchemaMismatchError(
                f"Table {name} has no column {column!r} to set; it has {', '.join(schema.names)}.",
                column=column,
            )
        if column in key:
            raise SchemaMismatchError(
                f"Column {column!r} is part of the primary key of {name} and cannot be updated: "
                "delete the row and insert it anew.",
                column=column,
            )
    return {
        column: parse_expression(text, schema, schema.field(column).type).sql()
        for column, text in assignments.items()
    }
