"""CHECK constraints: what the engine stores must mean what was asked for."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.storable import check_constraint

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("f", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(20, 2)),
        ("s", pa.string()),
        ("t", pa.bool_()),
    ]
)
GOOD: dict[str, Any] = {"i": 7, "j": 3, "f": 0.5, "m": Decimal("1.50"), "s": "it's", "t": True}


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("i > 5", {"i": 5}),
        ("i > 5", {"i": None}),
        ("i BETWEEN 1 AND 7", {"i": 8}),
        ("m > 1.49", {"m": Decimal("1.49")}),
        ("m IN (1.5, 1234.56)", {"m": Decimal("12.34")}),
        ("f < 1", {"f": float("nan")}),
        ("NOT isnan(f)", {"f": float("nan")}),
        ("length(s) = 4", {"s": "x"}),
        ("s IN ('it''s', 'b')", {"s": "its"}),
        ("(i + j) * 2 = 20", {"i": 8}),
        ("(t OR i = 1) AND j = 3", {"t": False}),
        ("i IS DISTINCT FROM 8", {"i": 8}),
        ("NOT (i > 10 AND NULL)", {"i": 11}),
    ],
)
def test_a_stored_constraint_still_means_the_same(tmp_path: Path, text: str, bad: dict[str, Any]) -> None:
    path = str(tmp_path / "table")
    deltalake.write_deltalake(path, SCHEMA.empty_table())
    deltalake.DeltaTable(path).alter.add_constraint({"c": check_constraint(text, SCHEMA).sql()})
    deltalake.write_deltalake(path, pa.Table.from_pylist([GOOD], schema=SCHEMA), mode="append")
    with pytest.raises(DeltaError):
        deltalake.write_deltalake(path, pa.Table.from_pylist([{**GOOD, **bad}], schema=SCHEMA), mode="append")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("i - (j - 1) = 5", "no parentheses"),
        ("f < CAST('inf' AS DOUBLE)", "infinity"),
        ("t = (i > 1)", "operands"),
        ("(t AND i > 1) IS NULL", "operands"),
        ("CASE WHEN t THEN i > 1 ELSE TRUE END", "CASE"),
        ("m * 2 > 1", "decimals"),
        ("wide > 1", "15 digits"),
    ],
)
def test_what_would_be_stored_with_another_meaning_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidPredicateError, match="cannot be stored") as caught:
        check_constraint(text, SCHEMA)
    assert reason in caught.value.message
