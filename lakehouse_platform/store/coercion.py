"""What SQL types may meet, and how: exact comparison with literals, widening, arithmetic.

Literals are compared exactly, in their column's own steps: `id < 2.5` on Int64 becomes `id <= 2`, and a value that the
column cannot hold decides the comparison here. The engine would round it, or fail on it in delete but not in scan.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Any, NoReturn

import deltalake
import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError, InvalidSchemaTextError
from lakehouse_platform.model.schema import type_text
from lakehouse_platform.store.expressions import (
    BOOLEAN,
    FALSE,
    TRUE,
    UNKNOWN,
    Apply,
    Column,
    Expression,
    Literal,
    all_of,
    any_of,
    is_null,
    is_true,
    negation,
    settled,
    unless_null,
)
from lakehouse_platform.store.growth import require_short_text
from lakehouse_platform.store.literals import parse_text, plain_type, sql_cast, to_float32

_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Wide enough for every finite double and 38-digit decimal, exactly.
_EXACT = Context(prec=2000)
_MAX_PRECISION = 38
_INT64_AS_DECIMAL = pa.decimal128(20, 0)
_STRICT_CASTS = {
    "number": "number text boolean",
    "text": "number text boolean time",
    "time": "time text",
    "boolean": "number text",
}


def apply(data_type: pa.DataType, template: str, *arguments: Expression) -> Expression:
    """Return an operation that is NULL when an argument is; constants are computed by the engine at once.

    Raises:
        InvalidPredicateError: The operation fails on its constants, as `1 / 0` does, or its text grows too long.
    """
    given = tuple(settled(argument) for argument in arguments)
    if any(is_null_literal(argument) for argument in given):
        return Literal(data_type, None)
    result = Apply(data_type, template, given)
    require_short_text(result)
    if not all(isinstance(argument, Literal) for argument in given):
        return result
    return Literal(data_type, _computed(result.sql()))


def compare(sign: str, left: Expression, right: Expression) -> Expression:
    """Return the comparison.

    Args:
        sign: `=`, `<>`, `<`, `<=`, `>` or `>=`.
        left: One side.
        right: The other.

    Raises:
        InvalidPredicateError: The types cannot be compared.
    """
    left, right = settled(left), settled(right)
    if is_null_literal(left) or is_null_literal(right):
        return UNKNOWN
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return compare(_FLIPPED[sign], right, left)
    if isinstance(right, Literal):
        return _compare_literal(sign, left, right)
    pair = _unified(left, right)
    if pair is None:
        fail_mismatch("compared with", left, right)
    if left == right:
        # The engine's optimizer turns `a <> a` into `a IS NULL AND NULL`, and then deletes NULL rows of a partition.
        return unless_null(left, value=sign in ("=", "<=", ">="))
    return Apply(BOOLEAN, f"({{0}} {sign} {{1}})", pair)


def distinct(left: Expression, right: Expression) -> Expression:
    """Return the condition, never NULL, that the values differ, with NULL equal to NULL."""
    left, right = settled(left), settled(right)
    if is_null_literal(left) or is_null_literal(right):
        other = right if is_null_literal(left) else left
        return negation(is_null(other))
    equal = compare("=", left, right)
    if isinstance(left, Literal) or isinstance(right, Literal):
        present = all_of([negation(is_null(left)), negation(is_null(right))])
        return negation(all_of([equal, present]))
    return negation(any_of([is_true(equal), all_of([is_null(left), is_null(right)])]))


def contained(item: Expression, options: Iterable[Expression]) -> Expression:
    """Return `item IN (options)`."""
    item = settled(item)
    tests = [compare("=", item, option) for option in options]
    simple = [test for test in tests if _is_equation(test, item)]
    if len(simple) < 2 or pa.types.is_floating(item.type):
        return any_of(tests)
    values = tuple(dict.fromkeys(test.arguments[1] for test in simple if isinstance(test, Apply)))
    places = ", ".join(f"{{{number}}}" for number in range(1, len(values) + 1))
    listed = Apply(BOOLEAN, f"({{0}} IN ({places}))", (item, *values))
    return any_of([listed, *(test for test in tests if not _is_equation(test, item))])


def arithmetic(sign: str, left: Expression, right: Expression) -> Expression:
    """Return `left sign right`, computed in Int64, Float64 or a wide enough decimal.

    Raises:
        InvalidPredicateError: A side is no number, or the result's type would be inexact.
    """
    for side in (left, right):
        if not (is_number(side.type) or pa.types.is_null(side.type)):
            fail_mismatch(f"used with {sign} and", side, right if side is left else left)
    if sign in ("*", "/") and _is_one(right):
        return left  # else the optimizer does it, and may find a comparison of a value with itself
    if sign == "*" and _is_one(left):
        return right
    decimal = any(pa.types.is_decimal(side.type) for side in (left, right))
    if any(_is_real(side) for side in (left, right)) and not decimal:
        return apply(
            pa.float64(), f"({{0}} {sign} {{1}})", widened(left, pa.float64()), widened(right, pa.float64())
        )
    if decimal:
        return _decimal_arithmetic(sign, _as_decimal(left), _as_decimal(right))
    return apply(pa.int64(), f"({{0}} {sign} {{1}})", widened(left, pa.int64()), widened(right, pa.int64()))


def common_type(items: Iterable[Expression]) -> pa.DataType:
    """Return the type that values of CASE or coalesce share; literals follow the others.

    Raises:
        InvalidPredicateError: They share none.
    """
    typed = [item for item in items if not is_null_literal(item)]
    leading = [item for item in typed if not isinstance(item, Literal)] or typed
    if not leading:
        return pa.null()
    result = plain_type(leading[0].type)
    for item in leading[1:]:
        wider = _wider(result, plain_type(item.type))
        if wider is None:
            fail_mismatch("mixed with", leading[0], item)
        result = wider
    return pa.int64() if pa.types.is_integer(result) and len(leading) < len(typed) else result


def widened(item: Expression, target: pa.DataType) -> Expression:
    """Return the value in a type that holds all of its type's values.

    Raises:
        InvalidPredicateError: The type does not, or the literal is not a value of it.
    """
    result = try_widened(item, target)
    if result is None:
        advice = f"write CAST(… AS {type_text(target)}) if losing digits is meant"
        raise InvalidPredicateError(
            f"{_sentence(describe(item))} cannot become {type_text(target)} without loss; {advice}.",
            type=type_text(target),
        )
    return result


def try_widened(item: Expression, target: pa.DataType) -> Expression | None:
    """Return the value in a type that holds all of its type's values, or None."""
    if isinstance(item, Literal):
        return adapted(item, target)
    source = plain_type(item.type)
    if source == plain_type(target):
        return item
    if pa.types.is_date(source) and pa.types.is_timestamp(target):
        return cast_to(item, target)
    if not (is_number(source) and is_number(target)) or _wider(source, target) != target:
        return None
    return cast_to(item, target)


def adapted(item: Literal, target: pa.DataType) -> Literal | None:
    """Return a literal as exactly the same value of another type, or None.

    Raises:
        InvalidPredicateError: A text stands where a date, timestamp or decimal is needed and is none.
    """
    value, source = item.value, item.type
    if value is None:
        return Literal(target, None)
    if plain_type(source) == plain_type(target) and not pa.types.is_floating(source):
        return Literal(target, value)
    if is_number(source) and is_number(target):
        return _adapted_number(value, target)
    if isinstance(value, str) and (pa.types.is_decimal(target) or _is_time(target)):
        return _adapted_text(value, target)
    if isinstance(value, date) and pa.types.is_timestamp(target):
        return _adapted_time(value, target)
    return None


def cast_to(item: Expression, target: pa.DataType) -> Expression:
    """Return `CAST(item AS target)`; a value that does not fit fails when the statement runs.

    Raises:
        InvalidPredicateError: There is no such cast, or a constant does not fit.
    """
    if is_null_literal(item):
        return Literal(target, None)
    if plain_type(item.type) == plain_type(target):
        return item
    if _family(target) not in _STRICT_CASTS.get(_family(item.type), "").split():
        fail_mismatch("cast to", item, Literal(target, None))
    return apply(target, sql_cast("{0}", target), item)


def is_null_literal(item: Expression) -> bool:
    """Tell whether the expression is the literal NULL."""
    return isinstance(item, Literal) and item.value is None


def is_number(data_type: pa.DataType) -> bool:
    """Tell whether the type is an integer, float or decimal."""
    return bool(
        pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
    )


def describe(item: Expression) -> str:
    """Return the expression in words, for messages."""
    if isinstance(item, Column):
        return f"column {'.'.join(item.path)!r} ({type_name(item.type)})"
    if isinstance(item, Literal):
        return (
            f"the {_family(item.type)} {item.value!r}"
            if item.value is not None
            else f"a {type_name(item.type)}"
        )
    return f"an expression of type {type_name(item.type)}"


def type_name(data_type: pa.DataType) -> str:
    """Return the type's text, also for types no table holds."""
    try:
        return type_text(data_type)
    except InvalidSchemaTextError:
        return str(data_type)


def fail_mismatch(verb: str, left: Expression, right: Expression) -> NoReturn:
    """Raise the error that two types do not meet."""
    advice = "write the value in the column's type, or CAST one side"
    if is_number(left.type) and isinstance(right, Literal) and isinstance(right.value, str):
        advice = "write a number without quotes, or CAST the column to String"
    raise InvalidPredicateError(
        f"{_sentence(describe(left))} cannot be {verb} {describe(right)}: {advice}.",
        left=describe(left),
        right=describe(right),
    )


@lru_cache(maxsize=1024)
def _computed(sql: str) -> Any:
    try:
        table = pa.table(deltalake.QueryBuilder().execute(f"SELECT {sql} AS v"))
        return table.column(0)[0].as_py()
    except Exception as error:  # the engine has no narrower class for a failing expression
        reason = str(error).splitlines()[-1] if str(error) else type(error).__name__
        raise InvalidPredicateError(
            f"The constant part {sql} cannot be computed: {reason}.", part=sql
        ) from error


def _compare_literal(sign: str, left: Expression, right: Literal) -> Expression:
    if is_number(left.type) and is_number(right.type):
        return _compare_number(sign, left, right.value)
    value = adapted(right, left.type)
    if value is None and isinstance(left, Literal) and (other := adapted(left, right.type)):
        left, value = other, right
    if value is None:
        fail_mismatch("compared with", left, right)
    if isinstance(left, Literal):
        return TRUE if _PYTHON[sign](left.value, value.value) else FALSE
    return _with_literal(sign, left, value)


def _with_literal(sign: str, left: Expression, value: Literal) -> Expression:
    return Apply(BOOLEAN, f"({{0}} {sign} {{1}})", (left, replace(value, beside_column=True)))


def _compare_number(sign: str, left: Expression, value: int | Decimal | float) -> Expression:
    if pa.types.is_floating(left.type):
        number = _nearest_float(value, left.type)
        if isinstance(left, Literal):
            return TRUE if _PYTHON[sign](_nan_last(float(left.value)), _nan_last(number)) else FALSE
        return _with_literal(sign, left, Literal(left.type, number))
    exact = Decimal("Infinity") if isinstance(value, float) and math.isnan(value) else Decimal(value)
    low, high, step = _grid(left.type)
    if not low <= exact <= high:
        return unless_null(left, value=_PYTHON[sign](0, exact))
    below = exact.quantize(step, ROUND_FLOOR, _EXACT)
    if below != exact and sign in ("=", "<>"):
        return unless_null(left, value=sign == "<>")
    if below != exact and sign in ("<", "<="):
        sign, exact = "<=", below
    elif below != exact:
        sign, exact = ">=", exact.quantize(step, ROUND_CEILING, _EXACT)
    if isinstance(left, Literal):
        return TRUE if _PYTHON[sign](Decimal(left.value), exact) else FALSE
    whole = int(exact) if pa.types.is_integer(left.type) else exact
    return _with_literal(sign, left, Literal(left.type, whole))


def _grid(data_type: pa.DataType) -> tuple[Decimal, Decimal, Decimal]:
    """The least and greatest value of an exact type, and the step between two values."""
    if pa.types.is_integer(data_type):
        high = 2 ** (data_type.bit_width - 1) - 1
        return Decimal(-high - 1), Decimal(high), Decimal(1)
    top = Decimal((0, (9,) * data_type.precision, -data_type.scale))
    return top.copy_negate(), top, Decimal((0, (1,), -data_type.scale))


def _nearest_float(value: int | Decimal | float, data_type: pa.DataType) -> float:
    number = float(value)
    return to_float32(number) if data_type == pa.float32() else number


def _nan_last(value: float) -> tuple[bool, float]:
    """Order floats as the engine and PostgreSQL do: NaN equals itself and is the greatest."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def _is_equation(test: Expression, item: Expression) -> bool:
    return (
        isinstance(test, Apply)
        and test.template == "({0} = {1})"
        and test.arguments[0] == item
        and isinstance(test.arguments[1], Literal)
    )


def _unified(left: Expression, right: Expression) -> tuple[Expression, Expression] | None:
    if plain_type(left.type) == plain_type(right.type):
        return None if pa.types.is_nested(left.type) else (left, right)
    if not (is_number(left.type) and is_number(right.type)):
        return None
    if any(pa.types.is_floating(side.type) for side in (left, right)):
        return cast_to(left, pa.float64()), cast_to(right, pa.float64())
    return left, right


def _wider(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The narrowest type that holds every value of both, or None."""
    if first == second:
        return first
    if not (is_number(first) and is_number(second)):
        return None
    if pa.types.is_integer(first) and pa.types.is_integer(second):
        return max(first, second, key=lambda kind: kind.bit_width)
    if pa.types.is_floating(first) and pa.types.is_floating(second):
        return pa.float64()
    if pa.types.is_floating(first) or pa.types.is_floating(second):
        whole = second if pa.types.is_floating(first) else first
        return pa.float64() if pa.types.is_integer(whole) and whole.bit_width <= 32 else None
    return _wider_decimal(_decimal_of(first), _decimal_of(second))


def _wider_decimal(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return pa.decimal128(whole + scale, scale) if whole + scale <= _MAX_PRECISION else None


def _decimal_of(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(data_type):
        return data_type
    return pa.decimal128({8: 3, 16: 5, 32: 10, 64: 19}[data_type.bit_width], 0)


def _is_real(item: Expression) -> bool:
    return bool(pa.types.is_floating(item.type))


def _is_one(item: Expression) -> bool:
    return isinstance(item, Literal) and item.type == pa.int64() and item.value == 1


def _as_decimal(item: Expression) -> Expression:
    if isinstance(item, Literal) and item.value is not None and not pa.types.is_decimal(item.type):
        exact = Decimal(item.value)
        scale = max(0, -int(exact.as_tuple().exponent))
        width = max(len(exact.as_tuple().digits), scale + 1)
        if width <= _MAX_PRECISION and (result := adapted(item, pa.decimal128(width, scale))):
            return result
    if _is_real(item):
        raise InvalidPredicateError(
            f"{_sentence(describe(item))} cannot be combined with a decimal exactly: CAST the decimal to Float64, "
            "or the other side to a decimal type."
        )
    return cast_to(item, _INT64_AS_DECIMAL) if not pa.types.is_decimal(item.type) else item


def _decimal_arithmetic(sign: str, left: Expression, right: Expression) -> Expression:
    first, second = left.type, right.type
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    precision = whole + scale + 1
    if sign == "*":
        precision, scale = first.precision + second.precision + 1, first.scale + second.scale
    if sign in "/%" or scale > _MAX_PRECISION:
        raise InvalidPredicateError(
            f"The decimal result of {sign} would be inexact: CAST both sides to Float64, or to fewer digits."
        )
    return apply(pa.decimal128(min(precision, _MAX_PRECISION), scale), f"({{0}} {sign} {{1}})", left, right)


def _adapted_number(value: int | Decimal | float, target: pa.DataType) -> Literal | None:
    if pa.types.is_floating(target):
        return Literal(target, _nearest_float(value, target))
    exact = Decimal(value)
    low, high, step = _grid(target)
    if (
        not exact.is_finite()
        or not low <= exact <= high
        or exact.quantize(step, ROUND_FLOOR, _EXACT) != exact
    ):
        return None
    return Literal(target, int(exact) if pa.types.is_integer(target) else exact)


def _adapted_text(value: str, target: pa.DataType) -> Literal | None:
    try:
        parsed = parse_text(value, target)
    except ValueError as error:
        raise InvalidPredicateError(
            f"The text {value!r} is not a {type_name(target)}: {error}.", text=value, type=type_name(target)
        ) from error
    return _adapted_number(parsed, target) if pa.types.is_decimal(target) else Literal(target, parsed)


def _adapted_time(value: date, target: pa.DataType) -> Literal | None:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - the zone follows
    if value.tzinfo and not target.tz:
        return None
    return Literal(target, value.replace(tzinfo=UTC) if target.tz else value)


def _is_time(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def _family(data_type: pa.DataType) -> str:
    if is_number(data_type):
        return "number"
    if _is_time(data_type):
        return "time"
    if data_type == BOOLEAN:
        return "boolean"
    return "text" if plain_type(data_type) == pa.string() else "value"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
