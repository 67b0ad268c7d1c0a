"""A declared key holds for every type, in every size of batch, through every write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.errors import (
    CommitConflictError,
    DuplicateKeyError,
    InvalidRowsError,
    LakehouseError,
    SchemaMismatchError,
)
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.keys import check_distinct, check_key_columns, inferred_key
from lakehouse_platform.store.table import Table

_EPOCH = datetime(2026, 2, 1, tzinfo=UTC)

# For each type a first value and one function of a number; all values differ, some only just.
_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), list(range(-128, 127))),
    "int64": (pa.int64(), [2**53 + n for n in range(400)] + [-(2**63), 2**63 - 1]),
    "text": (pa.string(), ["", " ", "a", "A", "ä", "a\u0308", "it's", '"', "%", "🙂", "\x00", "null"] + [f"k{n:04}" for n in range(400)]),  # noqa: E501
    "long text": (pa.string(), [f"{'x' * 80}{n:04}" for n in range(400)]),
    "date": (pa.date32(), [date(1, 1, 1) + timedelta(n) for n in range(400)] + [date(9999, 12, 31)]),
    "time": (pa.timestamp("us", "UTC"), [_EPOCH + timedelta(microseconds=n) for n in range(400)]),
    "naive time": (pa.timestamp("us"), [_EPOCH.replace(tzinfo=None) + timedelta(microseconds=n) for n in range(400)]),
    "decimal": (pa.decimal128(38, 10), [Decimal(n).scaleb(-10) for n in range(400)] + [Decimal("-9999999999999999999999999999.9")]),  # noqa: E501
    "binary": (pa.binary(), [b"", b"\x00", b"\x00\x00"] + [bytes([n % 256, n // 256]) + b"x" for n in range(400)]),
    "bool": (pa.bool_(), [True, False]),
}  # fmt: skip


def rows(kind: pa.DataType, values: list[Any], v: int = 0) -> pa.Table:
    return pa.table({"k": pa.array(values, kind), "v": pa.array([v] * len(values), pa.int64())})


def keyed(store: DeltaStore, kind: pa.DataType) -> Table:
    return store.create("t", pa.schema([("k", kind), ("v", pa.int64())]), primary_key=["k"])


@pytest.mark.parametrize("batch", [1, 1_000])
@pytest.mark.parametrize("kind", _VALUES)
def test_a_taken_key_is_found_and_a_free_one_is_not(store: DeltaStore, kind: str, batch: int) -> None:
    data_type, values = _VALUES[kind]
    table = keyed(store, data_type)
    taken, free = values[::2], values[1::2]
    table.append(rows(data_type, taken))
    for key in (taken[0], taken[-1]):
        refused = [key] if batch == 1 else [*free, key]
        with pytest.raises(DuplicateKeyError, match="already in the table"):
            table.append(rows(data_type, refused))
    added = free[:1] if batch == 1 else free
    table.append(rows(data_type, added))
    assert table.scan().to_arrow().num_rows == len(taken) + len(added)


@pytest.mark.parametrize("kind", _VALUES)
def test_a_key_is_merged_by_every_type(store: DeltaStore, kind: str) -> None:
    data_type, values = _VALUES[kind]
    table = keyed(store, data_type)
    table.append(rows(data_type, values[::2]))
    done = table.merge(rows(data_type, values, v=1))
    assert (done.rows_updated, done.rows_inserted) == (len(values[::2]), len(values[1::2]))
    with table.transaction() as tx:
        again = tx.merge(rows(data_type, values, v=2))
        assert (again.rows_updated, again.rows_inserted) == (len(values), 0)
    assert set(table.scan().to_arrow().column("v").to_pylist()) == {2}


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "it's"]), st.integers(0, 3)), unique=True, max_size=5),
    st.lists(st.tuples(st.sampled_from(["a", "b", "it's"]), st.integers(0, 3)), max_size=5),
    st.booleans(),
)
def test_a_key_of_two_columns_is_their_pair(
    store: DeltaStore, first: list[Any], second: list[Any], streamed: bool
) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    table = store.create(f"t{len(store.tables())}", schema, primary_key=["a", "b"])
    table.append([{"a": a, "b": b} for a, b in first])
    data = pa.table({"a": [a for a, _ in second], "b": [b for _, b in second]}, schema=table.arrow_schema())
    fits = len(set(second)) == len(second) and not set(first) & set(second)
    try:
        table.append(data.to_reader(max_chunksize=2) if streamed else data)
    except DuplicateKeyError:
        assert not fits
    else:
        assert fits
    stored = [(row["a"], row["b"]) for row in table.scan().to_pylist()]
    assert sorted(stored) == sorted(first + (second if fits else []))


@pytest.mark.parametrize("where", ["same batch", "later batch", "table"])
def test_a_stream_with_a_taken_key_leaves_nothing(store: DeltaStore, where: str) -> None:
    table = keyed(store, pa.int64())
    table.append(rows(pa.int64(), [100]))
    second = {"same batch": [1, 1], "later batch": [2, 0], "table": [1, 100]}[where]
    stream = pa.RecordBatchReader.from_batches(
        table.arrow_schema(), [*rows(pa.int64(), [0]).cast(table.arrow_schema()).to_batches(),
                               *rows(pa.int64(), second).cast(table.arrow_schema()).to_batches()]
    )  # fmt: skip
    with pytest.raises(DuplicateKeyError):
        table.append(stream)
    assert table.scan().to_arrow().column("k").to_pylist() == [100]


@pytest.mark.parametrize(
    "write",
    [
        lambda table, data: table.append(data),
        lambda table, data: table.append(data.to_reader()),
        lambda table, data: table.overwrite(data),
        lambda table, data: table.merge(data),
        lambda table, data: table.overwrite_where("v = 0", data),
    ],
)
def test_a_key_that_comes_twice_is_refused_by_every_write(store: DeltaStore, write: Any) -> None:
    table = keyed(store, pa.string())
    table.append(rows(pa.string(), ["a"]))
    with pytest.raises(DuplicateKeyError, match="b"):
        write(table, rows(pa.string(), ["b", "b"]).cast(table.arrow_schema()))
    assert table.scan().to_pylist() == [{"k": "a", "v": 0}]


def test_overwrite_where_may_keep_keys_it_replaces_but_not_take_others(store: DeltaStore) -> None:
    table = keyed(store, pa.string())
    table.append(pa.table({"k": ["a", "b", "c"], "v": pa.array([1, 1, None], pa.int64())}))
    table.overwrite_where("v = 1", rows(pa.string(), ["a", "d"], v=1))
    assert sorted(row["k"] for row in table.scan().to_pylist()) == ["a", "c", "d"]
    with pytest.raises(DuplicateKeyError, match="c"):
        table.overwrite_where("v = 1", rows(pa.string(), ["c"], v=1))


def test_null_is_no_key(store: DeltaStore) -> None:
    table = keyed(store, pa.string())
    for write in (table.append, table.overwrite, table.merge):
        with pytest.raises(LakehouseError, match="k"):
            write(pa.table({"k": pa.array([None], pa.string()), "v": [1]}))
    with pytest.raises(InvalidRowsError, match="NULL"):
        check_distinct(pa.table({"k": [1, None]}), ["k"], "t")


def test_a_key_declared_while_others_write_is_true_of_every_row(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("k", pa.int64()), ("v", pa.int64())]))

    def append(number: int) -> bool:
        try:
            table.append(rows(pa.int64(), [number % 4], v=number))
        except (DuplicateKeyError, CommitConflictError):
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        first = [threads.submit(append, number) for number in range(2)]
        declared = threads.submit(table.set_primary_key, ["k"])
        later = [threads.submit(append, number) for number in range(2, 10)]
        landed = sum(future.result() for future in [*first, *later])
    failed = declared.exception()
    keys = table.scan().to_arrow().column("k").to_pylist()
    assert len(keys) == landed
    assert (len(set(keys)) == len(keys)) if failed is None else isinstance(failed, DuplicateKeyError)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((), "at least one"),
        (("k", "k"), "each once"),
        (("nope",), "no column 'nope'"),
        (("f",), "double"),
        (("l",), "list"),
    ],
)
def test_columns_that_cannot_be_a_key(columns: tuple[str, ...], reason: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("f", pa.float64()), ("l", pa.list_(pa.int64()))])
    with pytest.raises(SchemaMismatchError, match=reason):
        check_key_columns(schema, columns, "t")


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ([("v", pa.string()), ("id", pa.string()), ("n", pa.int32())], "id"),
        ([("v", pa.string()), ("n", pa.int32()), ("m", pa.int64())], "n"),
        ([("id", pa.list_(pa.int64())), ("n", pa.int64())], "n"),
        ([("v", pa.int16()), ("w", pa.string())], None),
    ],
)
def test_the_key_of_a_table_that_declares_none(fields: list[Any], key: str | None) -> None:
    assert inferred_key(pa.schema(fields)) == key
