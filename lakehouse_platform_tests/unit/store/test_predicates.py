"""Predicates: what is refused, what is folded, how the rest is rendered, and what every door of the engine answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.predicates import (
    equals,
    is_in,
    literal,
    parse_expression,
    parse_predicate,
    quote_identifier,
)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("tiny", pa.int8()),
        pa.field("Name", pa.string()),
        pa.field("ok", pa.bool_()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("score", pa.float64()),
        pa.field("ratio", pa.float32()),
        pa.field("raw", pa.binary()),
        pa.field('odd "é. x', pa.int32()),
        pa.field("place", pa.struct([pa.field("zip", pa.int32()), pa.field("city", pa.string())])),
        pa.field("tags", pa.list_(pa.string())),
    ]
)


def sql(text: str) -> str:
    return parse_predicate(text, SCHEMA).sql()


def refusal(text: str) -> str:
    with pytest.raises(InvalidPredicateError) as caught:
        parse_predicate(text, SCHEMA)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("id = 1 AMD id = 2", "unexpected 'AMD'"),
        ("id = 1) OR (1 = 1", "unexpected ')'"),
        ("id = 1; DELETE FROM t", "without ';'"),
        ("id = 1;", "without ';'"),
        ("id = 1 -- OR TRUE", "comments"),
        ("id = /* 2 */ 1", "comments"),
        ("id IN (SELECT 1)", "unexpected 'SELECT'"),
        ("(SELECT 1) = id", "subqueries"),
        ("EXISTS (SELECT 1)", "unexpected 'EXISTS'"),
        ("sum(id) > 1", "sum() is not available"),
        ("abs(id) OVER () > 1", "window functions"),
        ("random() > 0.5", "random() is not available"),
        ("now() > at", "now() is not available"),
        ("id = ?", "placeholders"),
        ("id = $1", "placeholders"),
        ("id = :a", "placeholders"),
        ("id = @a", "placeholders"),
        ("id < 1 < 2", "chained"),
        ("id = NOT ok", "parentheses"),
        ("id IN ()", "empty list"),
        ("id = 'abc", "not closed"),
        ("`id` = 1", "double quotes"),
        ('"" = 1', "empty or not closed"),
        ("id = E'a'", "unexpected"),
        ("Name = 'a' 'b'", "unexpected"),
        ("id == 1", "is expected here"),
        ("id", "A condition is needed"),
        ("id AND ok", "A condition is needed"),
        ("CASE WHEN ok END", "THEN is expected"),
        ("CASE END", "END"),
        ("tags['a'] = 'x'", "has no field"),
        ("tags[1] = 'x'", "elements of lists"),
        ("id BETWEEN 1", "AND is expected"),
        ("id IS 5", "IS is followed by"),
        ("CAST(id AS blob) = 1", "unknown"),
        ("id = 1e99999", "too many digits"),
        ("id = 12abc", "unexpected"),
        ("tags = tags", "cannot be compared"),
    ],
)
def test_what_is_not_one_whole_condition_is_refused(text: str, reason: str) -> None:
    assert reason in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000 + "ok",
        "(" * 50_000,
        "NOT (" * 9_000 + "ok" + ")" * 9_000,
        "abs(" * 10_000 + "id",
        "CASE WHEN " * 5_000 + "ok",
        "id = " + "1 + " * 10_000 + "1",
        "id IN (" * 8_000,
        "-(" * 20_000 + "id",
        "id = " + "9" * 60_000,
        "id = 1 OR " * 7_000 + "ok",
        "ok IS NULL" * 6_000,
        "x" * 70_000,
    ],
)
def test_hostile_texts_are_refused_and_never_exhaust_the_stack(text: str) -> None:
    with pytest.raises(InvalidPredicateError):
        parse_predicate(text, SCHEMA)


def test_repeated_signs_and_negations_do_not_nest() -> None:
    assert sql("NOT " * 5_001 + "ok") == '(NOT "ok")'
    assert sql("id = " + "- " * 5_001 + "1") == '("id" = (-1))'


def test_a_hundred_levels_are_accepted() -> None:
    assert sql("(" * 98 + "ok" + ")" * 98) == '"ok"'


def test_long_lists_of_conditions_are_rendered_as_a_shallow_tree() -> None:
    text = " OR ".join(f"id = {number}" for number in range(4_000))
    depth = deepest = 0
    for letter in sql(text):
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    assert deepest <= 14


def test_is_null_binds_looser_than_a_comparison_as_in_postgresql() -> None:
    assert sql("tiny = id IS NULL") == '((("tiny" = "id") IS NULL) IS TRUE)'


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ID = 1", "write id"),
        ("name = 'a'", "write Name"),
        ("idd = 1", "did you mean id?"),
        ("place.zipp = 1", "did you mean zip?"),
        ('Name = "abc"', "a text is written 'abc'"),
        ("nothing = 1", "known: id, tiny"),
        ("lenght(Name) = 1", "did you mean length"),
    ],
)
def test_unknown_names_come_with_a_suggestion(text: str, hint: str) -> None:
    assert hint in refusal(text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("id = 'abc'", ("'id' (Int64)", "'abc'", "without quotes")),
        ("Name = 5", ("'Name' (String)", "number 5")),
        ("ok = 1", ("'ok' (Boolean)", "number 1")),
        ("raw = 'ab'", ("'raw' (Binary)", "'ab'")),
        ("day = '2020-13-01'", ("'2020-13-01'", "Date32")),
        ("at > 'yesterday'", ("'yesterday'", "Timestamp")),
        ("local = '2020-01-01T00:00:00Z'", ("no time zone",)),
        ("at = '2020-01-01T00:00:00.0000001Z'", ("microseconds",)),
        ("at = day", ("'at' (Timestamp)", "'day' (Date32)")),
        ("at = local", ("'at' (Timestamp)", "'local' (TimestampNtz)")),
        ("price = 'cheap'", ("'cheap'", "Decimal(10,2)")),
        ("Name LIKE 5", ("LIKE",)),
        ("Name LIKE 'a\\'", ("ends with its escape",)),
        ("id + Name > 1", ("'Name' (String)",)),
        ("price / 3 > 1", ("inexact",)),
        ("lower(id) = 'a'", ("lower()",)),
        ("coalesce(id, Name) = 1", ("mixed",)),
        ("date_trunc('eon', at) = at", ("units",)),
        ("substr(Name) = 'a'", ("2 to 3 argument",)),
        ("1 / 0 = 1", ("cannot be computed",)),
        ("CAST('abc' AS Int64) = id", ("cannot be computed",)),
    ],
)
def test_types_that_do_not_meet_are_named(text: str, facts: tuple[str, ...]) -> None:
    message = refusal(text)
    assert all(fact in message for fact in facts), message


@pytest.mark.parametrize(
    "text",
    [
        "NULL",
        "id = NULL",
        "NULL = NULL",
        "id <> NULL",
        "id NOT IN (1, NULL)",
        "id IN (NULL)",
        "id > 1 AND NULL",
        "id BETWEEN NULL AND NULL",
        "id = CAST(NULL AS INT)",
        "id = nullif(1, 1)",
        "NOT (id = NULL)",
        "CASE WHEN FALSE THEN TRUE END",
        "CASE WHEN starts_with(Name, 'a') THEN FALSE ELSE FALSE END",
        "Name LIKE NULL",
        "1 = 2",
        "FALSE",
        "tiny = 200",
        "tiny > 127.5",
        "id = 1.5",
        "price = 0.001",
        "id <> id",
    ],
)
def test_conditions_that_no_row_fulfils_are_folded(text: str) -> None:
    predicate = parse_predicate(text, SCHEMA)
    assert predicate.is_never or text == "id <> id"
    assert "NULL" not in predicate.sql().replace("IS NULL", "").replace("IS NOT NULL", "")


@pytest.mark.parametrize(
    "text", ["TRUE", "1 = 1", "NOT FALSE", "NULL IS NULL", "1 IN (1, NULL)", "'a' < 'b'", "ok OR TRUE"]
)
def test_conditions_that_every_row_fulfils_are_folded(text: str) -> None:
    assert parse_predicate(text, SCHEMA).is_always


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("id NOT IN (1, 2)", '(NOT ("id" IN (1, 2)))'),
        ("id IN (1, NULL, 1.5, 3)", '("id" IN (1, 3))'),
        ("NOT (id > 1 AND NULL)", '(NOT ("id" > 1))'),
        ("id < 2.5", '("id" <= 2)'),
        ("id >= 2.5", '("id" >= 3)'),
        ("2.5 > id", '("id" <= 2)'),
        ("tiny < 200", '("tiny" IS NOT NULL)'),
        ("id = -9223372036854775808", '("id" = (-9223372036854775808))'),
        ("price < 1.005", "(\"price\" <= CAST('1.00' AS DECIMAL(10,2)))"),
        ("price = '12.5'", "(\"price\" = CAST('12.5' AS DECIMAL(10,2)))"),
        ("day = '2020-02-29'", "(\"day\" = DATE '2020-02-29')"),
        ("at > '2020-01-01'", "(\"at\" > '2020-01-01T00:00:00.000000Z')"),
        ("at > '2020-01-01T10:00:00+02:00'", "(\"at\" > '2020-01-01T08:00:00.000000Z')"),
        ("local > TIMESTAMP '2020-01-01 10:00'", "(\"local\" > '2020-01-01T10:00:00.000000')"),
        ("raw = X'00FF'", "(\"raw\" = X'00ff')"),
        ("Name = 'O''Brien \\'", "(\"Name\" = 'O''Brien \\')"),
        ('"odd ""é. x" = 1', '("odd ""é. x" = 1)'),
        ("place.zip = 1", "(\"place\"['zip'] = 1)"),
        ("place['city'] IS NULL", "(\"place\"['city'] IS NULL)"),
        ("Name LIKE '50$%%' ESCAPE '$'", "(\"Name\" LIKE '50\\%%')"),
        ("ok IS NOT TRUE", '(NOT ("ok" IS TRUE))'),
        ("id IS DISTINCT FROM NULL", '("id" IS NOT NULL)'),
        ("score > 1", "(nanvl(\"score\", CAST('nan' AS DOUBLE)) > 1.0)"),
        ("length(Name) = 3", '((character_length("Name") = 3) IS TRUE)'),
        ("extract(year FROM day) = 2020", "((date_part('year', \"day\") = 2020) IS TRUE)"),
    ],
)
def test_rendering(text: str, rendered: str) -> None:
    assert sql(text) == rendered


def test_an_alias_qualifies_every_column() -> None:
    predicate = parse_predicate("id = 1 AND place.zip > 2", SCHEMA)
    assert predicate.sql("target") == '(("target"."id" = 1) AND ("target"."place"[\'zip\'] > 2))'
    assert predicate.columns == {"id", "place"}


ROWS: list[dict[str, Any]] = [
    {
        "id": 0,
        "tiny": 1,
        "Name": "O'B",
        "ok": True,
        "day": date(1, 1, 1),
        "at": datetime(1, 1, 1, tzinfo=UTC),
    },
    {
        "id": 1,
        "Name": "a\\b",
        "ok": False,
        "day": date(2020, 1, 1),
        "at": datetime(2020, 1, 1, 0, 0, 5, 5, UTC),
    },
    {
        "id": 2,
        "tiny": -128,
        "Name": "é☃",
        "day": date(9999, 12, 31),
        "at": datetime(9999, 12, 31, tzinfo=UTC),
    },
    {
        "id": 3,
        "Name": "",
        "score": float("nan"),
        "ratio": 0.1,
        "price": Decimal("1234.56"),
        "raw": b"\x00\xff",
    },
    {"id": 4, "Name": "a%b", "score": 1.0, "ratio": 2.0, "price": Decimal("-0.10"), "raw": b"'"},
    {"id": 5, 'odd "é. x': 7, "place": {"zip": 1, "city": "x"}, "local": datetime(2020, 1, 1, 0, 0, 5, 5)},  # noqa: DTZ001
]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    for part in (ROWS[:3], ROWS[3:]):
        deltalake.write_deltalake(path, pa.Table.from_pylist(part, schema=SCHEMA), mode="append")
    return path


def _ids(table: Any) -> set[int]:
    return set(pa.table(table).column("id").to_pylist())


def _scanned(path: str, predicate: str) -> set[int]:
    return _ids(deltalake.DeltaTable(path).scan(columns=["id"], predicate=predicate))


def _queried(path: str, predicate: str) -> set[int]:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    return _ids(builder.execute(f"SELECT id FROM t WHERE {predicate}"))


def _deleted(path: str, predicate: str) -> set[int]:
    deltalake.DeltaTable(path).delete(predicate)
    return _missing(path)


def _replaced(path: str, predicate: str) -> set[int]:
    deltalake.write_deltalake(path, SCHEMA.empty_table(), mode="overwrite", predicate=predicate)
    return _missing(path)


def _updated(path: str, predicate: str) -> set[int]:
    deltalake.DeltaTable(path).update(updates={"id": '"id" + 100'}, predicate=predicate)
    return {row - 100 for row in _ids(deltalake.DeltaTable(path).scan(columns=["id"])) if row >= 100}


def _merged(path: str, predicate: str) -> set[int]:
    keys = pa.table({"key": pa.array(range(6), pa.int64())})
    merger = deltalake.DeltaTable(path).merge(
        keys, f'"key" = "id" AND {predicate}', source_alias="source", target_alias="target"
    )
    merger.when_matched_delete().execute()
    return _missing(path)


def _missing(path: str) -> set[int]:
    return set(range(6)) - _ids(deltalake.DeltaTable(path).scan(columns=["id"]))


@pytest.mark.parametrize("door", [_scanned, _queried, _deleted, _replaced, _updated, _merged])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at < '0001-01-02T00:00:00Z'", {0}),
        ("at = '2020-01-01T00:00:05.000005Z'", {1}),
        ("at > '2020-01-01T00:00:05.000004Z' AND at < '3000-01-01'", {1}),
        ("local = '2020-01-01 00:00:05.000005'", {5}),
        ("day IN ('0001-01-01', '9999-12-31')", {0, 2}),
        ("price = 1234.56", {3}),
        ("raw = X'00ff' OR raw = X'27'", {3, 4}),
        ("Name IN ('O''B', 'a\\b', 'é☃')", {0, 1, 2}),
        ("Name LIKE 'a!%b' ESCAPE '!'", {4}),
        ("score < 2", {4}),
        ("score > 0", {3, 4}),
        ("score = CAST('NaN' AS DOUBLE)", {3}),
        ("ratio = 0.1", {3}),
        ("tiny < 300 AND NOT ok IS NULL", {0}),
        ("NOT ok", {1}),
        ("ok IS NOT TRUE", {1, 2, 3, 4, 5}),
        ('"odd ""é. x" = 7 AND place.city = \'x\'', {5}),
        ("length(Name) = 2 OR coalesce(tiny, 0) = 1", {0, 2}),
        ("date_part('year', at) = 2020", {1}),
        ("CASE WHEN id < 3 THEN ok ELSE score > 0 END", {0, 3, 4}),
        ("(id > 1 AND NULL) IS NULL", {2, 3, 4, 5}),
        ("id % 2 = 1 AND id / 2 > 0", {3, 5}),
        ("id = NULL OR NULL", set()),
    ],
)
def test_every_door_of_the_engine_agrees(
    table: str, door: Callable[[str, str], set[int]], text: str, expected: set[int]
) -> None:
    assert door(table, sql(text)) == expected


def test_delete_spares_nan_beside_one_other_value(tmp_path: Path) -> None:
    """File statistics of [1.0, NaN] say that all values are 1.0; the engine would delete both rows."""
    path = str(tmp_path / "table")
    deltalake.write_deltalake(path, pa.table({"id": [0, 1], "f": [1.0, float("nan")]}))
    deltalake.DeltaTable(path).delete(
        parse_predicate("f < 2", pa.schema([("id", pa.int64()), ("f", pa.float64())])).sql()
    )
    assert _ids(deltalake.DeltaTable(path).scan(columns=["id"])) == {1}


@pytest.mark.parametrize(
    ("text", "expected"), [("p = q", {0}), ("p <> p", set()), ("(p IS NULL) = (q IS NULL)", {0, 1, 3})]
)
def test_delete_compares_partition_columns_row_by_row(tmp_path: Path, text: str, expected: set[int]) -> None:
    """The engine takes a comparison of two partition columns for fulfilled wherever both have a value."""
    path = str(tmp_path / "table")
    data = pa.table({"id": [0, 1, 2, 3], "p": ["a", "a", None, None], "q": ["a", "b", "b", None]})
    deltalake.write_deltalake(path, data, partition_by=["p", "q"])
    deltalake.DeltaTable(path).delete(parse_predicate(text, data.schema).sql())
    assert {0, 1, 2, 3} - _ids(deltalake.DeltaTable(path).scan(columns=["id"])) == expected


@pytest.mark.parametrize(
    ("text", "target", "rendered"),
    [
        ("id + 1", pa.int64(), '("id" + 1)'),
        ("tiny + 1", pa.int8(), '(CAST("tiny" AS BIGINT) + 1)'),
        ("NULL", pa.string(), "CAST(NULL AS VARCHAR)"),
        ("'2020-01-01'", pa.date32(), "DATE '2020-01-01'"),
        ("1.5", pa.decimal128(10, 2), "CAST('1.5' AS DECIMAL(10,2))"),
        ("1", pa.float64(), "1.0"),
        ("Name || '!'", pa.string(), "(\"Name\" || '!')"),
        ("id > 1", pa.bool_(), '("id" > 1)'),
        ("day", pa.timestamp("us"), "arrow_cast(\"day\", 'Timestamp(Microsecond, None)')"),
    ],
)
def test_expressions_take_the_type_of_their_column(text: str, target: pa.DataType, rendered: str) -> None:
    assert parse_expression(text, SCHEMA, target).sql() == rendered


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("1.5", pa.int64()),
        ("300", pa.int8()),
        ("'5'", pa.int64()),
        ("score", pa.int64()),
        ("score", pa.float32()),
        ("id", pa.float64()),
        ("1.555", pa.decimal128(10, 2)),
        ("id", pa.string()),
        ("100 garbage", pa.int64()),
    ],
)
def test_expressions_that_would_change_when_stored_are_refused(text: str, target: pa.DataType) -> None:
    with pytest.raises(InvalidPredicateError):
        parse_expression(text, SCHEMA, target)


@pytest.mark.parametrize(
    ("value", "data_type", "rendered"),
    [
        ("it's", pa.string(), "'it''s'"),
        (-5, pa.int32(), "(-5)"),
        (True, pa.bool_(), "TRUE"),
        (b"\x00", pa.binary(), "X'00'"),
        (date(2020, 1, 2), pa.date32(), "DATE '2020-01-02'"),
        (datetime(2020, 1, 2, tzinfo=UTC), pa.timestamp("us", "UTC"), "'2020-01-02T00:00:00.000000Z'"),
        (Decimal("1.10"), pa.decimal128(5, 2), "CAST('1.10' AS DECIMAL(5,2))"),
        (float("inf"), pa.float64(), "CAST('inf' AS DOUBLE)"),
        (None, pa.string(), "NULL"),
    ],
)
def test_python_values_become_literals(value: object, data_type: pa.DataType, rendered: str) -> None:
    assert literal(value, data_type) == rendered


@pytest.mark.parametrize(
    ("value", "data_type"), [("x", pa.int64()), (5, pa.string()), ("x", pa.date32()), (5, pa.binary())]
)
def test_values_of_another_type_make_no_literal(value: object, data_type: pa.DataType) -> None:
    with pytest.raises(InvalidPredicateError, match="is not a value of type"):
        literal(value, data_type)


def test_names_are_quoted_whatever_their_letters() -> None:
    assert quote_identifier('a"b') == '"a""b"'


def test_equals_takes_none_for_null() -> None:
    assert equals(SCHEMA, {"id": 1, "Name": None}).sql() == '(("id" = 1) AND ("Name" IS NULL))'
    with pytest.raises(InvalidPredicateError, match="unknown"):
        equals(SCHEMA, {"nothing": 1})


def test_is_in_never_matches_none() -> None:
    assert is_in("id", [1, None, 2], pa.int64()).sql() == '("id" IN (1, 2))'
    assert is_in("id", [], pa.int64()).is_never
