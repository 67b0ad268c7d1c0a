"""From syntax to typed expressions: names are looked up in the schema, operators and literals get their types."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from decimal import Decimal
from functools import singledispatchmethod
from typing import NoReturn

import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError, InvalidSchemaTextError
from lakehouse_platform.model.schema import arrow_type
from lakehouse_platform.store.coercion import (
    apply,
    arithmetic,
    cast_to,
    common_type,
    compare,
    contained,
    describe,
    distinct,
    fail_mismatch,
    is_null_literal,
    is_number,
    type_name,
    widened,
)
from lakehouse_platform.store.expressions import (
    BOOLEAN,
    UNKNOWN,
    Apply,
    Column,
    Expression,
    Literal,
    all_of,
    any_of,
    case_of,
    is_null,
    is_true,
    negation,
)
from lakehouse_platform.store.functions import bind_call
from lakehouse_platform.store.literals import parse_text, plain_type
from lakehouse_platform.store.syntax import (
    BetweenSyntax,
    CallSyntax,
    CaseSyntax,
    CastSyntax,
    ConstantSyntax,
    InSyntax,
    LikeSyntax,
    NameSyntax,
    NumberSyntax,
    OperatorSyntax,
    Syntax,
    TestSyntax,
    TextSyntax,
)

# The engine makes a regular expression of it, of 10 MiB at most: 8 000 characters of any kind fit, 20 000 do not.
_MAX_PATTERN = 4096
_MAX_SIZE = 20_000  # expressions after expansion; the longest text without expansion makes some 16 000
_MAX_NUMBER = 400  # digits or power of ten; the greatest Float64 has 309
_NEGATIVE = "(- {0})"
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_TYPE_WORDS = {
    "double precision": "double",
    "timestamp with time zone": "timestamp",
    "timestamptz": "timestamp",
    "timestamp without time zone": "timestamp_ntz",
    "numeric": "decimal",
    "bytea": "binary",
    "float8": "double",
    "float4": "float",
}


class Binder:
    """Binds syntax to the columns of one table."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def bind(self, syntax: Syntax) -> Expression:
        """Return the typed expression.

        Raises:
            InvalidPredicateError: A name is unknown, types do not meet, or the expression is too large.
        """
        result = self._bind(syntax)
        if result.size > _MAX_SIZE:
            raise InvalidPredicateError(
                f"The expression is too large: {result.size} parts where {_MAX_SIZE} are accepted. "
                "Join with a table of the values instead of listing them.",
                size=result.size,
            )
        return result

    def condition(self, syntax: Syntax) -> Expression:
        """Return a boolean expression.

        Raises:
            InvalidPredicateError: It is not boolean, or `bind` fails.
        """
        result = self.bind(syntax)
        if is_null_literal(result):
            return UNKNOWN
        if result.type != BOOLEAN:
            raise InvalidPredicateError(
                f"A condition is needed, but this is {describe(result)}: compare it with a value, as in x = 1.",
                type=type_name(result.type),
            )
        return result

    @singledispatchmethod
    def _bind(self, syntax: Syntax) -> Expression:
        raise InvalidPredicateError(f"This kind of expression is not accepted: {type(syntax).__name__}.")

    @_bind.register
    def _(self, syntax: NumberSyntax) -> Expression:
        return _number(syntax.text)

    @_bind.register
    def _(self, syntax: TextSyntax) -> Expression:
        if not syntax.kind:
            return Literal(pa.string(), syntax.value)
        return _dated(syntax)

    @_bind.register
    def _(self, syntax: ConstantSyntax) -> Expression:
        if syntax.value is None:
            return Literal(pa.null(), None)
        return Literal(BOOLEAN if isinstance(syntax.value, bool) else pa.binary(), syntax.value)

    @_bind.register
    def _(self, syntax: NameSyntax) -> Expression:
        (first, quoted), *fields = syntax.parts
        names = self._schema.names
        if first not in names:
            _fail_unknown(first, names, "Column", quoted=quoted)
        found = plain_type(self._schema.field(first).type)
        path = [first]
        for name, _ in fields:
            found = _field_type(found, name, path)
            path.append(name)
        return Column(found, tuple(path))

    @_bind.register
    def _(self, syntax: OperatorSyntax) -> Expression:
        operator = syntax.operator
        if operator == "AND":
            return all_of([self.condition(operand) for operand in syntax.operands])
        if operator == "OR":
            return any_of([self.condition(operand) for operand in syntax.operands])
        if operator == "NOT":
            return negation(self.condition(syntax.operands[0]))
        if operator == "NEGATE":
            return self._negative(syntax.operands[0])
        left, right = (self.bind(operand) for operand in syntax.operands)
        return _binary(operator, left, right)

    @_bind.register
    def _(self, syntax: TestSyntax) -> Expression:
        result = self._tested(syntax)
        return negation(result) if syntax.negated else result

    @_bind.register
    def _(self, syntax: InSyntax) -> Expression:
        result = contained(self.bind(syntax.item), [self.bind(option) for option in syntax.options])
        return negation(result) if syntax.negated else result

    @_bind.register
    def _(self, syntax: BetweenSyntax) -> Expression:
        item = self.bind(syntax.item)
        result = all_of(
            [compare(">=", item, self.bind(syntax.low)), compare("<=", item, self.bind(syntax.high))]
        )
        return negation(result) if syntax.negated else result

    @_bind.register
    def _(self, syntax: LikeSyntax) -> Expression:
        escape = self.bind(syntax.escape) if syntax.escape else Literal(pa.string(), "\\")
        result = _like(self.bind(syntax.item), self.bind(syntax.pattern), escape, any_case=syntax.any_case)
        return negation(result) if syntax.negated else result

    @_bind.register
    def _(self, syntax: CaseSyntax) -> Expression:
        values = [self.bind(value) for _, value in syntax.branches]
        default = self.bind(syntax.default) if syntax.default else Literal(pa.null(), None)
        shared = common_type([*values, default])
        operand = self.bind(syntax.operand) if syntax.operand else None
        conditions = [self._case_condition(operand, when) for when, _ in syntax.branches]
        branches = [(when, widened(value, shared)) for when, value in zip(conditions, values, strict=True)]
        return case_of(branches, widened(default, shared), shared)

    @_bind.register
    def _(self, syntax: CastSyntax) -> Expression:
        words = syntax.type_text.lower()
        name, bracket, parameters = words.partition("(")
        try:
            target = arrow_type(_TYPE_WORDS.get(name, name) + bracket + parameters)
        except InvalidSchemaTextError as error:
            raise InvalidPredicateError(f"CAST: {error.message}", type=syntax.type_text) from error
        return cast_to(self.bind(syntax.item), target)

    @_bind.register
    def _(self, syntax: CallSyntax) -> Expression:
        return bind_call(syntax.function, [self.bind(argument) for argument in syntax.arguments])

    def _tested(self, syntax: TestSyntax) -> Expression:
        if syntax.wanted is None:
            return is_null(self.bind(syntax.item))
        condition = self.condition(syntax.item)
        return is_true(condition if syntax.wanted else negation(condition))

    def _case_condition(self, operand: Expression | None, when: Syntax) -> Expression:
        return self.condition(when) if operand is None else compare("=", operand, self.bind(when))

    def _negative(self, syntax: Syntax) -> Expression:
        if isinstance(syntax, NumberSyntax):
            return _number("-" + syntax.text)
        item = self.bind(syntax)
        if not (is_number(item.type) or is_null_literal(item)):
            raise InvalidPredicateError(f"Only numbers have a sign; this is {describe(item)}.")
        if pa.types.is_integer(item.type):
            item = widened(item, pa.int64())
        if isinstance(item, Apply) and item.template == _NEGATIVE:
            return item.arguments[0]
        return apply(item.type, _NEGATIVE, item)


def _binary(operator: str, left: Expression, right: Expression) -> Expression:
    if operator in _COMPARISONS:
        return compare(operator, left, right)
    if operator == "IS DISTINCT FROM":
        return distinct(left, right)
    if operator == "IS NOT DISTINCT FROM":
        return negation(distinct(left, right))
    if operator != "||":
        return arithmetic(operator, left, right)
    for side in (left, right):
        if not is_null_literal(side) and side.type != pa.string():
            fail_mismatch("used with || and", side, right if side is left else left)
    return apply(pa.string(), "({0} || {1})", left, right)


def _like(item: Expression, pattern: Expression, escape: Expression, *, any_case: bool) -> Expression:
    for side in (item, pattern, escape):
        if not is_null_literal(side) and side.type != pa.string():
            fail_mismatch("used with LIKE and", side, pattern if side is item else item)
    if is_null_literal(pattern) or is_null_literal(escape):
        return UNKNOWN
    if not isinstance(pattern, Literal) or not isinstance(escape, Literal) or len(escape.value) > 1:
        raise InvalidPredicateError("LIKE takes a text as its pattern, and ESCAPE a text of one character.")
    if len(pattern.value) > _MAX_PATTERN:
        raise InvalidPredicateError(
            f"The pattern of LIKE has {len(pattern.value)} characters; at most {_MAX_PATTERN} are accepted.",
            length=len(pattern.value),
        )
    canonical = Literal(pa.string(), _canonical_pattern(pattern.value, escape.value))
    return apply(BOOLEAN, f"({{0}} {'ILIKE' if any_case else 'LIKE'} {{1}})", item, canonical)


def _canonical_pattern(pattern: str, escape: str) -> str:
    """The engine knows no escape character but the backslash."""
    result: list[str] = []
    letters = iter(pattern)
    for letter in letters:
        if escape and letter == escape:
            escaped = next(letters, None)
            if escaped is None:
                raise InvalidPredicateError(
                    f"The pattern {pattern!r} ends with its escape character; write it twice to mean itself.",
                    pattern=pattern,
                )
            result.append("\\" + escaped if escaped in "\\%_" else escaped)
        else:
            result.append("\\\\" if letter == "\\" else letter)
    return "".join(result)


def _number(text: str) -> Literal:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > _MAX_NUMBER or len(exponent) > 5 or abs(int(exponent or 0)) > _MAX_NUMBER:
        raise InvalidPredicateError(
            f"The number {text[:30]}… has too many digits; at most {_MAX_NUMBER} are read."
        )
    value = Decimal(text)
    if text.lstrip("-").isdigit() and -(2**63) <= value < 2**63:
        return Literal(pa.int64(), int(value))
    return Literal(pa.float64(), value)


def _dated(syntax: TextSyntax) -> Literal:
    has_zone = (
        syntax.value.strip()[10:].upper().endswith("Z") or "+" in syntax.value or "-" in syntax.value[10:]
    )
    data_type = pa.date32() if syntax.kind == "DATE" else pa.timestamp("us", "UTC" if has_zone else None)
    try:
        return Literal(data_type, parse_text(syntax.value, data_type))
    except ValueError as error:
        raise InvalidPredicateError(f"{syntax.kind} {syntax.value!r}: {error}.", text=syntax.value) from error


def _field_type(data_type: pa.DataType, name: str, path: Sequence[str]) -> pa.DataType:
    if not pa.types.is_struct(data_type):
        raise InvalidPredicateError(
            f"Column {'.'.join(path)!r} is {type_name(data_type)} and has no field {name!r}; "
            f'a column whose name holds a dot is written "{".".join([*path, name])}".',
            column=path[0],
        )
    fields = [field.name for field in data_type]
    if name not in fields:
        _fail_unknown(name, fields, f"Field of {'.'.join(path)!r}", quoted=False)
    return plain_type(data_type.field(name).type)


def _fail_unknown(name: str, known: Sequence[str], what: str, *, quoted: bool) -> NoReturn:
    by_case = [other for other in known if other.lower() == name.lower()]
    close = by_case or difflib.get_close_matches(name, known, n=3)
    if by_case:
        hint = f"names are case-sensitive: write {' or '.join(by_case)}."
    elif close:
        hint = f"did you mean {' or '.join(close)}?"
    elif quoted:
        hint = f"double quotes hold names; a text is written '{name}'. Known: {', '.join(known[:20])}."
    else:
        hint = f"known: {', '.join(known[:20])}."
    raise InvalidPredicateError(f"{what} {name!r} is unknown; {hint}", column=name, close=close)
