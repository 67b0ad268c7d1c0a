from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    InvalidPredicateError,
    InvalidSqlError,
    QueryLimitError,
    SchemaMismatchError,
    SqlNotAllowedError,
    TableNotFoundError,
)
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE, ids, people, refused, rows


def test_scan_gives_whole_rows_in_the_tables_schema(filled: DeltaStore) -> None:
    table = filled.scan("people").to_arrow()
    assert table.schema.remove_metadata() == PEOPLE
    assert sorted(table.column("id").to_pylist()) == [1, 2, 3, 4, 5]


def test_scan_gives_the_columns_asked_for_in_that_order(filled: DeltaStore) -> None:
    scan = filled.scan("people", columns=["age", "id"], predicate="id = 2")
    assert scan.schema.names == ["age", "id"]
    assert scan.to_pylist() == [{"age": 30, "id": 2}]


def test_a_predicate_may_use_columns_that_are_not_asked_for(filled: DeltaStore) -> None:
    assert filled.scan("people", columns=["name"], predicate="id = 2").to_pylist() == [{"name": "n2"}]


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 99])
def test_scan_stops_at_the_limit(filled: DeltaStore, limit: int) -> None:
    assert len(filled.scan("people", limit=limit).to_pylist()) == min(limit, 5)


def test_scan_streams(filled: DeltaStore) -> None:
    reader = filled.scan("people").reader()
    assert isinstance(reader, pa.RecordBatchReader)
    assert sum(batch.num_rows for batch in reader) == 5


def test_scan_hands_over_to_polars_and_pandas(filled: DeltaStore) -> None:
    frame = filled.scan("people").to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert sorted(frame["id"].to_list()) == [1, 2, 3, 4, 5]
    assert sorted(filled.scan("people").to_pandas()["id"].tolist()) == [1, 2, 3, 4, 5]


def test_scan_refuses_a_column_that_is_not_there(filled: DeltaStore) -> None:
    with refused(filled, "people", SchemaMismatchError, "nope"):
        filled.scan("people", columns=["id", "nope"]).to_pylist()


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("id = 2", [2]),
        ("id <> 2 AND id < 4", [1, 3]),
        ("id BETWEEN 2 AND 3", [2, 3]),
        ("name LIKE 'n%' AND NOT (id IN (1, 2))", [3, 4, 5, 6]),
        ("name = 'it''s'", []),
        ("age IS NULL", [6]),
        ("age IS NOT NULL AND id > 4", [5]),
        ("id NOT IN (1, NULL)", []),
        ("id > 1 AND NULL", []),
        ("id = 1 OR NULL", [1]),
        ("NOT (id = 1 AND NULL)", [2, 3, 4, 5, 6]),
        ("id BETWEEN NULL AND 3", []),
        ("coalesce(age, 0) = 0", [6]),
        ("CASE WHEN id = 1 THEN true ELSE false END", [1]),
    ],
)
def test_query_follows_three_valued_logic(filled: DeltaStore, predicate: str, expected: list[int]) -> None:
    filled.append("people", [{"id": 6, "name": "n6", "age": None}])
    assert sorted(row["id"] for row in filled.query("people", predicate).to_pylist()) == expected
    assert ids(filled, "people", predicate=predicate) == expected


def test_infinite_nan_and_missing_values_are_found_by_predicates(store: DeltaStore) -> None:
    store.create("t", pa.schema([("id", pa.int64()), ("x", pa.float64())]))
    for number, value in enumerate([float("inf"), float("-inf"), float("nan"), None, 0.0, 1.0]):
        store.append("t", [{"id": number, "x": value}])
    assert ids(store, "t", predicate="x >= 0 AND x < 1e308") == [4, 5]
    assert ids(store, "t", predicate="x IS NULL") == [3]
    assert ids(store, "t", predicate="x = CAST('-inf' AS DOUBLE)") == [1]
    assert ids(store, "t", predicate="isnan(x)") == [2]


def test_rows_from_before_a_column_was_added_are_found_by_it(filled: DeltaStore) -> None:
    filled.append("people", [{"id": 6, "name": "n6", "age": 1, "city": "Ulm"}], evolve=True)
    assert ids(filled, "people", predicate="city IS NULL") == [1, 2, 3, 4, 5]
    assert ids(filled, "people", predicate="city = 'Ulm'") == [6]


def test_sql_sees_every_table_of_the_store(filled: DeltaStore) -> None:
    filled.create("orders", pa.schema([("person", pa.int64()), ("total", pa.float64())]))
    filled.append("orders", [{"person": 1, "total": 2.5}, {"person": 1, "total": 1.5}])
    result = filled.sql(
        "SELECT p.name, sum(o.total) AS total FROM people p JOIN orders o ON o.person = p.id GROUP BY p.name"
    )
    assert result.to_pylist() == [{"name": "n1", "total": 4.0}]


def test_sql_results_come_as_stream_table_and_frame(filled: DeltaStore) -> None:
    text = "SELECT id FROM people ORDER BY id"
    assert filled.sql(text).to_arrow().column("id").to_pylist() == [1, 2, 3, 4, 5]
    assert filled.sql(text).reader().read_all().num_rows == 5
    assert filled.sql(text).to_polars()["id"].to_list() == [1, 2, 3, 4, 5]
    assert filled.sql(text).schema.names == ["id"]


def test_sql_over_one_table_calls_it_data_or_by_its_name(filled: DeltaStore) -> None:
    table = filled.table("people")
    for name in ("data", "people"):
        assert table.sql(f"SELECT count(*) AS n FROM {name}").to_pylist() == [{"n": 5}]


def test_sql_understands_subqueries_windows_and_unions(filled: DeltaStore) -> None:
    text = """
        WITH old AS (SELECT id FROM people WHERE id > (SELECT avg(id) FROM people))
        SELECT id, row_number() OVER (ORDER BY id DESC) AS place FROM old
        UNION ALL SELECT 0, 0 ORDER BY id
    """
    assert filled.sql(text).to_pylist() == [
        {"id": 0, "place": 0},
        {"id": 4, "place": 2},
        {"id": 5, "place": 1},
    ]


def test_sql_follows_three_valued_logic(filled: DeltaStore) -> None:
    assert filled.sql("SELECT count(*) AS n FROM people WHERE id NOT IN (1, NULL)").to_pylist() == [{"n": 0}]
    assert filled.sql("SELECT count(*) AS n FROM people WHERE id > 1 AND NULL").to_pylist() == [{"n": 0}]


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM people",
        "INSERT INTO people VALUES (9, 'x', 1)",
        "UPDATE people SET age = 1",
        "DROP TABLE people",
        "CREATE TABLE x AS SELECT 1",
        "CREATE VIEW x AS SELECT * FROM people",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "COPY people TO '/tmp/stolen.csv'",
        "COPY (SELECT 1) TO '/tmp/stolen.csv'",
        "SET datafusion.execution.batch_size = 1",
        "SELECT 1; DROP TABLE people",
        "TRUNCATE TABLE people",
    ],
)
def test_sql_that_writes_is_refused(filled: DeltaStore, text: str) -> None:
    with refused(filled, "people", SqlNotAllowedError):
        filled.sql(text).to_pylist()
    assert filled.tables() == ["people"]


@pytest.mark.parametrize(
    "text", ["", "SELEC 1", "SELECT nope FROM people", "SELECT * FROM people WHERE", "SELECT 'x"]
)
def test_sql_that_does_not_parse_or_fit_is_refused(filled: DeltaStore, text: str) -> None:
    with refused(filled, "people", InvalidSqlError):
        filled.sql(text).to_pylist()


@pytest.mark.parametrize("text", ["SELECT * FROM absent", "SELECT * FROM people JOIN absent USING (id)"])
def test_sql_over_an_unknown_table_names_it(filled: DeltaStore, text: str) -> None:
    with refused(filled, "people", TableNotFoundError, "absent"):
        filled.sql(text).to_pylist()


def test_sql_stops_at_its_limit_of_rows(filled: DeltaStore) -> None:
    assert len(filled.sql("SELECT * FROM people", max_rows=5).to_pylist()) == 5
    with pytest.raises(QueryLimitError):
        filled.sql("SELECT * FROM people", max_rows=4).to_pylist()


def test_a_predicate_reads_no_other_table(filled: DeltaStore) -> None:
    filled.create("secret", PEOPLE)
    with refused(filled, "people", InvalidPredicateError):
        filled.query("people", "id IN (SELECT id FROM secret)").to_pylist()


def test_a_reader_that_was_opened_keeps_its_version(filled: DeltaStore) -> None:
    reader = filled.scan("people").reader()
    filled.append("people", people(6))
    filled.delete("people", "id = 1")
    assert sorted(row["id"] for row in reader.read_all().to_pylist()) == [1, 2, 3, 4, 5]


def test_skipping_statistics_are_measured(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    for start in (0, 100, 200, 300):
        store.append("people", people(*range(start, start + 50)))
    skipping = store.table("people").skipping("id = 210")
    assert (skipping.total_files, skipping.files_read, skipping.files_skipped) == (4, 1, 3)
    sizes = sum(file.size for file in store.table("people").data_files())
    assert skipping.bytes_scanned + skipping.bytes_skipped == sizes


def test_data_files_are_listed_with_rows_and_size(filled: DeltaStore) -> None:
    filled.append("people", people(6))
    files = filled.table("people").data_files()
    assert sorted(file.rows or 0 for file in files) == [1, 5]
    assert all(file.size > 0 and file.path.endswith(".parquet") for file in files)


def test_rows_of_an_empty_table_have_its_schema(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    assert rows(store, "people") == []
    assert store.scan("people").to_arrow().schema.names == PEOPLE.names
    assert store.sql("SELECT * FROM people").to_pylist() == []
