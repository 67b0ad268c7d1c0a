"""The functions that predicates and UPDATE expressions may call: those that every door of the engine computes alike."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.coercion import (
    apply,
    cast_to,
    common_type,
    compare,
    describe,
    fail_mismatch,
    is_null_literal,
    is_number,
    widened,
)
from lakehouse_platform.store.expressions import BOOLEAN, Apply, Expression, Literal, case_of, settled
from lakehouse_platform.store.growth import require_short_text
from lakehouse_platform.store.literals import plain_type

_TEXT = pa.string()
_INT32 = pa.int32()
_DATE_UNITS = frozenset({"year", "quarter", "month", "week", "day", "dow", "doy"})
_TIME_UNITS = _DATE_UNITS | {"hour", "minute", "second"}
_TRUNCATIONS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})


@dataclass(frozen=True, slots=True)
class _Signature:
    """A function of fixed types: how the engine spells it, what it takes (`optional` ones may be absent) and gives."""

    spelling: str
    parameters: Sequence[pa.DataType]
    result: pa.DataType
    optional: int = 0


_SIGNATURES = {
    "lower": _Signature("lower", [_TEXT], _TEXT),
    "upper": _Signature("upper", [_TEXT], _TEXT),
    "trim": _Signature("btrim", [_TEXT, _TEXT], _TEXT, optional=1),
    "btrim": _Signature("btrim", [_TEXT, _TEXT], _TEXT, optional=1),
    "ltrim": _Signature("ltrim", [_TEXT, _TEXT], _TEXT, optional=1),
    "rtrim": _Signature("rtrim", [_TEXT, _TEXT], _TEXT, optional=1),
    "substr": _Signature("substr", [_TEXT, pa.int64(), pa.int64()], _TEXT, optional=1),
    "substring": _Signature("substr", [_TEXT, pa.int64(), pa.int64()], _TEXT, optional=1),
    "left": _Signature("left", [_TEXT, pa.int64()], _TEXT),
    "right": _Signature("right", [_TEXT, pa.int64()], _TEXT),
    "replace": _Signature("replace", [_TEXT, _TEXT, _TEXT], _TEXT),
    "strpos": _Signature("strpos", [_TEXT, _TEXT], _INT32),
    "starts_with": _Signature("starts_with", [_TEXT, _TEXT], BOOLEAN),
    "ends_with": _Signature("ends_with", [_TEXT, _TEXT], BOOLEAN),
    "contains": _Signature("contains", [_TEXT, _TEXT], BOOLEAN),
    # delete, update and merge fail on a call spelled "length": "Unable to convert expression to string".
    "length": _Signature("character_length", [_TEXT], _INT32),
    "char_length": _Signature("character_length", [_TEXT], _INT32),
    "character_length": _Signature("character_length", [_TEXT], _INT32),
    "octet_length": _Signature("octet_length", [_TEXT], _INT32),
    "round": _Signature("round", [pa.float64(), pa.int64()], pa.float64(), optional=1),
    "floor": _Signature("floor", [pa.float64()], pa.float64()),
    "ceil": _Signature("ceil", [pa.float64()], pa.float64()),
    "ceiling": _Signature("ceil", [pa.float64()], pa.float64()),
    "isnan": _Signature("isnan", [pa.float64()], BOOLEAN),
}


def bind_call(name: str, arguments: Sequence[Expression]) -> Expression:
    """Return the call of a function by its name in lower case.

    Raises:
        InvalidPredicateError: No such function, or it does not take these arguments.
    """
    if signature := _SIGNATURES.get(name):
        return _call(name, signature, arguments)
    if special := _SPECIAL.get(name):
        return special(name, arguments)
    known = sorted([*_SIGNATURES, *_SPECIAL])
    close = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known functions: {', '.join(known)}."
    raise InvalidPredicateError(f"Function {name}() is not available in predicates; {hint}", function=name)


def _call(name: str, signature: _Signature, arguments: Sequence[Expression]) -> Expression:
    most = len(signature.parameters)
    _check_count(name, arguments, most - signature.optional, most)
    pairs = zip(arguments, signature.parameters, strict=False)
    given = [_argument(name, argument, wanted) for argument, wanted in pairs]
    places = ", ".join(f"{{{number}}}" for number in range(len(given)))
    return apply(signature.result, f"{signature.spelling}({places})", *given)


def _argument(name: str, argument: Expression, wanted: pa.DataType) -> Expression:
    if wanted == pa.float64() and is_number(argument.type):
        return cast_to(argument, wanted)
    if is_number(wanted) and pa.types.is_integer(argument.type):
        return cast_to(argument, wanted)
    if is_null_literal(argument) or plain_type(argument.type) == wanted:
        return argument
    return fail_mismatch(f"given to {name}(), which takes", argument, Literal(wanted, None))


def _absolute(name: str, arguments: Sequence[Expression]) -> Expression:
    _check_count(name, arguments, 1, 1)
    item = arguments[0]
    if not is_number(item.type):
        fail_mismatch(f"given to {name}(), which takes", item, Literal(pa.float64(), None))
    if pa.types.is_integer(item.type):
        item = widened(item, pa.int64())  # abs(-128) does not fit Int8
    return apply(item.type, "abs({0})", item)


def _concatenated(name: str, arguments: Sequence[Expression]) -> Expression:
    """`concat` takes NULL for an empty text."""
    _check_count(name, arguments, 1, None)
    given = [_argument(name, item, _TEXT) for item in arguments if not is_null_literal(item)]
    if not given:
        return Literal(_TEXT, "")
    places = ", ".join(f"{{{number}}}" for number in range(len(given)))
    if all(isinstance(item, Literal) for item in given):
        return apply(_TEXT, f"concat({places})", *given)
    result = Apply(_TEXT, f"concat({places})", tuple(given))
    require_short_text(result)
    return result


def _first_present(name: str, arguments: Sequence[Expression]) -> Expression:
    _check_count(name, arguments, 1, None)
    shared = common_type(arguments)
    given: list[Expression] = []
    for item in map(settled, arguments):
        if not is_null_literal(item):
            given.append(widened(item, shared))
        if isinstance(item, Literal) and not is_null_literal(item):
            break  # what follows a constant is never reached
    if not given:
        return Literal(shared, None)
    places = ", ".join(f"{{{number}}}" for number in range(len(given)))
    return given[0] if len(given) == 1 else Apply(shared, f"coalesce({places})", tuple(given))


def _null_if(name: str, arguments: Sequence[Expression]) -> Expression:
    _check_count(name, arguments, 2, 2)
    item, unwanted = arguments
    return case_of([(compare("=", item, unwanted), Literal(item.type, None))], item, item.type)


def _truncated(name: str, arguments: Sequence[Expression]) -> Expression:
    _check_count(name, arguments, 2, 2)
    unit, item = _unit(name, arguments[0], _TRUNCATIONS), arguments[1]
    if pa.types.is_date(item.type):
        item = cast_to(item, pa.timestamp("us"))
    if not pa.types.is_timestamp(item.type):
        fail_mismatch(f"given to {name}(), which takes", item, Literal(pa.timestamp("us", "UTC"), None))
    return apply(plain_type(item.type), f"date_trunc('{unit}', {{0}})", item)


def _part(name: str, arguments: Sequence[Expression]) -> Expression:
    _check_count(name, arguments, 2, 2)
    item = arguments[1]
    if not (pa.types.is_date(item.type) or pa.types.is_timestamp(item.type)):
        fail_mismatch(f"given to {name}(), which takes", item, Literal(pa.timestamp("us", "UTC"), None))
    unit = _unit(name, arguments[0], _DATE_UNITS if pa.types.is_date(item.type) else _TIME_UNITS)
    return apply(_INT32, f"date_part('{unit}', {{0}})", item)


_SPECIAL: dict[str, Callable[[str, Sequence[Expression]], Expression]] = {
    "abs": _absolute,
    "coalesce": _first_present,
    "concat": _concatenated,
    "date_part": _part,
    "date_trunc": _truncated,
    "nullif": _null_if,
}


def _unit(name: str, argument: Expression, allowed: frozenset[str]) -> str:
    unit = argument.value if isinstance(argument, Literal) else None
    if isinstance(unit, str) and unit.lower() in allowed:
        return unit.lower()
    raise InvalidPredicateError(
        f"{name}() takes one of the units {', '.join(sorted(allowed))} as a text first, not {describe(argument)}.",
        function=name,
    )


def _check_count(name: str, arguments: Sequence[Expression], least: int, most: int | None) -> None:
    if len(arguments) < least or (most is not None and len(arguments) > most):
        wanted = str(least) if least == most else f"{least} to {most}" if most else f"at least {least}"
        raise InvalidPredicateError(
            f"{name}() takes {wanted} argument(s), not {len(arguments)}.", function=name, given=len(arguments)
        )
