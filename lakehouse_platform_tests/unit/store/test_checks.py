"""A broken rule is named, with the row that breaks it, and without anybody's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import ConstraintViolationError, InvalidRowsError, LossyCastError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("secret", pa.string())])


@pytest.fixture
def table(store: DeltaStore) -> Table:
    made = store.create("t", SCHEMA)
    made.append([{"id": 1, "f": 1.0, "secret": "s"}])
    made.add_constraint("positive", "id > 0")
    made.add_constraint("small", "f < 10")
    return made


def bad(*, key: int | None = 5, f: float | None = 1.0) -> list[dict[str, Any]]:
    """Return a good row and then a bad one."""
    return [{"id": 4, "f": 1.0, "secret": "SECRET-1"}, {"id": key, "f": f, "secret": "SECRET-2"}]


_WRITES: dict[str, Callable[[Table, Any], object]] = {
    "append": lambda table, rows: table.append(rows),
    "arrow": lambda table, rows: table.append(pa.Table.from_pylist(rows, SCHEMA)),
    "overwrite": lambda table, rows: table.overwrite(rows),
    "overwrite_where": lambda table, rows: table.overwrite_where("TRUE", rows),
}


@pytest.mark.parametrize("write", _WRITES)
@pytest.mark.parametrize(
    ("rows", "constraint"),
    [
        (bad(key=0), "positive"),
        (bad(key=None), "positive"),
        (bad(f=10.0), "small"),
        (bad(f=float("nan")), "small"),
    ],
)
def test_the_constraint_and_the_first_row_that_breaks_it_are_named(
    table: Table, write: str, rows: Any, constraint: str
) -> None:
    with pytest.raises(ConstraintViolationError, match=f"Row 2 breaks constraint '{constraint}'") as caught:
        _WRITES[write](table, rows)
    assert (caught.value.details["row"], caught.value.details["constraint"]) == (2, constraint)
    assert "SECRET" not in str(caught.value)
    assert table.scan().to_pylist() == [{"id": 1, "f": 1.0, "secret": "s"}]


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.append(pa.Table.from_pylist(bad(key=0), SCHEMA).to_reader()),
        lambda table: table.merge(bad(key=0), on=["id"]),
        lambda table: table.update({"id": "-id"}),
    ],
)
def test_writes_whose_rows_nobody_holds_are_refused_too(
    table: Table, write: Callable[[Table], object]
) -> None:
    with pytest.raises(ConstraintViolationError) as caught:
        write(table)
    assert "SECRET" not in str(caught.value)
    assert table.version() == 3


@pytest.mark.parametrize(
    "predicate",
    ["f >= 0", "f <> 5.5", "f BETWEEN 0 AND 1e300", "id > 0 AND f IS NOT NULL", "f IN (1.0, 2.0)"],
)
def test_rules_over_floats_hold(store: DeltaStore, predicate: str) -> None:
    """The engine could not read back the way in which a float column is kept from its statistics."""
    table = store.create("t", SCHEMA)
    table.add_constraint("rule", predicate)
    table.append([{"id": 1, "f": 1.0}])
    with pytest.raises(ConstraintViolationError, match="'rule'"):
        table.append(
            [
                {
                    "id": 1,
                    "f": -5.5
                    if "<>" not in predicate and "NULL" not in predicate
                    else (None if "NULL" in predicate else 5.5),
                }
            ]
        )
    assert table.scan().to_arrow().num_rows == 1


def test_rows_outside_the_predicate_are_told_from_rows_that_break_a_rule(table: Table) -> None:
    with pytest.raises(InvalidRowsError, match="Row 2 does not fulfil 'id = 4'") as caught:
        table.overwrite_where("id = 4", bad(key=5))
    assert "SECRET" not in str(caught.value)
    with pytest.raises(ConstraintViolationError, match="'small'"):
        table.overwrite_where("id > 3", bad(f=11.0))


@pytest.mark.parametrize("write", ["append", "arrow", "overwrite"])
@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_texts_that_a_partition_column_would_lose_are_refused(
    store: DeltaStore, write: str, text: str
) -> None:
    table = store.create("p", SCHEMA, partition_by=["secret"])
    with pytest.raises(LossyCastError, match="row 2"):
        _WRITES[write](table, [{"id": 1, "f": 0.0, "secret": "ok"}, {"id": 2, "f": 0.0, "secret": text}])
    with pytest.raises(LossyCastError):
        table.append(pa.Table.from_pylist([{"id": 2, "f": 0.0, "secret": text}], SCHEMA).to_reader())
    with pytest.raises(LossyCastError):
        table.merge([{"id": 2, "secret": text}], on=["id"])
    assert table.scan().to_pylist() == []
