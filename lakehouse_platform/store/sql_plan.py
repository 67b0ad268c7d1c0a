"""Decides whether a text is one read-only query over the lakehouse's tables, and how it runs to right answers.

The text is planned by datafusion-python, which shares the engine's grammar, over tables that have a schema and no rows.
Only names that this planner asks for are opened, and the engine later sees no other tables: it can read nothing else.

What the engine would answer wrongly is found in the plan; see `sql_views` and `sql_lists` for the ways out.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion import DataFrame, SessionConfig, SessionContext, SQLOptions
from datafusion.catalog import SchemaProvider
from datafusion.catalog import Table as PlannerTable
from deltalake import DeltaTable

from lakehouse_platform.errors import InvalidSqlError, LakehouseError, SqlNotAllowedError, TableNotFoundError
from lakehouse_platform.store.engine import clean_text
from lakehouse_platform.store.scan import without
from lakehouse_platform.store.sql_lists import is_same_query, may_freeze, with_varying_items
from lakehouse_platform.store.sql_views import (
    holds_float,
    is_simple,
    mentions,
    narrow_view,
    streams,
    views,
)

MAX_TEXT = 256 * 1024  # characters; planning time grows with the square of the length
# The engine takes 1234.56 for a double, which equals no Decimal(10,2); floats beside decimals would overflow instead.
_EXACT_NUMBERS = {"datafusion.sql_parser.parse_float_as_decimal": "true"}
_log = logging.getLogger(__name__)
_WRITING = frozenset(
    {
        *(
            "ALTER",
            "ANALYZE",
            "ATTACH",
            "BEGIN",
            "CALL",
            "COMMIT",
            "COPY",
            "CREATE",
            "DEALLOCATE",
            "DELETE",
            "DETACH",
        ),
        *(
            "DROP",
            "EXECUTE",
            "GRANT",
            "INSERT",
            "INSTALL",
            "LOAD",
            "MERGE",
            "OPTIMIZE",
            "PRAGMA",
            "PREPARE",
            "REPLACE",
        ),
        *("RESET", "RESTORE", "REVOKE", "ROLLBACK", "SET", "START", "TRUNCATE", "UPDATE", "USE", "VACUUM"),
    }
)
_FIRST_WORD = re.compile(r"(?>\s+|--[^\n]*|/\*.*?\*/)*+(\w+|$)", re.DOTALL)
_NOT_ALLOWED = re.compile(
    r"not supported: \w+|Unsupported SQL statement|only supports a single SQL statement|SHOW "
)
_UNKNOWN_TABLE = re.compile(r"table '(?:datafusion\.)?(?:public\.)?([^']+)' not found")
_EXPLAINING = ("Explain", "Analyze")
_LABELS = re.compile(r"^(?:Error during planning: |SQL error: |Schema error: |DataFusion error: )+")
_COMPUTED_ITEMS = (
    "A list of IN (…) holds a CASE (or coalesce, nvl …) that the engine would take for a constant: write x = a OR "
    "x = b in place of x IN (a, b), and x <> a AND x <> b in place of x NOT IN (a, b)."
)
Hidden = Callable[[str], Collection[str]]
_READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
# Making a planner takes longer than planning a small query with it; it is not for several threads at once.
_planners = threading.local()


def nothing_hidden(_: str) -> Collection[str]:
    """Return no columns, whatever the table."""
    return ()


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A checked query.

    Attributes:
        text: The SQL text.
        tables: The tables it reads, by the names it uses.
        views: For tables that must not be read directly: the SELECT, over `BASE_PREFIX` + name, that stands in.
        settings: Of the engine, for this query.
        columns: The names of the result's columns, where those of the text are others.
        holds_rows: Whether it may gather rows in memory, so that a limit on that means something.
    """

    text: str
    tables: Mapping[str, DeltaTable]
    views: Mapping[str, str]
    settings: Mapping[str, str]
    columns: tuple[str, ...] | None = None
    holds_rows: bool = True


def plan_query(text: str, tables: Callable[[str], DeltaTable], hidden: Hidden = nothing_hidden) -> QueryPlan:
    """Check a text and return how to run it; nothing is run yet.

    Args:
        text: The SQL text.
        tables: Opens a table by name, or raises TableNotFoundError.
        hidden: Tells which columns of a table do not exist for this query.

    Raises:
        SqlNotAllowedError: The text is not one read-only query.
        InvalidSqlError: The text does not parse or does not fit the tables.
        TableNotFoundError: No table has a name that it reads from.
    """
    _check_text(text)
    names = _Tables(tables, hidden)
    try:
        return _plan(text, names)
    except LakehouseError:
        raise
    except Exception as error:
        raise names.failure or _planning_error(error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3's, which cannot be imported by name
            raise
        raise InvalidSqlError(
            f"The query planner failed: {clean_text(error)}. Simplify the query."
        ) from error


def _plan(text: str, names: _Tables) -> QueryPlan:
    frame, settings = _planned(text, names)
    written = frame.logical_plan()
    narrowed = names.narrowed()
    if narrowed and written.display().startswith(_EXPLAINING):
        # It would show the smallest and largest values of hidden columns, from the statistics of their files.
        raise SqlNotAllowedError("EXPLAIN is not allowed for a table of which some columns are hidden.")
    if is_simple(written, names.opened, names.schemas):
        return QueryPlan(text, names.opened, narrowed, settings, holds_rows=not streams(written))
    optimized = frame.optimized_logical_plan()
    if may_freeze(optimized.display_indent()):
        return _plan_varying(text, names, frame, settings)
    found = views(written, optimized, names.opened, names.schemas)
    return QueryPlan(text, names.opened, narrowed | found, settings)


def _planned(text: str, names: _Tables) -> tuple[DataFrame, Mapping[str, str]]:
    frame = _frame(text, names, {})
    if not names.has_decimals_without_floats(frame.logical_plan().display_indent()):
        return frame, {}
    try:
        return _frame(text, names, _EXACT_NUMBERS), _EXACT_NUMBERS
    except Exception as error:  # noqa: BLE001 - bare, when no decimal holds a number such as 1e300
        _log.debug("numbers stay doubles: %s", error)
        return frame, {}


def _plan_varying(text: str, names: _Tables, frame: DataFrame, settings: Mapping[str, str]) -> QueryPlan:
    varying = with_varying_items(text)
    try:
        changed = _frame(varying, names, settings)
        written, optimized = changed.logical_plan(), changed.optimized_logical_plan()
    except Exception as error:
        raise InvalidSqlError(_COMPUTED_ITEMS) from error
    before, after = frame.logical_plan().display_indent(), written.display_indent()
    if not is_same_query(before, after):  # something that only looks like a list was changed
        raise InvalidSqlError(_COMPUTED_ITEMS)
    found = views(written, optimized, names.opened, names.schemas)
    return QueryPlan(varying, names.opened, names.narrowed() | found, settings, tuple(frame.schema().names))


def _frame(text: str, names: _Tables, settings: Mapping[str, str]) -> DataFrame:
    planner = _planner(exact=settings is _EXACT_NUMBERS)
    planner.tables.names = names
    try:
        return planner.context.sql_with_options(text, _READ_ONLY)
    finally:
        planner.tables.names = _NO_TABLES


def _planner(*, exact: bool) -> _Planner:
    name = "exact" if exact else "usual"
    if not hasattr(_planners, name):
        setattr(_planners, name, _Planner(exact=exact))
    planner: _Planner = getattr(_planners, name)
    return planner


class _Planner:
    """One thread's planner, and what it takes for the lakehouse."""

    def __init__(self, *, exact: bool) -> None:
        options = {"datafusion.sql_parser.enable_ident_normalization": "false"}
        self.context = SessionContext(SessionConfig(options | _EXACT_NUMBERS if exact else options))
        self.tables = _Provider()
        self.context.catalog().register_schema("public", self.tables)


class _Tables:
    """The planner's view of the lakehouse: schemas without rows, opened when asked for."""

    def __init__(self, tables: Callable[[str], DeltaTable], hidden: Hidden = nothing_hidden) -> None:
        self._tables = tables
        self._hidden = hidden
        self.opened: dict[str, DeltaTable] = {}
        self.schemas: dict[str, pa.Schema] = {}
        self.failure: LakehouseError | None = None
        self._missing: set[str] = set()

    def table(self, name: str) -> PlannerTable | None:
        if name in self._missing:
            return None  # who asked was refused once, and is not to be written down twice
        if name not in self.opened:
            try:
                self.opened[name] = self._tables(name)
            except LakehouseError as error:
                # The planner would bury it; it may also be a table function's name.
                self.failure = error
                self._missing.add(name)
                return None
            whole = pa.schema(self.opened[name].schema().to_arrow())
            self.schemas[name] = without(whole, self._hidden(name))
        return _without_rows(self.schemas[name])

    def narrowed(self) -> dict[str, str]:
        """Return, for the tables of which columns are hidden, the SELECT of the others that stands in."""
        return {
            name: narrow_view(name, schema) for name, schema in self.schemas.items() if self._hidden(name)
        }

    def has_decimals_without_floats(self, written: str) -> bool:
        """Tell whether numbers with a point meet decimals, and no floats, in the plan's lines that hold them."""
        lines = "\n".join(line for line in written.splitlines() if "Float64(" in line)
        if not lines:
            return False
        met = [
            field.type for schema in self.schemas.values() for field in schema if mentions(lines, field.name)
        ]
        return any(pa.types.is_decimal(data_type) for data_type in met) and not any(map(holds_float, met))


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise InvalidSqlError(f"The query has {len(text)} characters; at most {MAX_TEXT} are accepted.")
    match = _FIRST_WORD.match(text)
    word = match[1].upper() if match else "?"
    if not word:
        raise InvalidSqlError("The query is empty: write one such as SELECT * FROM my_table.")
    if word in _WRITING:  # the planner would refuse it too, but perhaps for a mistake inside it
        raise SqlNotAllowedError(
            f"{word} is not allowed: sql() runs one read-only query (SELECT, WITH, VALUES, EXPLAIN, DESCRIBE).",
            statement=word,
        )


def _planning_error(error: Exception) -> LakehouseError:
    message = _LABELS.sub("", clean_text(error))
    if "single SQL statement" in message:
        return SqlNotAllowedError("Only one statement is allowed: send the queries one by one.")
    if _NOT_ALLOWED.search(message):
        return SqlNotAllowedError(
            f"The query is not allowed: {message}. sql() only reads the lakehouse's tables."
        )
    if match := _UNKNOWN_TABLE.search(message):
        return InvalidSqlError(
            f"Table {match[1]!r} is unknown; a name that holds a dot or a dash is written in double quotes.",
            table=match[1],
        )
    if match := re.fullmatch(r'ParserError\("(.*)"\)', message):
        message = match[1]
    return InvalidSqlError(f"The query is not valid: {message.removesuffix('.')}.")


@lru_cache(maxsize=256)
def _without_rows(schema: pa.Schema) -> PlannerTable:
    return PlannerTable(ds.dataset(schema.empty_table()))


def _no_table(name: str) -> DeltaTable:
    raise TableNotFoundError(f"Table {name!r} is unknown.", table=name)


_NO_TABLES = _Tables(_no_table)


class _Provider(SchemaProvider):
    """Shows a planner the tables of the query at hand: registering others for each query takes 0.1 ms (measured)."""

    def __init__(self) -> None:
        self.names = _NO_TABLES

    def table(self, name: str) -> PlannerTable | None:
        return self.names.table(name)

    def table_exist(self, name: str) -> bool:
        return name in self.names.opened

    def table_names(self) -> set[str]:
        return set(self.names.opened)

    def register_table(self, name: str, table: Any) -> None:
        raise SqlNotAllowedError(f"Table {name!r} cannot be made by a query.")

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        raise SqlNotAllowedError(f"Table {name!r} cannot be removed by a query.")

    def owner_name(self) -> str | None:
        return None
