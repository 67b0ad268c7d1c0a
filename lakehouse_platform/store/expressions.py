"""Typed SQL expressions that the engine can be trusted with, and the three-valued logic that makes them so.

What is kept away from the engine, measured on deltalake 1.6.6:

* A NULL literal inside AND, NOT IN or BETWEEN gives wrong rows in scans; a predicate that folds to NULL, or whose
  constant part fails (`1/0 = 1`), makes `delete` remove every row. So constants are folded here, `truth` removes NULL,
  and `guarded` keeps the optimizer from making one.
* A comparison of two partition columns is taken for true wherever both have a value; `guarded` prevents that too.
* File statistics ignore NaN: a file holding 1.0 and NaN is taken for one holding only 1.0, so `delete("f < 2")` removes
  the NaN row too. So a float column is always read through `nanvl`, which statistics are not used through.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakehouse_platform.store.literals import literal, quote_identifier, quote_text, sql_cast, typed_literal

BOOLEAN = pa.bool_()


@dataclass(frozen=True)
class Expression(ABC):
    """A piece of SQL with its type.

    Attributes:
        type: The Arrow type of its value.
    """

    type: pa.DataType

    @property
    def parts(self) -> Sequence[Expression]:
        """The expressions it is made of."""
        return ()

    @cached_property
    def size(self) -> int:
        """How many expressions its SQL holds."""
        return 1 + sum(part.size for part in self.parts)

    @cached_property
    def holds_null(self) -> bool:
        """Whether its logic holds a NULL literal."""
        return any(part.holds_null for part in self.parts)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns it reads."""
        return frozenset[str]().union(*(part.columns for part in self.parts))

    @abstractmethod
    def sql(self, alias: str | None = None) -> str:
        """Return the SQL text; columns are qualified with `alias` if given."""


@dataclass(frozen=True)
class Literal(Expression):
    """A value; `beside_column` says that a column of its type is compared with it."""

    value: Any
    beside_column: bool = False

    @cached_property
    def holds_null(self) -> bool:
        """Whether it is NULL."""
        return self.value is None

    def sql(self, alias: str | None = None) -> str:
        """Return the value as SQL."""
        del alias
        if self.value is None:
            return "NULL" if pa.types.is_null(self.type) else sql_cast("NULL", self.type)
        return (literal if self.beside_column else typed_literal)(self.value, self.type)


@dataclass(frozen=True)
class Column(Expression):
    """A column, or a field inside a struct column; `hidden` keeps file statistics of floats out of use."""

    path: tuple[str, ...]
    hidden: bool = True

    @cached_property
    def columns(self) -> frozenset[str]:
        """The column's name."""
        return frozenset(self.path[:1])

    def sql(self, alias: str | None = None) -> str:
        """Return the quoted name."""
        name = quote_identifier(self.path[0])
        qualified = f"{quote_identifier(alias)}.{name}" if alias else name
        text = qualified + "".join(f"[{quote_text(field)}]" for field in self.path[1:])
        if self.hidden and pa.types.is_floating(self.type):
            return f"nanvl({text}, {typed_literal(float('nan'), self.type)})"
        return text


@dataclass(frozen=True)
class Apply(Expression):
    """An operator or function: a template of SQL such as `({0} < {1})`, and its arguments."""

    template: str
    arguments: tuple[Expression, ...]

    @property
    def parts(self) -> Sequence[Expression]:
        """The arguments."""
        return self.arguments

    def sql(self, alias: str | None = None) -> str:
        """Return the template filled in."""
        return self.template.format(*(argument.sql(alias) for argument in self.arguments))


@dataclass(frozen=True)
class Logic(Expression):
    """AND or OR of two or more conditions."""

    operator: str
    items: tuple[Expression, ...]

    @property
    def parts(self) -> Sequence[Expression]:
        """The conditions."""
        return self.items

    def sql(self, alias: str | None = None) -> str:
        """Return a balanced tree: the engine's planner recurses once per level, and lists may be long."""
        texts = [item.sql(alias) for item in self.items]
        while len(texts) > 1:
            pairs = [texts[start : start + 2] for start in range(0, len(texts), 2)]
            texts = [f"({f' {self.operator} '.join(pair)})" if len(pair) == 2 else pair[0] for pair in pairs]
        return texts[0]


@dataclass(frozen=True)
class Not(Expression):
    """The negation of a condition."""

    item: Expression

    @property
    def parts(self) -> Sequence[Expression]:
        """The condition."""
        return (self.item,)

    def sql(self, alias: str | None = None) -> str:
        """Return the negated condition."""
        return f"(NOT {self.item.sql(alias)})"


@dataclass(frozen=True)
class Case(Expression):
    """CASE WHEN; without a default the value is NULL where no condition is true."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None

    @property
    def parts(self) -> Sequence[Expression]:
        """Conditions and values."""
        pairs = [part for branch in self.branches for part in branch]
        return pairs if self.default is None else [*pairs, self.default]

    @cached_property
    def holds_null(self) -> bool:
        """Whether NULL is a possible value by design; the engine turns a boolean CASE into AND and OR."""
        missing = self.default is None and self.type == BOOLEAN
        return missing or any(part.holds_null for part in self.parts)

    def sql(self, alias: str | None = None) -> str:
        """Return the CASE."""
        pairs = " ".join(f"WHEN {when.sql(alias)} THEN {then.sql(alias)}" for when, then in self.branches)
        otherwise = "" if self.default is None else f" ELSE {self.default.sql(alias)}"
        return f"(CASE {pairs}{otherwise} END)"


_IS_NULL, _IS_NOT_NULL = "({0} IS NULL)", "({0} IS NOT NULL)"
_OPPOSITES = {_IS_NULL: _IS_NOT_NULL, _IS_NOT_NULL: _IS_NULL}
TRUE = Literal(BOOLEAN, True)
FALSE = Literal(BOOLEAN, False)
UNKNOWN = Literal(BOOLEAN, None)


def all_of(items: Iterable[Expression]) -> Expression:
    """Return the conjunction, with constants folded."""
    return _joined("AND", items, neutral=TRUE, deciding=FALSE)


def any_of(items: Iterable[Expression]) -> Expression:
    """Return the disjunction, with constants folded."""
    return _joined("OR", items, neutral=FALSE, deciding=TRUE)


def negation(item: Expression) -> Expression:
    """Return the negation, with constants folded."""
    if isinstance(item, Literal):
        return item if item.value is None else Literal(BOOLEAN, not item.value)
    if isinstance(item, Apply) and (opposite := _OPPOSITES.get(item.template)):
        return Apply(BOOLEAN, opposite, item.arguments)
    return item.item if isinstance(item, Not) else Not(BOOLEAN, item)


def case_of(
    branches: Iterable[tuple[Expression, Expression]], default: Expression | None, data_type: pa.DataType
) -> Expression:
    """Return the CASE without branches that cannot be taken and, unless boolean, without NULL values."""
    kept: list[tuple[Expression, Expression]] = []
    blocked: list[Expression] = []  # conditions that led to NULL: later branches need them to be not true
    for when, then in [*branches, (TRUE, default or Literal(data_type, None))]:
        condition = all_of([truth(when), *blocked])
        if condition == FALSE:
            continue
        if data_type != BOOLEAN and _is_null(then):
            blocked.append(_not_true(condition))
        else:
            kept.append((condition, then))
        if condition == TRUE:
            break
    return _case(kept, data_type)


def is_null(item: Expression) -> Expression:
    """Return the condition that the value is NULL."""
    operand = settled(item)
    if isinstance(operand, Literal):
        return TRUE if operand.value is None else FALSE
    return Apply(BOOLEAN, _IS_NULL, (operand,))


def is_true(item: Expression) -> Expression:
    """Return the condition, never NULL, that `item` is true."""
    condition = truth(item)
    return condition if isinstance(condition, Literal) else Apply(BOOLEAN, "({0} IS TRUE)", (condition,))


def unless_null(item: Expression, *, value: bool) -> Expression:
    """Return the constant where `item` is not NULL, and NULL where it is."""
    if value:
        return any_of([negation(is_null(item)), UNKNOWN])
    return all_of([is_null(item), UNKNOWN])


def truth(item: Expression) -> Expression:
    """Return a condition without NULL literals that is true exactly where `item` is true."""
    if not item.holds_null:
        return item
    match item:
        case Logic(operator="AND"):
            return all_of(truth(part) for part in item.items)
        case Logic():
            return any_of(truth(part) for part in item.items)
        case Not():
            return falsehood(item.item)
        case Case():
            return _case([(when, truth(then)) for when, then in _every_branch(item)], BOOLEAN)
        case _:
            return FALSE


def falsehood(item: Expression) -> Expression:
    """Return a condition without NULL literals that is true exactly where `item` is false."""
    if not item.holds_null:
        return negation(item)
    match item:
        case Logic(operator="AND"):
            return any_of(falsehood(part) for part in item.items)
        case Logic():
            return all_of(falsehood(part) for part in item.items)
        case Not():
            return truth(item.item)
        case Case():
            return _case([(when, falsehood(then)) for when, then in _every_branch(item)], BOOLEAN)
        case _:
            return FALSE


def guarded(condition: Expression) -> Expression:
    """Return the condition in a form that the engine's optimizer can fold to false but never to NULL.

    Only comparisons of columns with values stay bare: they cannot fold, and file statistics are used through them.
    """
    if isinstance(condition, Logic) and condition.operator == "AND":
        return all_of(guarded(item) for item in condition.items)
    return condition if isinstance(condition, Literal) or _is_plain(condition) else is_true(condition)


def settled(item: Expression) -> Expression:
    """Return the same three-valued value without NULL literals, for use as an operand."""
    if item.type != BOOLEAN or not item.holds_null or isinstance(item, Literal):
        return item
    # Numbers, since a CASE of booleans is turned into AND and OR with a NULL literal by the engine's optimizer.
    one, zero = Literal(pa.int64(), 1), Literal(pa.int64(), 0)
    number = case_of([(truth(item), one), (falsehood(item), zero)], None, pa.int64())
    return UNKNOWN if isinstance(number, Literal) else Apply(BOOLEAN, "({0} = 1)", (number,))


def _joined(operator: str, items: Iterable[Expression], neutral: Literal, deciding: Literal) -> Expression:
    kept: dict[Expression, None] = {}
    for item in items:
        inner = item.items if isinstance(item, Logic) and item.operator == operator else (item,)
        kept.update(dict.fromkeys(part for part in inner if part != neutral))
    if deciding in kept:
        return deciding
    if not kept:
        return neutral
    return next(iter(kept)) if len(kept) == 1 else Logic(BOOLEAN, operator, tuple(kept))


def _case(branches: list[tuple[Expression, Expression]], data_type: pa.DataType) -> Expression:
    default = None
    if branches and branches[-1][0] == TRUE:
        default = branches.pop()[1]
    if not branches:
        return default or Literal(data_type, None)
    if default is not None and all(value == default for _, value in branches):
        return default
    return Case(data_type, tuple(branches), default)


def _every_branch(case: Case) -> list[tuple[Expression, Expression]]:
    return [*case.branches, (TRUE, case.default or UNKNOWN)]


def _is_plain(item: Expression) -> bool:
    match item:
        case Logic() | Not():
            return all(_is_plain(part) for part in item.parts)
        case Apply():
            column, *values = item.arguments
            # Not two columns: of two partition columns, the engine takes any comparison for true.
            return isinstance(column, Column) and all(isinstance(value, Literal) for value in values)
        case _:
            return isinstance(item, Column)


def _is_null(item: Expression) -> bool:
    return isinstance(item, Literal) and item.value is None


def _not_true(condition: Expression) -> Expression:
    return negation(is_true(condition))
