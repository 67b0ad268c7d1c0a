"""Rows into a table's columns: the same values, or an error; never something in between."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import (
    ConstraintViolationError,
    InvalidRowsError,
    LossyCastError,
    SchemaMismatchError,
    StorageError,
)
from lakehouse_platform.store.cast import conform, conform_stream, plain_schema, plain_type
from lakehouse_platform.store.rows import as_table, hold

_NAIVE = datetime(2026, 2, 1, 12, 0, 0, 1)  # noqa: DTZ001 - a time without a zone
_AWARE = _NAIVE.replace(tzinfo=UTC)

# Values of every kind of Arrow column that somebody may hand in.
SOURCES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "null": (pa.null(), [None]),
    "bool": (pa.bool_(), [True, False, None]),
    **{
        f"int{bits}": (getattr(pa, f"int{bits}")(), [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, 1, None])
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), [0, 1, 2**bits - 1, None]) for bits in (8, 16, 32, 64)},
    "float16": (pa.float16(), [0.5, -0.0, math.inf, math.nan, 65504.0, None]),
    "float32": (pa.float32(), [0.5, -0.0, math.inf, math.nan, 3.4028234663852886e38, 16777217.0, None]),
    "float64": (pa.float64(), [0.5, 0.1, -0.0, -math.inf, math.nan, 1e300, 2.0**53, 1.0, None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.00"), Decimal("1.25"), Decimal("-12345678.90"), None]),
    "decimal wide": (pa.decimal256(50, 1), [Decimal("1.0"), Decimal("1" * 40 + ".5"), None]),
    "text": (pa.string(), ["", "1", "ü🙂\x00", "true", None]),
    "large text": (pa.large_string(), ["", "x", None]),
    "text view": (pa.string_view(), ["", "longer than twelve bytes", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a", None]),
    "dictionary of floats": (pa.dictionary(pa.int8(), pa.float64()), [0.1, 0.5, None]),
    "binary": (pa.binary(), [b"", b"\xff\x00", None]),
    "large binary": (pa.large_binary(), [b"x", None]),
    "binary view": (pa.binary_view(), [b"x" * 20, None]),
    "fixed binary": (pa.binary(3), [b"abc", None]),
    "date32": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    "date64": (pa.date64(), [date(2026, 2, 1), None]),
    **{
        f"{unit}{zone or ''}": (pa.timestamp(unit, zone), [0, 1, 1_500_000_000, None])
        for unit, zone in product(("s", "ms", "us", "ns"), (None, "UTC", "Europe/Berlin"))
    },
    "duration": (pa.duration("us"), [1, None]),
    "time": (pa.time64("us"), [1, None]),
    "list of ints": (pa.list_(pa.int64()), [[], [1, None, 2**40], None]),
    "list of floats": (pa.list_(pa.float64()), [[0.5], [0.1, math.nan, None], None]),
    "large list": (pa.large_list(pa.large_string()), [["a", None], None]),
    "fixed list": (pa.list_(pa.float64(), 2), [[0.5, 1.5], [0.1, 0.2], None]),
    "list of ns": (pa.list_(pa.timestamp("ns")), [[1_000], [1], None]),
    "struct": (pa.struct([("a", pa.float64()), ("b", pa.string())]), [{"a": 0.1, "b": "x"}, {"a": None}, None]),
    "struct deep": (pa.struct([("a", pa.list_(pa.struct([("c", pa.float64())])))]), [{"a": [{"c": 0.1}, None]}, None]),
    "map": (pa.map_(pa.string(), pa.float64()), [[("k", 0.1), ("l", None)], [], None]),
}  # fmt: skip
TARGETS: dict[str, pa.DataType] = {
    "bool": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "float32": pa.float32(), "float64": pa.float64(), "decimal": pa.decimal128(5, 1), "decimal max": pa.decimal128(38, 10),  # noqa: E501
    "text": pa.string(), "binary": pa.binary(), "date": pa.date32(), "time": pa.timestamp("us", "UTC"),
    "naive time": pa.timestamp("us"), "list of floats": pa.list_(pa.float32()), "list of ints": pa.list_(pa.int32()),
    "list of text": pa.list_(pa.string()), "list of times": pa.list_(pa.timestamp("us")),
    "struct": pa.struct([("a", pa.float32()), ("b", pa.string())]),
    "struct deep": pa.struct([("a", pa.list_(pa.struct([("c", pa.float32())])))]),
    "map": pa.map_(pa.string(), pa.float32()),
}  # fmt: skip


def one(values: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    return conform(pa.table({"x": values}), pa.schema([field]), name="t").column("x")


def exact(value: Any) -> Any:
    """Return what two values share exactly if they are the same: kind, digits, sign of zero, instant."""
    if isinstance(value, (list, tuple)):
        return [exact(part) for part in value]
    if isinstance(value, dict):
        return {key: exact(part) for key, part in value.items()}
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes)):
        return (type(value).__name__, value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, (int, float, Decimal)):
        return ("number", value)
    return value


def python(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return Python values; nanoseconds as whole microseconds if they are, else as themselves."""
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        nanoseconds = array.cast(pa.int64()).to_pylist()
        zone = ZoneInfo(array.type.tz) if array.type.tz else None
        return [_instant(value, zone) for value in nanoseconds]
    return array.to_pylist()


def _instant(nanoseconds: int | None, zone: ZoneInfo | None) -> Any:
    if nanoseconds is None or nanoseconds % 1_000:
        return nanoseconds
    microseconds = pa.scalar(nanoseconds // 1_000, pa.timestamp("us", "UTC")).as_py()
    return microseconds if zone else microseconds.replace(tzinfo=None)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_pair_of_types_keeps_each_value_or_refuses(source: str, target: str) -> None:
    kind, values = SOURCES[source]
    for value in values:
        array = pa.array([value], kind)
        result = _unless_refused(pa.table({"x": array}), pa.schema([("x", TARGETS[target])]))
        assert result is None or result.schema.field("x").type == TARGETS[target]
        assert result is None or exact(python(result.column("x"))) == exact(python(array))


@pytest.mark.parametrize("source", SOURCES)
def test_new_columns_keep_each_value_or_are_refused(source: str) -> None:
    kind, values = SOURCES[source]
    for value in values:
        array = pa.array([value], kind)
        result = _unless_refused(pa.table({"id": [1], "x": array}), _IDS, evolve=True)
        assert result is None or result.schema.field("x").nullable
        assert result is None or exact(python(result.column("x"))) == exact(python(array))


def _unless_refused(rows: pa.Table, schema: pa.Schema, *, evolve: bool = False) -> pa.Table | None:
    try:
        return conform(rows, schema, name="t", evolve=evolve)
    except StorageError:
        return None


_IDS = pa.schema([("id", pa.int64())])


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    st.sampled_from(["int8", "int32", "float32", "float64"]),
)
def test_any_integers_are_kept_or_refused(values: list[int | None], target: str) -> None:
    try:
        result = one(pa.array(values, pa.int64()), pa.field("x", TARGETS[target]))
    except LossyCastError:
        return
    assert result.to_pylist() == values


@given(st.lists(st.none() | st.floats()), st.sampled_from(["float32", "int64", "int8"]), st.booleans())
def test_any_floats_are_kept_or_refused(values: list[float | None], target: str, nested: bool) -> None:
    kind = pa.list_(TARGETS[target]) if nested else TARGETS[target]
    column = [values] if nested else values
    try:
        result = one(
            pa.array(column, pa.list_(pa.float64()) if nested else pa.float64()), pa.field("x", kind)
        )
    except LossyCastError:
        return
    assert exact(result.to_pylist()) == exact(column)


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"a": value}])
def test_a_float_that_needs_its_digits_is_refused_at_any_depth(wrap: Callable[[Any], Any]) -> None:
    """Arrow's own safe cast lets 0.1 become 0.10000000149."""
    wide, narrow = pa.array([wrap(0.1)]).type, pa.array([wrap(0.1)]).type
    narrow = {"double": pa.float32()}.get(str(wide)) or _narrowed(wide)
    with pytest.raises(LossyCastError, match=r"0\.1"):
        one(pa.array([wrap(0.5), wrap(0.1)]), pa.field("x", narrow))


def _narrowed(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.float32()) if pa.types.is_list(kind) else pa.struct([("a", pa.float32())])


def test_minus_zero_keeps_its_sign() -> None:
    result = one(pa.array([-0.0]), pa.field("x", pa.float32()))
    assert math.copysign(1, result[0].as_py()) == -1


def test_a_time_in_another_zone_stays_the_same_instant() -> None:
    berlin = pa.array([_AWARE], pa.timestamp("us", "Europe/Berlin"))
    assert one(berlin, pa.field("x", pa.timestamp("us", "UTC"))).to_pylist() == [_AWARE]


@pytest.mark.parametrize("naive_source", [True, False])
def test_a_time_never_gets_or_loses_a_zone(naive_source: bool) -> None:
    kinds = [pa.timestamp("us"), pa.timestamp("us", "UTC")]
    source, target = kinds if naive_source else kinds[::-1]
    for wrap in (lambda kind: kind, pa.list_):
        with pytest.raises(SchemaMismatchError):
            one(pa.nulls(1, wrap(source)), pa.field("x", wrap(target)))


def test_slices_and_several_chunks_are_told_apart_from_their_parents() -> None:
    whole = pa.array([[0.1], None, [0.5, 1.5], [0.25]], pa.list_(pa.float64()))
    chunks = pa.chunked_array([whole.slice(1, 2), whole.slice(3)])
    assert one(chunks, pa.field("x", pa.list_(pa.float32()))).to_pylist() == [None, [0.5, 1.5], [0.25]]


# ── NOT NULL ──────────────────────────────────────────────────────────────────────────────────────

_REQUIRED = {
    "column": (pa.int32(), [1, None]),
    "list": (pa.list_(pa.field("element", pa.int32(), nullable=False)), [[1], [None]]),
    "struct": (pa.struct([pa.field("a", pa.int32(), nullable=False)]), [{"a": 1}, {"a": None}]),
    "map": (pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)), [[("k", 1)], [("k", None)]]),
    "deep": (
        pa.list_(pa.struct([pa.field("a", pa.int32(), nullable=False)])),
        [[{"a": 1}], [None, {"a": None}]],
    ),
}


@pytest.mark.parametrize("where", _REQUIRED)
@pytest.mark.parametrize("declared", [True, False])
def test_null_is_refused_wherever_it_is_not_allowed(where: str, declared: bool) -> None:
    kind, values = _REQUIRED[where]
    field = pa.field("x", kind, nullable=where != "column")
    given_kind = kind if declared else _loose(kind)
    with pytest.raises((ConstraintViolationError, LossyCastError), match="x"):
        one(pa.array(values, given_kind), field)
    assert one(pa.array(values[:1], given_kind), field).to_pylist() == values[:1]


def _loose(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_loose(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_type)
    return pa.struct([(f.name, f.type) for f in kind]) if pa.types.is_struct(kind) else kind


def test_null_above_a_required_field_is_no_violation() -> None:
    kind = pa.list_(pa.struct([pa.field("a", pa.int32(), nullable=False)]))
    values = [None, [None, {"a": 1}], []]
    assert one(pa.array(values, kind), pa.field("x", kind)).to_pylist() == values


def test_the_row_that_holds_null_is_named() -> None:
    with pytest.raises(ConstraintViolationError, match="row 3") as caught:
        one(pa.chunked_array([[1, 2], [None]], pa.int32()), pa.field("x", pa.int32(), nullable=False))
    assert caught.value.details["row"] == 3


# ── Columns ───────────────────────────────────────────────────────────────────────────────────────


def test_columns_are_matched_by_name_and_missing_ones_are_null() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
    result = conform(pa.table({"c": [1.0], "a": [1]}), schema, name="t")
    assert (result.schema, result.to_pylist()) == (schema, [{"a": 1, "b": None, "c": 1.0}])


def test_a_missing_column_that_may_not_be_null_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="lack column 'b'"):
        conform(
            pa.table({"a": [1]}), pa.schema([("a", pa.int64()), pa.field("b", pa.int64(), False)]), name="t"
        )


@pytest.mark.parametrize("evolve", [False, True])
def test_a_column_given_twice_is_refused(evolve: bool) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(SchemaMismatchError, match="twice"):
        conform(twice, _IDS, name="t", evolve=evolve)


@pytest.mark.parametrize("evolve", [False, True])
def test_a_column_that_differs_in_case_alone_is_refused(evolve: bool) -> None:
    with pytest.raises(SchemaMismatchError, match="did you mean 'id'"):
        conform(pa.table({"ID": [1]}), _IDS, name="t", evolve=evolve)


def test_a_struct_with_its_fields_in_another_order_is_refused_rather_than_mixed_up() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    with pytest.raises(SchemaMismatchError):
        one(pa.array([{"b": 1, "a": 2}]), pa.field("x", kind))


@pytest.mark.parametrize("rows", [pa.table({"id": pa.array([], pa.int64())}), pa.table({"id": pa.nulls(0)})])
def test_no_rows_have_the_tables_columns(rows: pa.Table) -> None:
    result = conform(rows, pa.schema([("id", pa.int64()), ("x", pa.list_(pa.string()))]), name="t")
    assert (result.num_rows, result.schema.names) == (0, ["id", "x"])


def test_a_new_column_that_holds_only_null_is_refused() -> None:
    """The engine would add a column of type void, which nobody can describe or write to."""
    with pytest.raises(SchemaMismatchError, match="only NULL"):
        conform(pa.table({"id": [1], "x": [None]}), _IDS, name="t", evolve=True)


def test_a_new_column_may_be_null_even_if_its_source_may_not() -> None:
    schema = pa.schema([("id", pa.int64()), pa.field("x", pa.int64(), nullable=False)])
    assert (
        conform(pa.table({"id": [1], "x": [2]}, schema=schema), _IDS, name="t", evolve=True)
        .schema.field("x")
        .nullable
    )


def test_a_stream_is_conformed_batch_by_batch_and_its_schema_at_once() -> None:
    wide = pa.schema([("id", pa.int32())])
    batches = [pa.record_batch({"id": pa.array([n], pa.int32())}, schema=wide) for n in range(3)]
    reader = pa.RecordBatchReader.from_batches(wide, batches)
    schema, conformed = conform_stream(reader, _IDS, name="t")
    assert schema == _IDS
    assert [batch.column("id").to_pylist() for batch in conformed] == [[0], [1], [2]]
    with pytest.raises(SchemaMismatchError):
        conform_stream(pa.table({"id": ["x"]}).to_reader(), _IDS, name="t")


def test_plain_types_have_no_views_and_nothing_large_at_any_depth() -> None:
    kind = pa.struct(
        [("a", pa.large_list(pa.string_view())), ("m", pa.map_(pa.large_string(), pa.binary_view()))]
    )
    wanted = pa.struct(
        [("a", pa.list_(pa.field("item", pa.string()))), ("m", pa.map_(pa.string(), pa.binary()))]
    )
    assert plain_type(kind) == wanted
    assert plain_schema(pa.schema([pa.field("x", kind, metadata={"a": "b"})])).field("x").metadata is None


# ── Python rows ───────────────────────────────────────────────────────────────────────────────────


def test_a_key_that_only_a_later_row_has_is_not_dropped() -> None:
    """`Table.from_pylist` takes its columns from the first row alone."""
    rows = as_table(hold([{"id": 1}, {"id": 2, "n": 5}]), _IDS, name="t", evolve=True)
    assert rows.to_pylist() == [{"id": 1, "n": None}, {"id": 2, "n": 5}]


def test_known_columns_follow_the_same_rules_whether_new_ones_come_or_not() -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    rows = [{"id": 1, "day": "2026-02-01"}]
    plain = as_table(hold(rows), schema, name="t")
    evolved = as_table(hold([{**rows[0], "n": 1}]), schema, name="t", evolve=True)
    assert plain.column("day").to_pylist() == evolved.column("day").to_pylist() == [date(2026, 2, 1)]


@pytest.mark.parametrize("values", [[1, "x"], [True, 1], [2**53 + 1, 0.5], [2**70]])
def test_new_values_of_no_one_type_are_refused(values: list[Any]) -> None:
    with pytest.raises(InvalidRowsError, match="'n'"):
        as_table(hold([{"id": 1, "n": value} for value in values]), _IDS, name="t", evolve=True)


@pytest.mark.parametrize("data", ["text", b"bytes", 7, {"id": 1}, [1], [{"id": 1}, 2], None])
def test_what_holds_no_rows_is_refused(data: Any) -> None:
    with pytest.raises(InvalidRowsError, match="Rows cannot be taken"):
        hold(data)


def test_the_row_of_a_stream_is_counted_from_its_beginning() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    batches = [pa.record_batch([pa.array(values, pa.int64())], names=["a"]) for values in ([1, 2], [3, None])]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    _, conformed = conform_stream(reader, schema, name="t")
    with pytest.raises(ConstraintViolationError, match="row 4 holds NULL"):
        list(conformed)
