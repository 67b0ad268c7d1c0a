"""A short expression makes no text that fills the memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.predicates import parse_expression, parse_predicate

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
_MANY = "a" * 100


def _nested(text: str, times: int, search: str = "'a'", replacement: str = f"'{_MANY}'") -> str:
    for _ in range(times):
        text = f"replace({text}, {search}, {replacement})"
    return text


@pytest.mark.parametrize(
    "text",
    [
        _nested("name", 1),
        _nested("name", 50, replacement="''"),
        _nested("name", 50, replacement="'b'"),
        "replace(replace(replace(replace(name, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '\"', '&quot;')",
        "replace(name, 'a', name)",
        "concat(" + ", ".join(["name"] * 300) + ")",
        " || ".join(["name"] * 60),
        f"CASE WHEN id = 1 THEN {_nested('name', 1)} ELSE name END",
    ],
    ids=lambda text: text[:40],
)
def test_what_people_write_is_taken(text: str) -> None:
    assert parse_expression(text, SCHEMA, pa.string()).sql()
    assert parse_predicate(f"length({text}) > 5", SCHEMA).sql()


@pytest.mark.parametrize(
    "text",
    [
        _nested("name", 2),
        _nested("'a'", 5),
        _nested("name", 2, "name", "name"),
        _nested("name", 3, "''"),
        _nested("name", 20, "'a'", "'aa'"),
        _nested(f"concat({', '.join(['name'] * 300)})", 1),
        f"concat({', '.join(['name'] * 3_000)})",
        f"concat({', '.join([_nested('name', 1)] * 10)})",
        f"upper(CASE WHEN id = 1 THEN {_nested('name', 1)} ELSE name END) || {_nested('coalesce(name, name)', 2)}",
        f"replace(name, 'a', {_nested('name', 1)})",
    ],
    ids=lambda text: text[:40],
)
def test_what_grows_beyond_measure_is_refused_before_it_is_computed(text: str) -> None:
    with pytest.raises(InvalidPredicateError, match="could make texts of more than"):
        parse_predicate(f"length({text}) > 5", SCHEMA)
    with pytest.raises(InvalidPredicateError, match="could make texts of more than"):
        parse_expression(text, SCHEMA, pa.string())


def test_a_pattern_that_the_engine_could_not_hold_is_refused() -> None:
    assert parse_predicate(f"name LIKE '{'_' * 4096}'", SCHEMA).sql()
    with pytest.raises(InvalidPredicateError, match="4097 characters"):
        parse_predicate(f"name LIKE '{'_' * 4097}'", SCHEMA)
