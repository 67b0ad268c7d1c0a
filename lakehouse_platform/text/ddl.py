"""A table's columns as text: as `create --schema` takes them, and as the SQL of Spark and Databricks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.types as pt

from lakehouse_platform.model.results import ColumnInfo, TableInfo
from lakehouse_platform.model.schema import arrow_type, name_text

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SQL_TYPES: Mapping[pa.DataType, str] = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.binary(): "BINARY",
}


def schema_text(info: TableInfo) -> str:
    """Return the columns as `create --schema` takes them."""
    return ",".join(
        f"{name_text(column.name)}:{column.type}{_null_text(column).lower()}" for column in info.columns
    )


def create_table_statement(info: TableInfo) -> str:
    """Return the table's definition as a CREATE TABLE statement."""
    inner = ",\n  ".join([*map(_column, info.columns), *_rules(info)])
    partitions = ", ".join(map(_name, info.partition_columns))
    tail = f"\nPARTITIONED BY ({partitions})" if partitions else ""
    return f"CREATE TABLE {_name(info.name)} (\n  {inner}\n) USING DELTA{tail};"


def _column(column: ColumnInfo) -> str:
    return f"{_name(column.name)} {_sql_type(arrow_type(column.type))}{_null_text(column)}"


def _null_text(column: ColumnInfo) -> str:
    return "" if column.nullable else " NOT NULL"


def _rules(info: TableInfo) -> Iterator[str]:
    if info.primary_key:
        yield f"PRIMARY KEY ({', '.join(map(_name, info.primary_key))})"
    for name, predicate in info.constraints.items():
        yield f"CONSTRAINT {_name(name)} CHECK ({predicate})"


def _sql_type(kind: pa.DataType) -> str:
    if kind in _SQL_TYPES:
        return _SQL_TYPES[kind]
    if pt.is_list(kind):
        return f"ARRAY<{_sql_type(kind.value_type)}>"
    if pt.is_map(kind):
        return f"MAP<{_sql_type(kind.key_type)}, {_sql_type(kind.item_type)}>"
    if pt.is_struct(kind):
        return f"STRUCT<{', '.join(f'{_name(field.name)}: {_sql_type(field.type)}' for field in kind)}>"
    return f"DECIMAL({kind.precision}, {kind.scale})"


def _name(text: str) -> str:
    if _PLAIN_NAME.fullmatch(text):
        return text
    return "`" + text.replace("`", "``") + "`"
