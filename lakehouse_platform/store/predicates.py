"""Predicates and expressions from users: text in, SQL that the engine can be trusted with out.

No user text reaches the engine. A text is parsed whole or refused, bound to the table's columns and types, relieved of
everything the engine answers wrongly (see `expressions`), and rendered anew, fully parenthesised and quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.binding import Binder
from lakehouse_platform.store.coercion import (
    compare,
    contained,
    describe,
    is_null_literal,
    try_widened,
    type_name,
)
from lakehouse_platform.store.expressions import (
    FALSE,
    TRUE,
    Column,
    Literal,
    all_of,
    guarded,
    is_null,
    settled,
    truth,
)
from lakehouse_platform.store.expressions import (
    Expression as TypedExpression,
)
from lakehouse_platform.store.literals import literal, plain_type, quote_identifier
from lakehouse_platform.store.predicate_syntax import parse_syntax

__all__ = [
    "Expression", "Predicate", "equals", "is_in", "literal", "parse_expression", "parse_predicate", "quote_identifier",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on rows; a row is meant exactly where it is true (not where it is false or NULL).

    Attributes:
        condition: The typed condition; it holds no NULL literal.
    """

    condition: TypedExpression

    @property
    def is_always(self) -> bool:
        """Whether every row of every table is meant."""
        return self.condition == TRUE

    @property
    def is_never(self) -> bool:
        """Whether no row of any table is meant."""
        return self.condition == FALSE

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        return self.condition.columns

    def sql(self, alias: str | None = None) -> str:
        """Return the SQL text, the same for delete, update, merge, replaceWhere, scan and WHERE.

        Args:
            alias: The name that qualifies the columns, as merge needs.
        """
        return self.condition.sql(alias)


@dataclass(frozen=True, slots=True)
class Expression:
    """A value to compute for each row.

    Attributes:
        value: The typed expression.
    """

    value: TypedExpression

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        return self.value.columns

    def sql(self, alias: str | None = None) -> str:
        """Return the SQL text.

        Args:
            alias: The name that qualifies the columns, as merge needs.
        """
        return self.value.sql(alias)


def parse_predicate(text: str, schema: pa.Schema) -> Predicate:
    """Return the predicate that a text such as `id > 3 AND name LIKE 'A%'` means on a table.

    Raises:
        InvalidPredicateError: It is not one whole boolean expression over the columns; the message says where or why.
    """
    return _predicate(bind_condition(text, schema))


def bind_condition(text: str, schema: pa.Schema) -> TypedExpression:
    """Return the typed condition of a text, in three-valued logic: not yet fit for the engine.

    Raises:
        InvalidPredicateError: See `parse_predicate`.
    """
    try:
        return Binder(schema).condition(parse_syntax(text))
    except RecursionError as error:
        raise _too_deep(text) from error


def parse_expression(text: str, schema: pa.Schema, target: pa.DataType) -> Expression:
    """Return the expression of an assignment to a column of type `target`.

    Whole numbers may be assigned to a narrower integer column: the engine fails on a value that does not fit.

    Raises:
        InvalidPredicateError: It is not one whole expression over the columns, or its values could change when stored.
    """
    try:
        return Expression(_assignable(Binder(schema).bind(parse_syntax(text)), target))
    except RecursionError as error:
        raise _too_deep(text) from error


def equals(schema: pa.Schema, values: Mapping[str, Any]) -> Predicate:
    """Return the predicate that each named column has the given Python value; None means NULL.

    Raises:
        InvalidPredicateError: A column is unknown, or a value is not of its type.
    """
    tests = [_equals(_column(schema, name), value) for name, value in values.items()]
    return _predicate(all_of(tests))


def is_in(column: str, values: Iterable[Any], data_type: pa.DataType) -> Predicate:
    """Return the predicate that a column has one of the Python values; None among them meets nothing.

    Raises:
        InvalidPredicateError: A value is not of the type.
    """
    item = Column(plain_type(data_type), (column,))
    options = [_value(item, value) for value in values if value is not None]
    return _predicate(contained(item, options))


def _predicate(condition: TypedExpression) -> Predicate:
    return Predicate(guarded(truth(condition)))


def _equals(column: Column, value: Any) -> TypedExpression:
    return is_null(column) if value is None else compare("=", column, _value(column, value))


def _value(column: Column, value: Any) -> Literal:
    result = Literal(column.type, value)
    result.sql()  # raises if the value is not of the column's type
    return result


def _column(schema: pa.Schema, name: str) -> Column:
    index = schema.get_field_index(name)
    if index < 0:
        raise InvalidPredicateError(
            f"Column {name!r} is unknown; known: {', '.join(schema.names)}.", column=name
        )
    return Column(plain_type(schema.field(index).type), (name,))


def _assignable(value: TypedExpression, target: pa.DataType) -> TypedExpression:
    target = plain_type(target)
    if is_null_literal(value):
        return Literal(target, None)
    if pa.types.is_integer(value.type) and pa.types.is_integer(target) and not isinstance(value, Literal):
        return value
    if result := try_widened(settled(value), target):
        return result
    raise InvalidPredicateError(
        f"A {type_name(target)} column cannot take {describe(value)} unchanged; "
        f"write CAST(… AS {type_name(target)}) if the change is meant.",
        type=type_name(target),
    )


def _too_deep(text: str) -> InvalidPredicateError:
    return InvalidPredicateError("The expression is nested too deeply; write it flatter.", text=text[:200])
