"""Read-only SQL over the lakehouse's tables: sandboxed, limited, streamed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.errors import TableNotFoundError
from lakehouse_platform.store.scan import Rows
from lakehouse_platform.store.sql_plan import Hidden, nothing_hidden, plan_query
from lakehouse_platform.store.sql_pool import execute_apart
from lakehouse_platform.store.sql_run import SqlLimits, execute

__all__ = ["SqlGuard", "SqlLimits", "SqlResult", "run_sql"]

_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
Tables = Mapping[str, DeltaTable] | Callable[[str], DeltaTable]


@dataclass(frozen=True, slots=True)
class SqlGuard:
    """What of a lakehouse is there for a caller of SQL.

    Attributes:
        admit: Called with the name of a table before it is opened, or looked for; raises if the caller may not read it.
        opened: Called with the name of each table that is read.
        names: Lists the tables that SHOW TABLES shows.
        hidden: Tells which columns of a table do not exist for the caller.
    """

    admit: Callable[[str], None]
    opened: Callable[[str], None]
    names: Callable[[], Iterable[str]]
    hidden: Hidden


class SqlResult(Rows):
    """The rows of a query; each reading after the first runs the query again, on the same versions of its tables."""

    __slots__ = ()


def run_sql(
    text: str,
    tables: Tables,
    limits: SqlLimits,
    *,
    names: Callable[[], Iterable[str]] | None = None,
    hidden: Hidden = nothing_hidden,
) -> SqlResult:
    """Run one read-only query (SELECT, WITH, VALUES, EXPLAIN, DESCRIBE, SHOW TABLES).

    Names are case-sensitive. Only the tables that the query reads are opened.

    Args:
        text: The query.
        tables: The tables by name, or what opens one and raises TableNotFoundError.
        limits: What the query may use.
        names: Lists the tables for SHOW TABLES, where `tables` is a function.
        hidden: Tells which columns of a table do not exist for this query.

    Raises:
        SqlNotAllowedError: The text would write, change settings, or is more than one statement.
        InvalidSqlError: The text does not parse or does not fit the tables; while reading: a value makes it fail.
        TableNotFoundError: It reads from a table that does not exist.
        QueryLimitError: While reading: a limit is exceeded.
    """
    if _SHOW_TABLES.fullmatch(text) and (listed := names or (None if callable(tables) else lambda: tables)):
        shown = pa.table({"table_name": pa.array(sorted(listed()), pa.string())})
        return SqlResult(shown.schema, shown.to_reader)
    opener = tables if callable(tables) else _opener(tables)
    if limits.timeout_seconds is not None:
        start = _remembering(opener)
        return _result(lambda: execute_apart(text, start, limits, hidden))
    plan = plan_query(text, opener, hidden)
    return _result(lambda: execute(plan, limits))


def _result(start: Callable[[], pa.RecordBatchReader]) -> SqlResult:
    first = start()
    waiting = [first]

    def reader() -> pa.RecordBatchReader:
        return waiting.pop() if waiting else start()

    return SqlResult(first.schema, reader)


def _opener(tables: Mapping[str, DeltaTable]) -> Callable[[str], DeltaTable]:
    def open_table(name: str) -> DeltaTable:
        if name in tables:
            return tables[name]
        close = difflib.get_close_matches(name, list(tables), n=3) or list(tables)
        raise TableNotFoundError(
            f"Table {name!r} is unknown; there is {', '.join(map(repr, close))}.", table=name
        )

    return open_table


def _remembering(opener: Callable[[str], DeltaTable]) -> Callable[[str], DeltaTable]:
    """Open each table once, so that every reading of a result sees the same version."""
    opened: dict[str, DeltaTable] = {}

    def open_table(name: str) -> DeltaTable:
        if name not in opened:
            opened[name] = opener(name)
        return opened[name]

    return open_table
