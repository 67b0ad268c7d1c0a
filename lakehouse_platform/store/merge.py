"""Merge: insert, update and delete by key in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, QueryBuilder

from lakehouse_platform.errors import InvalidRowsError, SchemaMismatchError, UnsupportedFeatureError
from lakehouse_platform.model.results import MergeResult
from lakehouse_platform.store.cast import conform
from lakehouse_platform.store.commit import Committer, Stamp, at_version
from lakehouse_platform.store.keys import check_absent, check_distinct, check_key_columns, inferred_key
from lakehouse_platform.store.partitions import check_partition_texts
from lakehouse_platform.store.predicates import quote_identifier
from lakehouse_platform.store.rows import Held, RowsIn, as_table, hold
from lakehouse_platform.store.snapshot import arrow_schema, primary_key, require_known_paths

OPERATION_COLUMN = "_op"


class RowOperation(StrEnum):
    """What a source row asks for.

    INSERT fails if the key is there; UPDATE and DELETE pass over keys that are not; UPSERT, the default, does either.
    """

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    UPSERT = "UPSERT"


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Source rows of a merge.

    Attributes:
        rows: Data columns of the table (a missing one keeps the table's value on update), and optionally `_op`.
        given: Column name to the name of a boolean source column: whether a row gives that column a value at all.
    """

    rows: pa.Table
    given: Mapping[str, str]


def merge(
    committer: Committer,
    data: RowsIn | MergeSource,
    on: Sequence[str] | None = None,
    *,
    evolve: bool = False,
    expected_version: int | None = None,
) -> MergeResult:
    """Merge rows into a table by key, as one commit.

    Args:
        committer: Commits on the table.
        data: The rows; a column `_op` may say INSERT, UPDATE, DELETE or UPSERT for each.
        on: Key columns; None for the declared key, else the inferred one if it is unique.
        evolve: Add columns that the table lacks.
        expected_version: Merge only as the commit right after this version (compare and swap); None after any.

    Raises:
        DuplicateKeyError: The source holds a key twice, or inserts one that is there.
        InvalidRowsError: A key is NULL or an operation unknown.
        SchemaMismatchError: There is no usable key, or a column does not fit.
        CommitConflictError: The table is not at the expected version any more.
    """
    is_swap = expected_version is not None
    held = data if isinstance(data, MergeSource) else hold(data)

    def act(table: DeltaTable, stamp: Stamp) -> Mapping[str, Any]:
        name = committer.location.name
        schema = arrow_schema(table)
        key = merge_key(table, on, name)
        require_known_paths(table, "merging", name)
        given = held if isinstance(held, MergeSource) else _without_gaps(held, schema, name, evolve=evolve)
        source = prepare_source(given, schema, key, name, evolve=evolve)
        check_partition_texts(source.rows, table.metadata().partition_columns, name)
        check_absent(table, source.rows.filter(_is(source.rows, RowOperation.INSERT)), key, name)
        if source.rows.num_rows == 0:
            return {}
        return _execute(table, source, key, stamp(exact=is_swap), evolve=evolve)

    guard = at_version(committer.location.name, expected_version)
    done = committer.commit(act, rerun=not is_swap, guard=guard)
    metrics = committer.metrics(done)
    return MergeResult(
        version=done.version,
        rows_inserted=int(metrics.get("num_target_rows_inserted", 0)),
        rows_updated=int(metrics.get("num_target_rows_updated", 0)),
        rows_deleted=int(metrics.get("num_target_rows_deleted", 0)),
    )


def merge_key(table: DeltaTable, on: Sequence[str] | None, name: str) -> tuple[str, ...]:
    """Return the key to merge by.

    Raises:
        SchemaMismatchError: The table has another declared key than `on`, or none can be found.
        UnsupportedFeatureError: The table has a column `_op` of its own.
    """
    schema = arrow_schema(table)
    if OPERATION_COLUMN in schema.names:
        raise UnsupportedFeatureError(
            f"Table {name} has a column named {OPERATION_COLUMN}, which a merge reads as the operation of each row: "
            "use update, delete and append on it.",
            table=name,
        )
    declared = primary_key(table)
    if declared and on is not None and set(on) != set(declared):
        raise SchemaMismatchError(
            f"Table {name} declares primary key {', '.join(declared)}: merge on that, or leave `on` out.",
            table=name,
        )
    if declared or on is not None:
        return check_key_columns(schema, on or declared, name)
    inferred = inferred_key(schema)
    if inferred is None or not is_unique(table, (inferred,)):
        raise SchemaMismatchError(
            f"Table {name} has no key to merge by: declare one (set_primary_key) or name the columns with `on`.",
            table=name,
        )
    return check_key_columns(schema, (inferred,), name)


def is_unique(table: DeltaTable, key: Sequence[str]) -> bool:
    """Tell whether every row has its own key, NULL counting as none."""
    columns = ", ".join(map(quote_identifier, key))
    nulls = " OR ".join(f"{quote_identifier(column)} IS NULL" for column in key)
    query = (
        f"SELECT 1 FROM t GROUP BY {columns} HAVING count(*) > 1 "  # noqa: S608 - identifiers are quoted
        f"UNION ALL SELECT 1 FROM t WHERE {nulls} LIMIT 1"
    )
    found: Any = QueryBuilder().register("t", table).execute(query)
    return pa.table(found).num_rows == 0


def prepare_source(
    source: MergeSource, schema: pa.Schema, key: Sequence[str], name: str, *, evolve: bool = False
) -> MergeSource:
    """Return the source with typed columns and an `_op` for every row.

    Raises:
        SchemaMismatchError, LossyCastError, InvalidRowsError, DuplicateKeyError: See `merge`.
    """
    rows = source.rows
    data_columns = [c for c in rows.column_names if c != OPERATION_COLUMN and c not in source.given.values()]
    missing = [column for column in key if column not in data_columns]
    if missing:
        raise SchemaMismatchError(
            f"The rows lack key column {missing[0]!r} of {name}: add it.", column=missing[0]
        )
    # NOT NULL is left to the engine: a row that deletes need not have every column.
    wanted = pa.schema([f.with_nullable(True) for f in schema if f.name in data_columns])
    typed = conform(rows.select(data_columns), wanted, name=name, evolve=evolve)
    check_distinct(typed, key, name)
    typed = typed.append_column(OPERATION_COLUMN, _operations(rows))
    for column in source.given.values():
        typed = typed.append_column(column, rows.column(column))
    return MergeSource(typed, source.given)


def merge_rows(held: Held, schema: pa.Schema, name: str, *, evolve: bool = False) -> pa.Table:
    """Return held rows as a table; a list of mappings gets only the columns that some row has."""
    if isinstance(held, list):
        wanted = pa.schema(
            [*(f.with_nullable(True) for f in schema), pa.field(OPERATION_COLUMN, pa.string())]
        )
        present = [field for field in wanted if not held or any(field.name in row for row in held)]
        return as_table(held, pa.schema(present), name=name, evolve=evolve)
    return held.read_all() if isinstance(held, pa.RecordBatchReader) else held


def _without_gaps(held: Held, schema: pa.Schema, name: str, *, evolve: bool) -> MergeSource:
    return MergeSource(merge_rows(held, schema, name, evolve=evolve), {})


def _operations(rows: pa.Table) -> pa.ChunkedArray:
    if OPERATION_COLUMN not in rows.column_names:
        return pa.chunked_array([pa.repeat(pa.scalar(RowOperation.UPSERT.value), rows.num_rows)])
    given = pc.fill_null(rows.column(OPERATION_COLUMN).cast(pa.string()), RowOperation.UPSERT.value)
    upper = pc.call_function("utf8_upper", [given])
    known = pc.SetLookupOptions(pa.array([operation.value for operation in RowOperation]))
    unknown = upper.filter(pc.call_function("invert", [pc.call_function("is_in", [upper], known)]))
    if len(unknown):
        raise InvalidRowsError(
            f"_op is {unknown[0].as_py()!r}; allowed are {', '.join(RowOperation)}. Nothing was written."
        )
    return upper


def _is(rows: pa.Table, operation: RowOperation) -> pa.ChunkedArray:
    return pc.call_function("equal", [rows.column(OPERATION_COLUMN), pa.scalar(operation.value)])


def _execute(
    table: DeltaTable, source: MergeSource, key: Sequence[str], properties: CommitProperties, *, evolve: bool
) -> Mapping[str, Any]:
    columns = [
        c for c in source.rows.column_names if c != OPERATION_COLUMN and c not in source.given.values()
    ]
    on = " AND ".join(f"(t.{quote_identifier(c)} = s.{quote_identifier(c)})" for c in key)
    updates = {quote_identifier(c): _new_value(c, source.given) for c in columns if c not in key}
    inserts = {quote_identifier(c): f"s.{quote_identifier(c)}" for c in columns}
    # Streamed (the default): the merge conflicts with every concurrent append, so the key check above still holds
    # at the commit, and no key value is written into the log.
    merger = table.merge(
        source.rows, on, source_alias="s", target_alias="t", merge_schema=evolve, commit_properties=properties
    ).when_matched_delete(_asked(RowOperation.DELETE))
    if updates:
        merger = merger.when_matched_update(updates, _asked(RowOperation.UPDATE, RowOperation.UPSERT))
    return merger.when_not_matched_insert(inserts, _asked(RowOperation.INSERT, RowOperation.UPSERT)).execute()


def _new_value(column: str, given: Mapping[str, str]) -> str:
    name = quote_identifier(column)
    if column not in given:
        return f"s.{name}"
    return f"CASE WHEN s.{quote_identifier(given[column])} THEN s.{name} ELSE t.{name} END"


def _asked(*operations: RowOperation) -> str:
    return " OR ".join(f"(s.{quote_identifier(OPERATION_COLUMN)} = '{op.value}')" for op in operations)
