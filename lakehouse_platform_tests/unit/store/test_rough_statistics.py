"""Decimals with more digits than a float keeps: other writers' file statistics round them, our answers must not."""

from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest

from lakehouse_platform import DeltaStore, Schema, Table
from lakehouse_platform.errors import DuplicateKeyError, UnsupportedFeatureError

SMALL, LARGE = Decimal("123456789012345.6781"), Decimal("123456789012345.6789")


@pytest.fixture
def foreign(store: DeltaStore) -> Table:
    """Two files by another writer, each with one value throughout, and with statistics of it."""
    table = store.table("t")
    for number, value in enumerate((SMALL, LARGE)):
        rows = pa.table({"id": [number, number + 10], "d": pa.array([value] * 2, pa.decimal128(20, 4))})
        deltalake.write_deltalake(table.location.uri, rows, mode="append")
    return table


def test_conditions_find_exact_values(foreign: Table) -> None:
    for value, expected in ((SMALL, [0, 10]), (LARGE, [1, 11])):
        predicate = f"d = '{value}'"
        assert sorted(row["id"] for row in foreign.query(predicate).to_pylist()) == expected
        assert (
            sorted(row["id"] for row in foreign.sql(f"SELECT id FROM data WHERE d = {value}").to_pylist())
            == expected
        )


def test_a_column_with_one_value_in_a_file_is_read_exactly(foreign: Table) -> None:
    expected = [SMALL, SMALL, LARGE, LARGE]
    assert sorted(row["d"] for row in foreign.query("d IS NOT NULL").to_pylist()) == expected
    rows = foreign.sql("SELECT d FROM data WHERE d IS NOT NULL").to_pylist()
    assert sorted(row["d"] for row in rows) == expected


def test_a_declared_key_of_such_a_column_is_enforced(foreign: Table) -> None:
    foreign.delete("id >= 10")
    foreign.set_primary_key(["d"])
    with pytest.raises(DuplicateKeyError):
        foreign.append([{"id": 5, "d": LARGE}])


def test_changes_chosen_by_such_a_column_are_refused_and_others_are_not(foreign: Table) -> None:
    before = foreign.version()
    changes = (
        lambda: foreign.delete(f"d = '{LARGE}'"),
        lambda: foreign.update({"id": "id + 1"}, f"d = '{LARGE}'"),
        lambda: foreign.overwrite_where(f"d = '{LARGE}'", [{"id": 1, "d": LARGE}]),
    )
    for change in changes:
        with pytest.raises(UnsupportedFeatureError, match="Z-order"):
            change()
    assert foreign.version() == before
    assert foreign.delete("id >= 10").rows_deleted == 2


def test_the_advice_of_the_refusal_helps(foreign: Table) -> None:
    foreign.set_properties({"delta.dataSkippingStatsColumns": "id"})
    foreign.z_order(["id"])
    assert foreign.delete(f"d = '{LARGE}'").rows_deleted == 2


def test_a_column_added_later_gives_exact_answers(store: DeltaStore) -> None:
    table = store.create("t", Schema.parse("id:Int64"))
    rows = pa.table({"id": [1, 2], "d": pa.array([LARGE, LARGE], pa.decimal128(20, 4))})
    table.append(rows, evolve=True)
    assert [row["d"] for row in table.query(f"d = '{LARGE}'").to_pylist()] == [LARGE, LARGE]
    assert table.query(f"d = '{SMALL}'").to_pylist() == []
