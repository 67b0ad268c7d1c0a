"""Reading: scans, skipping, SQL."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from bench.data import rows
from bench.pairs import ONE_ROW, Pair, Side
from bench.workshop import Case, Workshop, pair

_AGGREGATE = "SELECT city, count(*) AS n, sum(amount) AS total, max(name) AS last FROM {} GROUP BY city"


def _full_scan(workshop: Workshop) -> Pair:
    raw, ours = workshop.twins(rows(workshop.sizes.rows))
    return pair(lambda: _table(DeltaTable(raw).scan()), lambda: ours.scan().to_arrow())


def _full_scan_as_strings(workshop: Workshop) -> Pair:
    """The raw scan yields string views; most of Arrow's functions want strings, which the store hands out."""
    raw, ours = workshop.twins(rows(workshop.sizes.rows))
    schema = ours.scan().schema
    return pair(lambda: _table(DeltaTable(raw).scan()).cast(schema), lambda: ours.scan().to_arrow())


def _full_scan_by_pyarrow(workshop: Workshop) -> Pair:
    raw, ours = workshop.twins(rows(workshop.sizes.rows))
    return pair(lambda: DeltaTable(raw).to_pyarrow_table(), lambda: ours.scan().to_arrow())


def _skipping_scan(workshop: Workshop) -> Pair:
    raw, ours = workshop.twins(rows(workshop.sizes.rows), files=workshop.sizes.skip_files)
    first = workshop.sizes.rows // 2
    predicate = f"id >= {first} AND id < {first + workshop.sizes.rows // 100}"
    return pair(
        lambda: _table(DeltaTable(raw).scan(predicate=predicate)),
        lambda: ours.scan(predicate=predicate).to_arrow(),
    )


def _one_row(workshop: Workshop) -> Pair:
    raw, ours = workshop.twins(rows(workshop.sizes.rows), files=workshop.sizes.skip_files)
    predicate = f"id = {workshop.sizes.rows // 2}"
    return pair(
        lambda: _table(DeltaTable(raw).scan(predicate=predicate)),
        lambda: ours.scan(predicate=predicate).to_arrow(),
    )


def _sql_aggregate(workshop: Workshop) -> Pair:
    raw, _ = workshop.twins(rows(workshop.sizes.rows))
    store = workshop.store()
    return pair(
        lambda: _sql(raw, _AGGREGATE.format("ours")), lambda: store.sql(_AGGREGATE.format("ours")).to_arrow()
    )


def _sql_one_row(workshop: Workshop) -> Pair:
    raw, _ = workshop.twins(rows(workshop.sizes.rows), files=workshop.sizes.skip_files)
    store = workshop.store()
    text = f"SELECT id, name, amount FROM ours WHERE id = {workshop.sizes.rows // 2}"
    return pair(lambda: _sql(raw, text), lambda: store.sql(text).to_arrow())


def _sql_after_commit(workshop: Workshop) -> Pair:
    """The store keeps a table open while nothing is committed to it; here something always is."""
    raw, ours = workshop.twins(rows(workshop.sizes.rows), files=workshop.sizes.skip_files)
    store, one = workshop.store(), rows(1)
    text = f"SELECT id, name, amount FROM ours WHERE id = {workshop.sizes.rows // 2}"
    return Pair(
        Side(lambda: _sql(raw, text), lambda: write_deltalake(raw, one, mode="append")),
        Side(
            lambda: store.sql(text).to_arrow(),
            lambda: write_deltalake(ours.location.uri, one, mode="append"),
        ),
    )


def _sql(path: str, text: str) -> pa.Table:
    return _table(QueryBuilder().register("ours", DeltaTable(path)).execute(text))


def _table(stream: object) -> pa.Table:
    return pa.table(cast("Any", stream))


READ_CASES = (
    Case("full scan", _full_scan, 31),
    Case("full scan / raw cast to strings", _full_scan_as_strings, 31),
    Case("full scan / raw to_pyarrow_table", _full_scan_by_pyarrow, 11),
    Case("filtered scan, 1 % of the rows", _skipping_scan, 51),
    Case("scan of one row by its id", _one_row, 101, ONE_ROW),
    Case("SQL aggregate", _sql_aggregate, 31),
    Case("SQL of one row by its id", _sql_one_row, 101, ONE_ROW),
    Case("SQL of one row by its id, after a commit", _sql_after_commit, 51, ONE_ROW),
)
