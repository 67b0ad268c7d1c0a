"""An update may move rows between partitions, but not into one that readers take for NULL."""

import pyarrow as pa
import pytest

from lakehouse_platform import DeltaStore, Schema
from lakehouse_platform.errors import InvalidSchemaTextError, LossyCastError


@pytest.mark.parametrize("expression", ["''", "'__HIVE_DEFAULT_PARTITION__'", "substr(day, 1, 0)"])
def test_an_update_refuses_partition_texts_that_are_read_as_null(store: DeltaStore, expression: str) -> None:
    table = store.create("t", Schema.parse("id:Int64,day:String"), partition_by=["day"])
    table.append([{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}])
    with pytest.raises(LossyCastError, match="day"):
        table.update({"day": expression}, "id = 1")
    assert table.version() == 1


def test_an_update_moves_rows_between_partitions(store: DeltaStore) -> None:
    table = store.create("t", Schema.parse("id:Int64,day:String"), partition_by=["day"])
    table.append([{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}])
    table.update({"day": "'wed'"}, "id = 1")
    assert sorted(row["day"] for row in table.scan().to_pylist()) == ["tue", "wed"]


def test_a_type_that_a_table_would_change_is_refused_at_creation(store: DeltaStore) -> None:
    with pytest.raises(InvalidSchemaTextError, match="uint64"):
        store.create("t", pa.schema([("n", pa.uint64())]))
    assert store.tables() == []
