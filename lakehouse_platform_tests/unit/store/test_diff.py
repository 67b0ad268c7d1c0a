"""Differences of versions against a model of plain Python rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.errors import SchemaMismatchError, VersionNotFoundError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.diff import changes
from lakehouse_platform.store.table import Table

Row = dict[str, Any]
_STRUCT = pa.struct([("a", pa.float64()), ("b", pa.list_(pa.string()))])
# Without a column `id` and without whole numbers, so that no key is inferred.
SCHEMA = pa.schema(
    [
        ("k", pa.string()), ("f", pa.float64()), ("g", pa.float32()), ("d", pa.decimal128(10, 2)), ("day", pa.date32()),
        ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")), ("b", pa.binary()), ("y", pa.bool_()),
        ("l", pa.list_(pa.float64())), ("s", _STRUCT), ("m", pa.map_(pa.string(), pa.float64())),
    ]
)  # fmt: skip
_FLOATS = [None, 0.0, -0.0, math.nan, math.inf, 0.5]
_VALUES: dict[str, list[Any]] = {
    "f": _FLOATS,
    "g": _FLOATS,
    "d": [None, Decimal("1.50"), Decimal("-0.01")],
    "day": [None, date(2026, 2, 1)],
    "t": [None, datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 1, 0, 0, 0, 1, tzinfo=UTC)],
    "n": [None, datetime.fromisoformat("0001-01-01")],
    "b": [None, b"", b"\x00"],
    "y": [None, True, False],
    "l": [None, [], [0.0], [-0.0], [math.nan], [None]],
    "s": [None, {"a": None, "b": None}, {"a": -0.0, "b": ["", None]}, {"a": math.nan, "b": []}],
    "m": [None, [], [("k", 0.5)], [("k", None)]],
}  # fmt: skip
_CELLS = {name: st.sampled_from(values) for name, values in _VALUES.items()}
_ROW = st.fixed_dictionaries({"k": st.sampled_from([None, "", "a", "b", "ü"]), **_CELLS})
# Few different rows, so that they repeat and that the two sides share some.
_SOME_ROWS = st.lists(_ROW, min_size=1, max_size=3).flatmap(
    lambda pool: st.tuples(*[st.lists(st.sampled_from(pool), max_size=6)] * 2)
)
_KEYED = st.dictionaries(st.sampled_from("abcdef"), _ROW, max_size=5).map(
    lambda rows: [{**row, "k": key} for key, row in rows.items()]
)


def exact(row: Row) -> str:
    """Return a text that equal rows share, and no others: it tells -0.0 from 0.0 and NaN from NULL."""
    return repr([row[name] for name in row if name != "_change_type"])


def told(difference: pa.Table) -> Counter[tuple[str, str]]:
    return Counter((row["_change_type"], exact(row)) for row in difference.to_pylist())


def multiset(old: list[Row], new: list[Row]) -> Counter[tuple[str, str]]:
    before, after = Counter(map(exact, old)), Counter(map(exact, new))
    gone = Counter({("delete", row): count for row, count in (before - after).items()})
    return gone + Counter({("insert", row): count for row, count in (after - before).items()})


def keyed(old: list[Row], new: list[Row]) -> Counter[tuple[str, str]]:
    before, after = ({row["k"]: exact(row) for row in rows} for rows in (old, new))
    result: Counter[tuple[str, str]] = Counter()
    for key in before.keys() | after.keys():
        was, now = before.get(key), after.get(key)
        if was == now:
            continue
        if was is not None:
            result["delete" if now is None else "update_preimage", was] += 1
        if now is not None:
            result["insert" if was is None else "update_postimage", now] += 1
    return result


def as_arrow(rows: list[Row]) -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] for row in rows], SCHEMA.field(name).type) for name in SCHEMA.names}
    )


@given(_SOME_ROWS)
def test_rows_without_a_key_are_compared_as_a_multiset(sides: tuple[list[Row], list[Row]]) -> None:
    old, new = map(as_arrow, sides)
    assert told(changes(old, new, ())) == multiset(old.to_pylist(), new.to_pylist())


@given(_KEYED, _KEYED)
def test_rows_with_a_key_are_compared_by_it(before: list[Row], after: list[Row]) -> None:
    old, new = as_arrow(before), as_arrow(after)
    assert told(changes(old, new, ["k"])) == keyed(old.to_pylist(), new.to_pylist())


@pytest.mark.parametrize("key", [("f",), ("k", "day"), ("d", "b")])
def test_null_is_a_key_of_its_own(key: tuple[str, ...]) -> None:
    row = dict.fromkeys(SCHEMA.names)
    difference = changes(as_arrow([row]), as_arrow([{**row, "y": True}]), key)
    assert difference.column("_change_type").to_pylist() == ["update_preimage", "update_postimage"]


# ── Versions of a table ───────────────────────────────────────────────────────────────────────────


@pytest.fixture
def fresh(store: DeltaStore) -> Callable[[bool, bool], Table]:
    def create(with_key: bool, partitioned: bool) -> Table:
        name = f"t{len(store.tables())}"
        return store.create(
            name, SCHEMA, primary_key=["k"] if with_key else (), partition_by=["day"] if partitioned else ()
        )

    return create


def _delete(table: Table) -> None:
    table.delete("k = 'a'")


def _update(table: Table) -> None:
    table.update({"f": "1.0", "y": "TRUE"}, "k <> 'b'")


def _transaction(table: Table) -> None:
    with table.transaction() as tx:
        tx.delete("y")
        tx.update({"f": "0.25"}, "d IS NULL")


_CHANGES: dict[str, Callable[[Table], object]] = {
    "delete": _delete,
    "update": _update,
    "transaction": _transaction,
    "compact": lambda table: table.compact(),
    "z_order": lambda table: table.z_order(["k"]),
    "restore": lambda table: table.restore(1),
    "overwrite": lambda table: table.overwrite(table.scan().to_arrow()),
    "add_columns": lambda table: table.add_columns(pa.schema([(f"new{table.version()}", pa.string())])),
}


@settings(max_examples=12)
@given(
    rows=st.tuples(_KEYED, _KEYED),
    steps=st.lists(st.sampled_from(list(_CHANGES)), max_size=3),
    with_key=st.booleans(),
    partitioned=st.booleans(),
)
def test_any_two_versions_differ_by_what_their_rows_say(
    fresh: Callable[[bool, bool], Table], rows: Any, steps: list[str], with_key: bool, partitioned: bool
) -> None:
    table = fresh(with_key, partitioned)
    table.append(as_arrow(rows[0]))
    taken = {row["k"] for row in rows[0]}
    table.append(as_arrow([row for row in rows[1] if row["k"] not in taken]))
    for step in steps:
        _CHANGES[step](table)
    newest = table.version()
    columns = table.arrow_schema().names
    for before in range(newest + 1):
        old = [{name: row.get(name) for name in columns} for row in table.scan(version=before).to_pylist()]
        new = table.scan(version=newest).to_pylist()
        assert told(table.diff(before, newest)) == (keyed if with_key else multiset)(old, new)


@pytest.mark.parametrize("maintenance", ["compact", "z_order", "overwrite"])
def test_files_rewritten_with_the_same_rows_are_no_change(store: DeltaStore, maintenance: str) -> None:
    table = store.create("t", SCHEMA, partition_by=["day"])
    for values in zip(*(_VALUES[name] * 3 for name in _VALUES), strict=False):
        table.append(as_arrow([{"k": "a", **dict(zip(_VALUES, values, strict=True))}] * 2))
    before = table.version()
    _CHANGES[maintenance](table)
    assert table.version() > before
    assert table.diff(before, table.version()).num_rows == 0


@pytest.mark.parametrize("name", ["copy", "row", "__row", "_copy", "0", "1", "a.b", "kind"])
def test_columns_may_have_any_name(store: DeltaStore, name: str) -> None:
    table = store.create("t", pa.schema([("id", pa.int64()), (name, pa.string())]))
    table.append([{"id": 1, name: "x"}])
    table.update({name: "'y'"})
    kinds = [row["_change_type"] for row in table.diff(1, 2).to_pylist()]
    assert kinds == ["update_preimage", "update_postimage"]


def test_a_whole_number_column_that_repeats_is_no_key(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("n", pa.int32()), ("v", pa.string())]))
    table.append([{"n": 1, "v": "a"}, {"n": 1, "v": "b"}])
    table.update({"v": "'c'"}, "v = 'a'")
    assert sorted(row["_change_type"] for row in table.diff(1, 2).to_pylist()) == ["delete", "insert"]


def test_versions_that_are_not_there_are_refused(store: DeltaStore) -> None:
    table = store.create("t", SCHEMA)
    with pytest.raises(VersionNotFoundError):
        table.diff(0, 1)


def test_a_column_that_is_in_the_older_version_alone_is_refused(store: DeltaStore) -> None:
    table = store.create("t", pa.schema([("id", pa.int64())]))
    table.add_columns(pa.schema([("n", pa.string())]))
    table.append([{"id": 1, "n": "x"}])
    with pytest.raises(SchemaMismatchError, match="'n'"):
        table.diff(2, 0)
