"""Operations on tables as requests, and what their answers mean."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import pyarrow as pa

from lakehouse_platform.client.decoding import decoded, decoded_list, member, whole_number
from lakehouse_platform.client.problems import json_of
from lakehouse_platform.client.records import Version
from lakehouse_platform.client.requests import Answer, Call, Reading, Request, T, query, segment
from lakehouse_platform.client.uploads import RowsIn, rows_body
from lakehouse_platform.model.names import check_table_name
from lakehouse_platform.model.results import (
    DeleteResult,
    MergeResult,
    OptimizeResult,
    SkippingStats,
    TableInfo,
    UpdateResult,
    VacuumResult,
    Written,
)
from lakehouse_platform.model.schema import Schema, name_text
from lakehouse_platform.model.times import parse_rfc3339

_TABLES = "/v1/tables"
# What lies between the time that a query may take and the end of its answer.
_SQL_MARGIN = 30.0
# Rewriting a table takes as long as the table is large; the server has its own limit.
_MAINTENANCE_PATIENCE = 3600.0


def names() -> Call[list[str]]:
    """Return the call for the names of the tables that one may read."""
    return Call(Request(method="GET", path=_TABLES), lambda answer: _texts(member(json_of(answer), "tables")))


def describe(name: str) -> Call[TableInfo]:
    """Return the call for everything worth knowing about a table."""
    return _get(_at(name), TableInfo)


def create(
    name: str,
    schema: Schema | pa.Schema,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    description: str,
) -> Call[int]:
    """Return the call that makes an empty table."""
    columns = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
    fields: dict[str, Any] = {"name": check_table_name(name), "schema": schema_text(columns)}
    fields |= {"primary_key": list(primary_key or columns.primary_key), "partition_by": list(partition_by)}
    return Call(Request(method="POST", path=_TABLES, fields=fields | {"description": description}), _version)


def drop(name: str) -> Call[None]:
    """Return the call that deletes a table with all its versions."""
    return Call(Request(method="DELETE", path=_at(name)), _nothing)


# ── Reading ───────────────────────────────────────────────────────────────────────────────────────────


def scan(
    name: str,
    columns: Sequence[str] | None,
    predicate: str | None,
    limit: int | None,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    *,
    reading: Reading = Reading.TABLE,
) -> Call[Any]:
    """Return the call for rows of a table."""
    listed = _listed(columns)
    asked = query(columns=listed, where=predicate, limit=limit, version=version, timestamp=moment(timestamp))
    return _rows(_at(name, "rows"), asked, reading)


def sql(text: str, max_rows: int | None, timeout: float | None) -> Call[pa.Table]:
    """Return the call for the result of a query; it changes nothing, but counts, so it is not repeated by itself."""
    fields = {"query": text, "max_rows": max_rows, "timeout": timeout}
    given = {key: value for key, value in fields.items() if value is not None}
    request = Request(
        method="POST",
        path="/v1/sql",
        fields=given,
        reading=Reading.TABLE,
        patience=(timeout or 0.0) + _SQL_MARGIN,
    )
    return Call(request, _body)


def history(name: str, limit: int | None) -> Call[list[Version]]:
    """Return the call for the newest commits."""
    request = Request(method="GET", path=_at(name, "history"), query=query(limit=limit))
    return Call(request, lambda answer: decoded_list(Version, member(json_of(answer), "history")))


def diff(name: str, before: int, after: int) -> Call[pa.Table]:
    """Return the call for the rows that differ between two versions."""
    return _rows(_at(name, "diff"), query(before=before, after=after), Reading.TABLE)


def change_feed(name: str, start: int, end: int | None) -> Call[pa.Table]:
    """Return the call for the changes of rows from one version to another."""
    return _rows(_at(name, "changes"), query(start=start, end=end), Reading.TABLE)


def skipping(name: str, predicate: str | None) -> Call[SkippingStats]:
    """Return the call for how much a predicate leaves unread."""
    return _get(_at(name, "skipping"), SkippingStats, query(where=predicate))


# ── Writing ───────────────────────────────────────────────────────────────────────────────────────────


def append(name: str, data: RowsIn, evolve: bool, key: str) -> Call[Written]:
    """Return the call that adds rows."""
    return _write("POST", name, data, key, evolve=evolve)


def overwrite(name: str, data: RowsIn, evolve: bool, key: str) -> Call[Written]:
    """Return the call that replaces all rows."""
    return _write("PUT", name, data, key, evolve=evolve)


def overwrite_where(name: str, predicate: str, data: RowsIn, key: str) -> Call[Written]:
    """Return the call that replaces the rows that fulfil a predicate."""
    return _write("PUT", name, data, key, where=predicate)


def merge(name: str, data: RowsIn, on: Sequence[str] | None, key: str) -> Call[MergeResult]:
    """Return the call that inserts, updates and deletes by key."""
    listed = _listed(on)
    request = Request(
        method="POST", path=_at(name, "merge"), query=query(on=listed), rows=rows_body(data), key=key
    )
    return Call(request, lambda answer: decoded(MergeResult, json_of(answer)))


def delete(name: str, predicate: str, key: str) -> Call[DeleteResult]:
    """Return the call that deletes the rows that fulfil a predicate."""
    request = Request(method="DELETE", path=_at(name, "rows"), query=query(where=predicate), key=key)
    return Call(request, lambda answer: decoded(DeleteResult, json_of(answer)))


def update(name: str, assignments: Mapping[str, str], predicate: str | None, key: str) -> Call[UpdateResult]:
    """Return the call that sets columns to expressions."""
    fields: dict[str, Any] = {"set": dict(assignments)}
    if predicate is not None:
        fields["where"] = predicate
    request = Request(method="PATCH", path=_at(name, "rows"), fields=fields, key=key)
    return Call(request, lambda answer: decoded(UpdateResult, json_of(answer)))


def restore(name: str, version: int | str | datetime) -> Call[int]:
    """Return the call that makes an old version the newest."""
    fields = {"version": version} if isinstance(version, int) else {"timestamp": moment(version)}
    return Call(_post(name, "restore", fields), _version)


# ── Upkeep and rules ──────────────────────────────────────────────────────────────────────────────────


def compact(name: str, target_file_mb: int | None, where: str | None) -> Call[OptimizeResult]:
    """Return the call that merges small files."""
    fields = {"target_file_mb": target_file_mb, "where": where}
    request = _post(name, "compact", fields, patience=_MAINTENANCE_PATIENCE)
    return Call(request, lambda answer: decoded(OptimizeResult, json_of(answer)))


def z_order(name: str, columns: Sequence[str]) -> Call[OptimizeResult]:
    """Return the call that clusters rows."""
    request = _post(name, "z-order", {"columns": list(columns)}, patience=_MAINTENANCE_PATIENCE)
    return Call(request, lambda answer: decoded(OptimizeResult, json_of(answer)))


def vacuum(name: str, retention_hours: int | None, dry_run: bool) -> Call[VacuumResult]:
    """Return the call that deletes files which old versions alone need."""
    fields = {"retention_hours": retention_hours, "dry_run": dry_run}
    request = _post(name, "vacuum", fields, patience=_MAINTENANCE_PATIENCE)
    return Call(request, lambda answer: decoded(VacuumResult, json_of(answer)))


def set_primary_key(name: str, columns: Sequence[str]) -> Call[int]:
    """Return the call that declares the primary key."""
    return Call(
        Request(method="PUT", path=_at(name, "primary-key"), fields={"columns": list(columns)}), _version
    )


def set_properties(name: str, properties: Mapping[str, str]) -> Call[int]:
    """Return the call that sets table properties."""
    return Call(Request(method="PUT", path=_at(name, "properties"), fields=dict(properties)), _version)


def add_constraint(name: str, constraint: str, predicate: str) -> Call[int]:
    """Return the call that adds a CHECK constraint."""
    path = _at(name, f"constraints/{segment(constraint)}")
    return Call(Request(method="PUT", path=path, fields={"predicate": predicate}), _version)


def drop_constraint(name: str, constraint: str) -> Call[int]:
    """Return the call that removes a CHECK constraint."""
    return Call(Request(method="DELETE", path=_at(name, f"constraints/{segment(constraint)}")), _version)


def add_columns(name: str, columns: Schema | pa.Schema) -> Call[int]:
    """Return the call that adds columns."""
    schema = columns if isinstance(columns, Schema) else Schema.from_arrow(columns)
    return Call(_post(name, "columns", {"schema": schema_text(schema)}), _version)


# ── Parts ─────────────────────────────────────────────────────────────────────────────────────────────


def schema_text(schema: Schema) -> str:
    """Return a schema as text that `Schema.parse` reads."""
    columns = (
        f"{name_text(field.name)}:{field.data_type}{'' if field.nullable else ' not null'}"
        for field in schema.fields
    )
    return ",".join(columns)


def moment(time: str | datetime | None) -> str | None:
    """Return a time as RFC 3339 text.

    Raises:
        InvalidTimestampError: It is no such text, or has no zone.
    """
    if time is None:
        return None
    text = time if isinstance(time, str) else time.isoformat()
    parse_rfc3339(text)
    return text


def _listed(names: Sequence[str] | None) -> str | None:
    """Return names as the server reads a list: separated by commas, one with a comma in quotes."""
    if names is None:
        return None
    text = io.StringIO()
    # Names with either of the two letters are quoted, because they could end the line.
    csv.writer(text, lineterminator="\r\n").writerow(names)
    return text.getvalue().removesuffix("\r\n")


def _at(name: str, part: str | None = None) -> str:
    path = f"{_TABLES}/{segment(check_table_name(name))}"
    return path if part is None else f"{path}/{part}"


def _get(path: str, cls: type[T], asked: tuple[tuple[str, str], ...] = ()) -> Call[T]:
    request = Request(method="GET", path=path, query=asked)
    return Call(request, lambda answer: decoded(cls, json_of(answer)))


def _rows(path: str, asked: tuple[tuple[str, str], ...], reading: Reading) -> Call[Any]:
    return Call(Request(method="GET", path=path, query=asked, reading=reading), _body)


def _post(name: str, part: str, fields: Mapping[str, Any], patience: float = 0.0) -> Request:
    given = {key: value for key, value in fields.items() if value is not None}
    return Request(method="POST", path=_at(name, part), fields=given, patience=patience)


def _write(
    method: str, name: str, data: RowsIn, key: str, *, evolve: bool = False, where: str | None = None
) -> Call[Written]:
    body = rows_body(data, with_types=evolve)
    asked = query(evolve=evolve or None, where=where)
    request = Request(method=method, path=_at(name, "rows"), query=asked, rows=body, key=key)
    return Call(request, lambda answer: decoded(Written, json_of(answer)))


def _body(answer: Answer) -> Any:
    return answer.body


def _version(answer: Answer) -> int:
    return whole_number(member(json_of(answer), "version"))


def _nothing(answer: Answer) -> None:
    del answer


def _texts(value: object) -> list[str]:
    return [str(item) for item in cast("list[Any]", value)] if isinstance(value, list) else []
