"""Decides whether a text is one read-only query over the lakehouse's tables, and how it runs to right answers.

The text is planned by datafusion-python, which shares the engine's grammar, over tables that have a schema and no rows.
Only names that this planner asks for are opened, and the engine later sees no other tables: it can read nothing else.

deltalake 1.6.6 answers some queries wrongly because of what it pushes into its scans. The plan shows which:

| the plan has | what the engine does | way out |
|---|---|---|
| a NULL literal or a failing constant in a condition | drops or keeps rows at will | a view that filters stay above |
| a condition on partition columns that is no plain comparison | takes it for fulfilled | the same |
| anything computed from a float column | trusts statistics that ignore NaN | a view that hides its statistics |
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion import DataFrame, SessionConfig, SessionContext, SQLOptions
from datafusion.catalog import SchemaProvider
from datafusion.catalog import Table as PlannerTable
from deltalake import DeltaTable

from lakehouse_platform.errors import InvalidSqlError, LakehouseError, SqlNotAllowedError
from lakehouse_platform.store.engine import clean_text
from lakehouse_platform.store.expressions import Column
from lakehouse_platform.store.literals import quote_identifier
from lakehouse_platform.store.rough_statistics import rough_columns

MAX_TEXT = 256 * 1024  # characters; planning time grows with the square of the length
BASE_PREFIX = "__base_of_"  # names of the tables below the views; the planner knows no such name
# The engine takes 1234.56 for a double, which equals no Decimal(10,2); floats beside decimals would overflow instead.
_EXACT_NUMBERS = {"datafusion.sql_parser.parse_float_as_decimal": "true"}
_log = logging.getLogger(__name__)
# A limit that never bites, but that the optimizer must not move filters below.
_BARRIER = " LIMIT 9223372036854775807"
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
_LABELS = re.compile(r"^(?:Error during planning: |SQL error: |Schema error: |DataFusion error: )+")
_LITERAL = r'(?:[A-Z]\w*\((?:"[^"]*"|[^()"]*)\))'
_NULL = re.compile(r"(?<!IS )(?<!IS NOT )\bNULL\b")
_FAILING_CONSTANT = re.compile(rf"{_LITERAL} [-+*/%] {_LITERAL}|\bCAST\({_LITERAL} AS")
_OUTPUT_ONLY = (
    "Projection:",
    "TableScan:",
    "Limit:",
    "SubqueryAlias:",
    "Explain",
    "DescribeTable",
    "Union",
    "EmptyRelation",
)
_CONDITIONS = ("Filter:", "TableScan:", "Inner Join", "Left", "Right", "Full Join", "Cross Join")
_READ = re.compile(r"projection=\[[^\]]*\]")
_EXTREME = re.compile(r"\b(?:min|max)\(")
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A checked query.

    Attributes:
        text: The SQL text.
        tables: The tables it reads, by the names it uses.
        views: For tables that must not be read directly: the SELECT, over `BASE_PREFIX` + name, that stands in.
        settings: Of the engine, for this query.
    """

    text: str
    tables: Mapping[str, DeltaTable]
    views: Mapping[str, str]
    settings: Mapping[str, str]


def plan_query(text: str, tables: Callable[[str], DeltaTable]) -> QueryPlan:
    """Check a text and return how to run it; nothing is run yet.

    Args:
        text: The SQL text.
        tables: Opens a table by name, or raises TableNotFoundError.

    Raises:
        SqlNotAllowedError: The text is not one read-only query.
        InvalidSqlError: The text does not parse or does not fit the tables.
        TableNotFoundError: No table has a name that it reads from.
    """
    _check_text(text)
    names = _Tables(tables)
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
    frame = _frame(text, names, {})
    settings: dict[str, str] = {}
    if names.has_decimals_without_floats(frame.logical_plan().display_indent()):
        try:
            frame = _frame(text, names, _EXACT_NUMBERS)
            settings = _EXACT_NUMBERS
        except Exception as error:  # noqa: BLE001 - bare, when no decimal holds a number such as 1e300
            _log.debug("numbers stay doubles: %s", error)
    written, plan = frame.logical_plan().display_indent(), frame.optimized_logical_plan()
    views = _views(list(_nodes(plan)), written, plan.display_indent(), names)
    return QueryPlan(text, names.opened, views, settings)


def _frame(text: str, names: _Tables, settings: Mapping[str, str]) -> DataFrame:
    options = {"datafusion.sql_parser.enable_ident_normalization": "false", **settings}
    context = SessionContext(SessionConfig(options))
    context.catalog().register_schema("public", names)
    return context.sql_with_options(text, _read_only())


class _Tables(SchemaProvider):
    """The planner's view of the lakehouse: schemas without rows, opened when asked for."""

    def __init__(self, tables: Callable[[str], DeltaTable]) -> None:
        self._tables = tables
        self.opened: dict[str, DeltaTable] = {}
        self.schemas: dict[str, pa.Schema] = {}
        self.failure: LakehouseError | None = None

    def table(self, name: str) -> PlannerTable | None:
        if name not in self.opened:
            try:
                self.opened[name] = self._tables(name)
            except LakehouseError as error:
                # The planner would bury it; it may also be a table function's name.
                self.failure = error
                return None
            self.schemas[name] = pa.schema(self.opened[name].schema().to_arrow())
        return PlannerTable(ds.dataset(self.schemas[name].empty_table()))

    def has_decimals_without_floats(self, written: str) -> bool:
        """Tell whether numbers with a point meet decimals, and no floats, in the plan's lines that hold them."""
        lines = "\n".join(line for line in written.splitlines() if "Float64(" in line)
        met = [
            field.type for schema in self.schemas.values() for field in schema if _mentions(lines, field.name)
        ]
        return any(pa.types.is_decimal(data_type) for data_type in met) and not any(map(_holds_float, met))

    def table_exist(self, name: str) -> bool:
        return name in self.opened

    def table_names(self) -> set[str]:
        return set(self.opened)

    def register_table(self, name: str, table: Any) -> None:
        raise SqlNotAllowedError(f"Table {name!r} cannot be made by a query.")

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        raise SqlNotAllowedError(f"Table {name!r} cannot be removed by a query.")

    def owner_name(self) -> str | None:
        return None


def _read_only() -> SQLOptions:
    return SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


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


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for part in plan.inputs():
        yield from _nodes(part)


def _views(nodes: list[Any], written: str, shown: str, names: _Tables) -> dict[str, str]:
    # Plans inside expressions are not among the nodes, only in the text.
    whole = "ubquery" in shown
    texts = [shown] if whole else [node.display() for node in nodes]
    conditions = [text for text in texts if whole or text.startswith(_CONDITIONS)]
    # The engine's optimizer is a little other than the planner's: it may keep what was folded away here.
    blocked = bool(_NULL.search(written)) or "EmptyRelation: rows=0" in shown
    blocked = blocked or any(_NULL.search(text) or _FAILING_CONSTANT.search(text) for text in conditions)
    computed = shown if whole else _computed(texts, shown)
    views: dict[str, str] = {}
    for name, schema in names.schemas.items():
        rough = bool(rough_columns(names.opened[name]))
        barrier = blocked or rough or _touches_partitions(names.opened[name], nodes, conditions, whole=whole)
        if view := _view(name, schema, computed, barrier=barrier):
            views[name] = view
    return views


def _computed(texts: list[str], shown: str) -> str:
    """Return the parts of a plan in which a column's statistics could be used."""
    used = [text for text in texts if not _only_output(text)]
    if all(text.startswith("TableScan:") for text in used):
        # Pushed down to the scans, conditions name the tables' own columns; what is merely read does not count.
        return "\n".join(_READ.sub("", text) for text in used)
    # Statistics are used for conditions, joins, top-k and aggregates alike, and through aliases.
    return shown


def _only_output(text: str) -> bool:
    if text.startswith("Aggregate:"):
        return _EXTREME.search(text) is None
    if text.startswith("Sort:"):
        return "fetch=" not in text
    return text.startswith(_OUTPUT_ONLY) and "filters=" not in text


def _view(name: str, schema: pa.Schema, computed: str, *, barrier: bool) -> str | None:
    used = [field.type for field in schema if _holds_float(field.type) and _mentions(computed, field.name)]
    if not used and not barrier:
        return None
    if any(pa.types.is_nested(data_type) for data_type in used):
        barrier = True  # a field inside a struct cannot be hidden by itself
    columns = ", ".join(_column(field) for field in schema)
    source = quote_identifier(BASE_PREFIX + name)
    return f"SELECT {columns} FROM {source}{_BARRIER if barrier else ''}"  # noqa: S608 - quoted names only


def _mentions(text: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text) is not None


def _column(field: pa.Field) -> str:
    quoted = quote_identifier(field.name)
    return (
        f"{Column(field.type, (field.name,)).sql()} AS {quoted}"
        if pa.types.is_floating(field.type)
        else quoted
    )


def _holds_float(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(_holds_float(data_type.field(index).type) for index in range(data_type.num_fields))
    return bool(pa.types.is_floating(data_type))


def _touches_partitions(table: DeltaTable, nodes: list[Any], conditions: list[str], *, whole: bool) -> bool:
    """Tell whether a condition on partition columns may be pushed that is no plain comparison with a value."""
    partitions = table.metadata().partition_columns
    if not partitions:
        return False
    if whole:
        return any(column in text for text in conditions for column in partitions)
    pushed = [test for node in nodes for test in _tests(node)]
    return any(
        column in str(test.canonical_name())
        for test in pushed
        if not _is_plain(test)
        for column in partitions
    )


def _tests(node: Any) -> list[Any]:
    text = node.display()
    if text.startswith("Filter:"):
        return [node.to_variant().predicate()]
    if text.startswith("TableScan:") and "filters=" in text:
        return list(node.to_variant().filters())
    return []


def _is_plain(test: Any) -> bool:
    kind, variant = test.variant_name(), test.to_variant()
    if kind == "BinaryExpr" and variant.op() in ("AND", "OR"):
        return _is_plain(variant.left()) and _is_plain(variant.right())
    if kind == "BinaryExpr" and variant.op() in _COMPARISONS:
        return {variant.left().variant_name(), variant.right().variant_name()} == {"Column", "Literal"}
    if kind == "InList":
        return all(part.variant_name() in ("Column", "Literal") for part in [variant.expr(), *variant.list()])
    if kind in ("Not", "IsNull", "IsNotNull"):
        return _is_plain(variant.expr())
    return kind == "Column"
