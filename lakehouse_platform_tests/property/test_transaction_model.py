"""Transactions against a model of plain Python rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.errors import DuplicateKeyError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.transaction import Transaction

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64()), ("l", pa.list_(pa.int32()))])
Row = dict[str, Any]
PARTITIONS = ["a", "x y", "ü/%=:", "it's", "2%3D", None]


def row(number: int, p: str | None = "a", v: float | None = 1.0) -> Row:
    return {"id": number, "p": p, "v": v, "l": [number, None]}


def texts(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


class Model:
    """What a transaction should do, on a list of rows."""

    def __init__(self, rows: list[Row], *, keyed: bool) -> None:
        self.rows, self.keyed = copy.deepcopy(rows), keyed

    def append(self, rows: list[Row]) -> None:
        if self.keyed and {found["id"] for found in rows} & {found["id"] for found in self.rows}:
            raise DuplicateKeyError("model")
        self.rows += copy.deepcopy(rows)

    def delete(self, low: int, high: int) -> int:
        kept = [found for found in self.rows if not low <= found["id"] <= high]
        gone, self.rows = len(self.rows) - len(kept), kept
        return gone

    def update(self, low: int, high: int) -> int:
        hit = [found for found in self.rows if low <= found["id"] <= high]
        for found in hit:
            found["v"], found["p"] = found["id"] * 2.0, "new/ü"
        return len(hit)

    def merge(self, rows: list[Row]) -> tuple[int, int, int]:
        inserted = updated = deleted = 0
        for new in copy.deepcopy(rows):
            operation = new.pop("_op")
            old = [found for found in self.rows if found["id"] == new["id"]]
            if operation == "DELETE":
                deleted += len(old)
                self.rows = [found for found in self.rows if found["id"] != new["id"]]
            elif old and operation in ("UPDATE", "UPSERT"):
                updated += len(old)
                for found in old:
                    found.update(new)
            elif not old and operation == "UPSERT":
                inserted += 1
                self.rows.append({**dict.fromkeys(SCHEMA.names), **new})
        return inserted, updated, deleted


_IDS = st.integers(0, 12)
_ROWS = st.lists(
    st.builds(
        row, _IDS, st.sampled_from(PARTITIONS), st.sampled_from([None, 0.0, -0.0, math.nan, math.inf, 1.5])
    ),
    max_size=4,
    unique_by=lambda found: found["id"],
)
_SPAN = st.tuples(_IDS, _IDS)
_OPERATION = st.sampled_from(["UPDATE", "DELETE", "UPSERT"])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), _ROWS),
        st.tuples(st.just("overwrite"), _ROWS),
        st.tuples(st.just("delete"), _SPAN),
        st.tuples(st.just("update"), _SPAN),
        st.tuples(
            st.just("merge"),
            _ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.lists(_OPERATION, min_size=4))),
        ),
    ),
    min_size=1,
    max_size=5,
)


def _step(tx: Transaction, model: Model, name: str, argument: Any) -> None:
    """Do one step on both and compare what it tells."""
    if name == "append":
        try:
            model.append(argument)
        except DuplicateKeyError:
            with pytest.raises(DuplicateKeyError):
                tx.append(argument)
            return
        tx.append(argument)
    elif name == "overwrite":
        model.rows = copy.deepcopy(argument)
        tx.overwrite(argument)
    elif name == "delete":
        expected = model.delete(*argument)
        assert tx.delete(f"id BETWEEN {argument[0]} AND {argument[1]}").rows_deleted == expected
    elif name == "update":
        expected = model.update(*argument)
        where = f"id BETWEEN {argument[0]} AND {argument[1]}"
        assert tx.update({"v": "CAST(id AS DOUBLE) * 2", "p": "'new/ü'"}, where).rows_updated == expected
    else:
        rows = [{**found, "_op": op} for found, op in zip(argument[0], argument[1], strict=False)]
        wanted = model.merge(rows)
        done = tx.merge(rows, on=["id"])
        assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == wanted


@pytest.fixture
def fresh(store: DeltaStore) -> Callable[[bool, bool], Table]:
    def create(keyed: bool, partitioned: bool) -> Table:
        name = f"t{len(store.tables())}"
        table = store.create(
            name, SCHEMA, primary_key=["id"] if keyed else (), partition_by=["p"] if partitioned else ()
        )
        table.append([row(number, PARTITIONS[number % 6]) for number in range(4)])
        table.append([row(number, PARTITIONS[number % 6], math.nan) for number in range(4, 8)])
        return table

    return create


@settings(max_examples=12)
@given(steps=_STEPS, keyed=st.booleans(), partitioned=st.booleans(), commits=st.booleans())
def test_any_sequence_of_steps_does_what_it_would_do_to_a_list(
    fresh: Callable[[bool, bool], Table], steps: list[Any], keyed: bool, partitioned: bool, commits: bool
) -> None:
    table = fresh(keyed, partitioned)
    before = table.scan().to_pylist()
    version = table.version()
    model = Model(before, keyed=keyed)
    tx = table.transaction()
    with tx:
        for name, argument in steps:
            _step(tx, model, name, argument)
            assert texts(tx.scan().to_pylist()) == texts(model.rows)
            assert tx.sql("SELECT count(*) AS n FROM data").to_pylist() == [{"n": len(model.rows)}]
        low = [found for found in model.rows if found["id"] < 5]
        assert texts(tx.query("id < 5").to_pylist()) == texts(low)
        assert texts(table.scan().to_pylist()) == texts(before)
        if not commits:
            tx.rollback()
    expected = model.rows if commits else before
    assert texts(table.scan().to_pylist()) == texts(expected)
    assert texts(table.scan(version=version).to_pylist()) == texts(before)
    assert table.version() <= version + 1
    table.compact()
    table.vacuum(retention_hours=0)
    assert texts(table.scan().to_pylist()) == texts(expected)
