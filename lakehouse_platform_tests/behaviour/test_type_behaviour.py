"""Every type of the schema module goes through the store and comes back as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lakehouse_platform.errors import DuplicateKeyError
from lakehouse_platform.model.schema import Field, Schema, arrow_type
from lakehouse_platform.store.delta_store import DeltaStore

_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_NESTED = "Struct<a:Int64,b:List<Struct<c:String,d:Map<String,Decimal(10,2)>>>>"
_INNER = [{"c": "x", "d": [("k", Decimal("1.50")), ("", None)]}, None, {"c": None, "d": []}]

EXTREMES: dict[str, list[Any]] = {
    "Int8": [-(2**7), 2**7 - 1, 0],
    "Int16": [-(2**15), 2**15 - 1],
    "Int32": [-(2**31), 2**31 - 1],
    "Int64": [-(2**63), 2**63 - 1],
    "Float32": [float("inf"), float("-inf"), 1.401298464324817e-45, 3.4028234663852886e38, -0.0],
    "Float64": [float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, -0.0, 0.1],
    "String": ["", " ", "ü🙂\u0000x", "line\nbreak", '"quoted", comma', "'", "NULL", "\\N", "x" * 100_000],
    "Boolean": [True, False],
    "Date32": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1582, 10, 10)],
    "Timestamp": [_FIRST, _LAST, datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, 12, 0, 0, 1, UTC)],
    "TimestampNtz": [_FIRST.replace(tzinfo=None), _LAST.replace(tzinfo=None)],
    "Binary": [b"", b"\x00", bytes(range(256)), b"x" * 100_000],
    "Decimal(38,0)": [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0)],
    "Decimal(38,38)": [Decimal("0." + "9" * 38), Decimal("-0." + "0" * 37 + "1")],
    "Decimal(10,2)": [Decimal("12345678.90"), Decimal("-0.01")],
    "Decimal(1,0)": [Decimal(9), Decimal(-9)],
    "List<Int32>": [[], [1, None, -1], list(range(1_000))],
    "List<List<String>>": [[[]], [["a", ""], None, []]],
    "Struct<a:Int32,b:String>": [{"a": 1, "b": ""}, {"a": None, "b": None}],
    "Map<String,Int64>": [[], [("a", 1), ("b", None)]],
    "Map<Int32,List<String>>": [[(1, ["x", None]), (2, [])]],
    _NESTED: [{"a": 1, "b": _INNER}, {"a": None, "b": None}, {"a": 2, "b": []}],
}  # fmt: skip


@pytest.mark.parametrize("type_text", EXTREMES)
def test_extremes_and_nulls_come_back_as_they_were(store: DeltaStore, type_text: str) -> None:
    schema = Schema([Field("id", "Int64"), Field("x", type_text)])
    store.create("t", schema)
    values = [*EXTREMES[type_text], None]
    store.append("t", pa.table({"id": range(len(values)), "x": pa.array(values, arrow_type(type_text))}))
    back = store.scan("t").to_arrow().sort_by("id")
    assert back.schema.field("x").type == arrow_type(type_text)
    assert back.column("x").to_pylist() == values
    assert store.table("t").schema().fields[1] == Field("x", type_text)


@pytest.mark.parametrize("type_text", EXTREMES)
def test_values_survive_merge_and_compaction(store: DeltaStore, type_text: str) -> None:
    store.create("t", Schema([Field("id", "Int64"), Field("x", type_text)]))
    values = EXTREMES[type_text]
    source = pa.table({"id": range(len(values)), "x": pa.array(values, arrow_type(type_text))})
    store.append("t", pa.table({"id": [0], "x": pa.array([None], arrow_type(type_text))}))
    store.merge("t", source, on=["id"])
    store.append("t", pa.table({"id": [-1], "x": pa.array([values[0]], arrow_type(type_text))}))
    store.compact("t")
    assert store.scan("t").to_arrow().sort_by("id").column("x").to_pylist() == [values[0], *values]


_LONG = Decimal("123456789012345.6789")  # as a float it would be …345.67


def test_a_long_decimal_is_found_and_stays_whole(store: DeltaStore) -> None:
    store.create("t", Schema([Field("id", "Int64"), Field("a`b", "Int64"), Field("x", "Decimal(20,4)")]))
    store.append("t", [{"id": 1, "a`b": 1, "x": _LONG}])
    store.append("t", [{"id": 2, "a`b": 2, "x": _LONG}, {"id": 3, "a`b": 3, "x": Decimal(1)}])
    assert sorted(row["id"] for row in store.query("t", f"x >= {_LONG}").to_pylist()) == [1, 2]
    assert store.query("t", "id = 1 AND x IS NOT NULL").to_pylist() == [{"id": 1, "a`b": 1, "x": _LONG}]
    assert store.sql(f"SELECT count(*) AS n FROM t WHERE x = {_LONG}").to_pylist() == [{"n": 2}]
    assert store.skipping("t", 'id = 3 AND "a`b" = 3').files_read == 1
    assert store.delete("t", f"x = {_LONG}").rows_deleted == 2


def test_a_long_decimal_is_a_sound_key(store: DeltaStore) -> None:
    store.create("t", Schema([Field("x", "Decimal(20,4)"), Field("n", "Int64")]), primary_key=["x"])
    store.append("t", [{"x": _LONG, "n": 1}])
    with pytest.raises(DuplicateKeyError):
        store.append("t", [{"x": _LONG, "n": 2}])


@pytest.mark.parametrize("type_text", ["Float32", "Float64"])
def test_nan_and_minus_zero_stay_what_they_are(store: DeltaStore, type_text: str) -> None:
    store.create("t", Schema([Field("x", type_text)]))
    store.append("t", pa.table({"x": pa.array([float("nan"), -0.0], arrow_type(type_text))}))
    back = store.scan("t").to_arrow().column("x").to_pylist()
    assert [value for value in back if math.isnan(value)] != []
    assert [math.copysign(1, value) for value in back if value == 0] == [-1.0]


def test_five_thousand_rows_as_from_json_arrive_whole(store: DeltaStore) -> None:
    fields = [
        Field("id", "Int64"),
        Field("user", "Struct<name:String,tags:List<String>>"),
        Field("n", "Float64"),
    ]
    store.create("t", Schema(fields))
    data = [
        {
            "id": n,
            "user": {"name": f"ü{n}", "tags": [str(n)] * (n % 4)} if n % 7 else None,
            "n": n / 3 if n % 5 else None,
        }
        for n in range(5_000)
    ]
    store.append("t", data)
    assert sorted(store.scan("t").to_pylist(), key=lambda row: row["id"]) == data


def test_wide_types_of_arrow_are_stored_as_the_tables_own(store: DeltaStore) -> None:
    store.create("t", Schema([Field("s", "String"), Field("b", "Binary"), Field("l", "List<String>")]))
    store.append(
        "t",
        pa.table(
            {
                "s": pa.array(["x"], pa.large_string()),
                "b": pa.array([b"y"], pa.large_binary()),
                "l": pa.array([["z"]], pa.large_list(pa.large_string())),
            }
        ),
    )
    store.append(
        "t", pa.table({"s": pa.array(["x"]).dictionary_encode(), "b": pa.array([b"y"]), "l": [["z"]]})
    )
    assert store.scan("t").to_pylist() == [{"s": "x", "b": b"y", "l": ["z"]}] * 2


def test_partition_values_with_odd_letters_come_back(store: DeltaStore) -> None:
    store.create("t", Schema([Field("id", "Int64"), Field("p", "String")]), partition_by=["p"])
    values = ["a b", "ü/%=:", "2%3D", "NULL", "..", "it's", "x\ny", "🙂", None]
    store.append("t", [{"id": n, "p": value} for n, value in enumerate(values)])
    back = sorted(store.scan("t").to_pylist(), key=lambda row: row["id"])
    assert [row["p"] for row in back] == values
    assert [row["id"] for row in store.query("t", "p IS NULL").to_pylist()] == [8]
    assert [row["id"] for row in store.query("t", "p = 'it''s'").to_pylist()] == [5]


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_ROW_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Int64": st.integers(-(2**63), 2**63 - 1),
    "Float64": st.floats(allow_nan=False),
    "String": _TEXT,
    "Boolean": st.booleans(),
    "Date32": st.dates(),
    "Timestamp": st.datetimes(timezones=st.just(UTC)),
    "Binary": st.binary(max_size=20),
    "Decimal(12,3)": st.decimals(-999_999_999, 999_999_999, places=3),
    "List<String>": st.lists(st.none() | _TEXT, max_size=3),
}  # fmt: skip


@pytest.fixture
def new_table(store: DeltaStore) -> Callable[[Schema], str]:
    """Makes a table that no other example has used."""

    def create(schema: Schema) -> str:
        name = f"t{len(store.tables())}"
        store.create(name, schema)
        return name

    return create


@hypothesis_settings(max_examples=15)
@given(
    data=st.lists(
        st.fixed_dictionaries({key: st.none() | value for key, value in _ROW_VALUES.items()}), max_size=8
    )
)
def test_any_rows_come_back_as_they_were(
    store: DeltaStore, new_table: Callable[[Schema], str], data: list[dict[str, Any]]
) -> None:
    name = new_table(Schema([Field("number", "Int64"), *(Field(key, key) for key in _ROW_VALUES)]))
    numbered = [{"number": number, **row} for number, row in enumerate(data)]
    store.append(name, numbered)
    assert sorted(store.scan(name).to_pylist(), key=lambda row: row["number"]) == numbered
