"""CHECK constraints: predicates in the narrower form that survives being stored in a table.

deltalake 1.6.6 stores a constraint as a text of its own making and parses that again at every write. The text loses
some parentheses (`i - (j - k)` is stored as `i - j - k`), the point of decimals (1.50 as 150), NaN and infinity. What
would come back with another meaning is refused here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NoReturn

import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.coercion import compare
from lakehouse_platform.store.expressions import (
    BOOLEAN,
    Apply,
    Case,
    Column,
    Expression,
    Literal,
    Logic,
    Not,
    any_of,
    truth,
)
from lakehouse_platform.store.literals import sql_cast
from lakehouse_platform.store.predicates import Predicate, bind_condition

_EXACT_DIGITS = 15  # so many decimal digits survive the way into a double and back
_TESTS = ("({0} IS NULL)", "({0} IS NOT NULL)", "({0} IS TRUE)")
_ARITHMETIC = frozenset({"(- {0})"} | {f"({{0}} {sign} {{1}})" for sign in "+-*/%"})


def check_constraint(text: str, schema: pa.Schema) -> Predicate:
    """Return the predicate of a CHECK constraint, to be stored as its `sql()`; NULL breaks it.

    Raises:
        InvalidPredicateError: It is not one whole condition over the columns, or it would not survive being stored.
    """
    return Predicate(_storable(truth(bind_condition(text, schema))))


def _storable(item: Expression) -> Expression:
    match item:
        case Literal():
            return _literal(item)
        case Column():
            return _column(item)
        case Logic():
            return replace(item, items=tuple(_storable(part) for part in item.items))
        case Not():
            return replace(item, item=_storable(item.item))
        case Case():
            return _case(item)
        case Apply():
            return _apply(item)
        case _:
            return item


def _literal(item: Literal) -> Literal:
    if pa.types.is_decimal(item.type):
        return Literal(pa.float64(), item.value)
    if isinstance(item.value, float) and not math.isfinite(item.value):
        _refuse("NaN and infinity cannot be written in it: use isnan(x), or compare with a number")
    return item


def _column(item: Column) -> Expression:
    if not pa.types.is_decimal(item.type):
        return replace(item, hidden=False)
    if item.type.precision > _EXACT_DIGITS:
        _refuse(f"decimals of more than {_EXACT_DIGITS} digits cannot be compared in it exactly")
    return Apply(pa.float64(), sql_cast("{0}", pa.float64()), (item,))


def _case(item: Case) -> Expression:
    if item.type == BOOLEAN:
        _refuse("CASE must not give a condition: write it with AND, OR and NOT")
    branches = tuple((_storable(when), _storable(then)) for when, then in item.branches)
    return replace(item, branches=branches, default=_storable(item.default) if item.default else None)


def _apply(item: Apply) -> Expression:
    if pa.types.is_decimal(item.type):
        _refuse("it must not compute decimals: CAST the column to Float64 first")
    for operand in item.arguments:
        if operand.type == BOOLEAN and not _is_simple(operand, item.template):
            _refuse("conditions must not be operands of other operators: write it with AND, OR and NOT")
    if item.template in _ARITHMETIC and _is_arithmetic(item.arguments[-1]):
        _refuse(
            "arithmetic must need no parentheses on the right of an operator: write a - b + c for a - (b - c)"
        )
    if " IN (" in item.template and pa.types.is_decimal(item.arguments[0].type):
        tested, *options = item.arguments
        return any_of(_storable(compare("=", tested, option)) for option in options)
    return replace(item, arguments=tuple(_storable(operand) for operand in item.arguments))


def _is_simple(operand: Expression, template: str) -> bool:
    return isinstance(operand, (Column, Literal)) or (template in _TESTS and isinstance(operand, Apply))


def _is_arithmetic(operand: Expression) -> bool:
    return isinstance(operand, Apply) and operand.template in _ARITHMETIC


def _refuse(why: str) -> NoReturn:
    raise InvalidPredicateError(f"The condition cannot be stored as a constraint: {why}.")
