"""Which tables a query must not read directly, and what stands in for them, told by the query's plan.

deltalake 1.6.6 answers some queries wrongly because of what it pushes into its scans:

| the plan has | what the engine does | way out |
|---|---|---|
| a NULL literal or a failing constant in a condition | drops or keeps rows at will | a view that filters stay above |
| a condition on partition columns that is no plain comparison | takes it for fulfilled | the same |
| anything computed from a float column | trusts statistics that ignore NaN | a view that hides its statistics |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.store.expressions import Column
from lakehouse_platform.store.literals import quote_identifier
from lakehouse_platform.store.properties import has_long_decimal
from lakehouse_platform.store.rough_statistics import rough_columns

# Names of the tables below the views. No table of a lakehouse can have such a name, for it holds a space; otherwise a
# query of such a table and of the one below the view would read the one in place of the other.
BASE_PREFIX = "base of "
# A limit that never bites, but that the optimizer must not move filters below.
_BARRIER = " LIMIT 9223372036854775807"
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
# Files are skipped by an extreme only where it is taken over all rows, not in groups.
_GROUPED = re.compile(r"groupBy=\[\[[\w.]+[],]")
_STREAMING = ("Projection:", "Filter:", "TableScan:", "SubqueryAlias:", "Limit:")
_SIMPLE = (*_STREAMING, "Aggregate:", "Sort:")
# The kinds of plain conditions; of some others, such as functions, no parts can be had (datafusion-python 55).
_CONVERTIBLE = frozenset({"BinaryExpr", "InList", "Not", "IsNull", "IsNotNull", "Column"})
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


def is_simple(plan: Any, tables: Mapping[str, DeltaTable], schemas: Mapping[str, pa.Schema]) -> bool:
    """Tell from a plan as written that no table needs a view, for the commonest queries of one table.

    It spares them the optimizer, whose plan `views` needs.
    """
    nodes = list(_nodes(plan))
    texts = [node.display() for node in nodes]
    if not all(text.startswith(_SIMPLE) and _is_harmless(text) for text in texts):
        return False
    if {"Limit:", "Sort:"} <= {text.split(" ", 1)[0] for text in texts}:
        return False  # together they are a top-k, which uses statistics
    trusted = {pair for name, table in tables.items() for pair in _trusted(table, schemas[name])}
    for position, node in enumerate(nodes):
        if texts[position].startswith("Filter:") and not (
            _is_scan(texts[position + 1 :]) and _compares(node.to_variant().predicate(), trusted)
        ):
            return False
    return not any(has_long_decimal(field.type) for schema in schemas.values() for field in schema)


def streams(plan: Any) -> bool:
    """Tell of a simple plan whether rows only pass through it, so that it needs no memory for them."""
    return all(node.display().startswith(_STREAMING) for node in _nodes(plan))


def views(
    written: Any, optimized: Any, tables: Mapping[str, DeltaTable], schemas: Mapping[str, pa.Schema]
) -> dict[str, str]:
    """Return, for the tables that must not be read directly, the SELECT over `BASE_PREFIX` + name that stands in."""
    nodes, shown = list(_nodes(optimized)), optimized.display_indent()
    # Plans inside expressions are not among the nodes, only in the text.
    whole = "ubquery" in shown
    texts = [shown] if whole else [node.display() for node in nodes]
    conditions = [text for text in texts if whole or text.startswith(_CONDITIONS)]
    # The engine's optimizer is a little other than the planner's: it may keep what was folded away here.
    blocked = bool(_NULL.search(written.display_indent())) or "EmptyRelation: rows=0" in shown
    blocked = blocked or any(_NULL.search(text) or _FAILING_CONSTANT.search(text) for text in conditions)
    computed = shown if whole else _computed(texts, shown)
    found: dict[str, str] = {}
    for name, table in tables.items():
        barrier = blocked or bool(rough_columns(table))
        barrier = barrier or _touches_partitions(table, nodes, conditions, whole=whole)
        if view := _view(name, schemas[name], computed, barrier=barrier):
            found[name] = view
    return found


def narrow_view(name: str, schema: pa.Schema) -> str:
    """Return the SELECT of these columns alone, over `BASE_PREFIX` + name."""
    columns = ", ".join(quote_identifier(field.name) for field in schema)
    return f"SELECT {columns} FROM {quote_identifier(BASE_PREFIX + name)}"  # noqa: S608 - quoted names only


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for part in plan.inputs():
        yield from _nodes(part)


def _is_harmless(text: str) -> bool:
    if "(<subquery>)" in text or _NULL.search(text):
        return False
    if text.startswith("Filter:"):
        return True  # looked at closely
    return " IN ([" not in text and (not text.startswith("Aggregate:") or _only_output(text))


def _trusted(table: DeltaTable, schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the columns whose comparisons may be pushed, each with the type that its values are written in."""
    partitions = table.metadata().partition_columns
    for field in schema:
        if field.name in partitions:
            continue
        if pa.types.is_integer(field.type):
            yield field.name, "Int64"
        if field.type in (pa.string(), pa.large_string(), pa.string_view()):
            yield field.name, "Utf8"


def _is_scan(texts: list[str]) -> bool:
    return all(text.startswith(("TableScan:", "SubqueryAlias:")) for text in texts)


def _compares(test: Any, trusted: set[tuple[str, str]]) -> bool:
    """Tell whether a condition only compares trusted columns with values of their types."""
    if test.variant_name() != "BinaryExpr":
        return False
    variant = test.to_variant()
    column, value = variant.left(), variant.right()
    if variant.op() in ("AND", "OR"):
        return _compares(column, trusted) and _compares(value, trusted)
    if variant.op() not in _COMPARISONS:
        return False
    if column.variant_name() != "Column" or value.variant_name() != "Literal":
        return False
    return (column.to_variant().name(), value.to_variant().data_type()) in trusted


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
        return _EXTREME.search(text) is None or _GROUPED.search(text) is not None
    if text.startswith("Sort:"):
        return "fetch=" not in text
    return text.startswith(_OUTPUT_ONLY) and "filters=" not in text


def _view(name: str, schema: pa.Schema, computed: str, *, barrier: bool) -> str | None:
    used = [field.type for field in schema if holds_float(field.type) and mentions(computed, field.name)]
    if not used and not barrier:
        return None
    if any(pa.types.is_nested(data_type) for data_type in used):
        barrier = True  # a field inside a struct cannot be hidden by itself
    columns = ", ".join(_column(field) for field in schema)
    source = quote_identifier(BASE_PREFIX + name)
    return f"SELECT {columns} FROM {source}{_BARRIER if barrier else ''}"  # noqa: S608 - quoted names only


def mentions(text: str, column: str) -> bool:
    """Tell whether the text of a plan has the name of a column."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text) is not None


def _column(field: pa.Field) -> str:
    quoted = quote_identifier(field.name)
    return (
        f"{Column(field.type, (field.name,)).sql()} AS {quoted}"
        if pa.types.is_floating(field.type)
        else quoted
    )


def holds_float(data_type: pa.DataType) -> bool:
    """Tell whether values of a type are, or contain, floats."""
    if pa.types.is_nested(data_type):
        return any(holds_float(data_type.field(index).type) for index in range(data_type.num_fields))
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
    kind = test.variant_name()
    if kind not in _CONVERTIBLE:
        return False
    variant = test.to_variant()
    if kind == "BinaryExpr" and variant.op() in ("AND", "OR"):
        return _is_plain(variant.left()) and _is_plain(variant.right())
    if kind == "BinaryExpr" and variant.op() in _COMPARISONS:
        return {variant.left().variant_name(), variant.right().variant_name()} == {"Column", "Literal"}
    if kind == "InList":
        return variant.expr().variant_name() == "Column" and all(
            part.variant_name() == "Literal" for part in variant.list()
        )
    if kind in ("IsNull", "IsNotNull"):
        return bool(variant.expr().variant_name() == "Column")
    if kind == "Not":
        return _is_plain(variant.expr())
    return kind == "Column"
