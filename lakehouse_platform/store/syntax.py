"""What the parser of predicates makes of a text: one node for each piece of syntax, with where it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Syntax:
    """A piece of the text.

    Attributes:
        at: Where it begins, counted from 0.
        depth: How many levels of syntax it holds, itself included.
    """

    at: int
    depth: int


@dataclass(frozen=True, slots=True)
class NumberSyntax(Syntax):
    """A number without its sign, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class TextSyntax(Syntax):
    """A text in quotes; `kind` is DATE or TIMESTAMP when that word stands before it, else empty."""

    value: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ConstantSyntax(Syntax):
    """NULL, TRUE, FALSE or bytes (`X'00ff'`)."""

    value: bool | bytes | None


@dataclass(frozen=True, slots=True)
class NameSyntax(Syntax):
    """A column, or a field of a struct column; each part with whether it was quoted."""

    parts: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class OperatorSyntax(Syntax):
    """An operator and its operands: AND and OR take two or more, NOT and NEGATE one, all others two."""

    operator: str
    operands: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class TestSyntax(Syntax):
    """`item IS [NOT] NULL`, `TRUE` or `FALSE`."""

    item: Syntax
    wanted: bool | None
    negated: bool


@dataclass(frozen=True, slots=True)
class InSyntax(Syntax):
    """`item [NOT] IN (options)`."""

    item: Syntax
    options: tuple[Syntax, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class BetweenSyntax(Syntax):
    """`item [NOT] BETWEEN low AND high`."""

    item: Syntax
    low: Syntax
    high: Syntax
    negated: bool


@dataclass(frozen=True, slots=True)
class LikeSyntax(Syntax):
    """`item [NOT] LIKE|ILIKE pattern [ESCAPE escape]`."""

    item: Syntax
    pattern: Syntax
    escape: Syntax | None
    any_case: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class CaseSyntax(Syntax):
    """`CASE [operand] WHEN … THEN … [ELSE default] END`."""

    operand: Syntax | None
    branches: tuple[tuple[Syntax, Syntax], ...]
    default: Syntax | None


@dataclass(frozen=True, slots=True)
class CastSyntax(Syntax):
    """`CAST(item AS type)` or `item::type`."""

    item: Syntax
    type_text: str


@dataclass(frozen=True, slots=True)
class CallSyntax(Syntax):
    """`function(arguments)`; the name is in lower case."""

    function: str
    arguments: tuple[Syntax, ...]
