from __future__ import annotations

from datetime import UTC, datetime

from lakehouse_platform.model.results import ColumnInfo, TableInfo
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.text.ddl import create_table_statement, schema_text


def table(*columns: tuple[str, str, bool], **changes: object) -> TableInfo:
    facts: dict[str, object] = {
        "name": "t", "uri": "/t", "version": 0, "created": None, "modified": datetime.now(UTC),
        "rows": 0, "files": 0, "bytes": 0,
        "primary_key": (), "partition_columns": (), "properties": {}, "constraints": {},
        "description": "", "reader_features": (), "writer_features": (),
        "columns": tuple(ColumnInfo(name=name, type=kind, nullable=null) for name, kind, null in columns),
    }  # fmt: skip
    return TableInfo(**{**facts, **changes})  # type: ignore[arg-type]


def test_the_schema_text_is_read_back_as_the_same_schema() -> None:
    info = table(("id", "Int32", False), ("tags", "List<Struct<a:Int8,b:Map<String,Decimal(9,2)>>>", True))
    assert schema_text(info) == "id:Int32 not null,tags:List<Struct<a:Int8,b:Map<String,Decimal(9,2)>>>"
    parsed = Schema.parse(schema_text(info))
    assert [(f.name, f.data_type, f.nullable) for f in parsed.fields] == [
        (column.name, column.type, column.nullable) for column in info.columns
    ]


def test_sql_has_types_keys_constraints_and_partitions() -> None:
    info = table(
        ("id", "Int64", False),
        ("price", "Decimal(9,2)", True),
        ("tags", "List<Struct<Int8:String,m:Map<String,Binary>>>", True),
        primary_key=("id",),
        partition_columns=("price",),
        constraints={"positive": "price > 0"},
    )
    assert create_table_statement(info) == (
        "CREATE TABLE t (\n"
        "  id BIGINT NOT NULL,\n"
        "  price DECIMAL(9, 2),\n"
        "  tags ARRAY<STRUCT<Int8: STRING, m: MAP<STRING, BINARY>>>,\n"
        "  PRIMARY KEY (id),\n"
        "  CONSTRAINT positive CHECK (price > 0)\n"
        ") USING DELTA\n"
        "PARTITIONED BY (price);"
    )


def test_names_that_are_no_plain_words_are_quoted() -> None:
    assert "`a b` INT" in create_table_statement(table(("a b", "Int32", True)))
    assert "`back``tick` INT" in create_table_statement(table(("back`tick", "Int32", True)))
