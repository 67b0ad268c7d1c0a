"""JSON values into the dataclasses that they stand for."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lakehouse_platform.errors import LakehouseError, UnexpectedAnswerError
from lakehouse_platform.model.times import parse_rfc3339

T = TypeVar("T")


def decoded(cls: type[T], value: object) -> T:
    """Return a JSON object as a dataclass; what the class does not know is left out, for newer servers tell more.

    Raises:
        UnexpectedAnswerError: A field is missing or of another type.
    """
    try:
        return _dataclass(cls, value)
    except (KeyError, TypeError, ValueError, LakehouseError) as error:
        raise UnexpectedAnswerError(
            f"The server's answer is not a {cls.__name__} as this client knows it: check that both are of the same "
            "version.",
            expected=cls.__name__,
        ) from error


def decoded_list(cls: type[T], value: object) -> list[T]:
    """Return a JSON array of objects as dataclasses; see `decoded`."""
    if not isinstance(value, list):
        raise UnexpectedAnswerError(
            f"The server's answer is no list of {cls.__name__}: check that it and this client are of the same "
            "version.",
            expected=cls.__name__,
        )
    return [decoded(cls, item) for item in cast("list[Any]", value)]


def member(value: object, name: str) -> Any:
    """Return a field of a JSON object.

    Raises:
        UnexpectedAnswerError: There is none.
    """
    if isinstance(value, Mapping) and name in value:
        return cast("Mapping[str, Any]", value)[name]
    raise UnexpectedAnswerError(
        f"The server's answer has no {name!r}: check that it and this client are of the same version.",
        expected=name,
    )


def whole_number(value: object) -> int:
    """Return a JSON number that is whole.

    Raises:
        UnexpectedAnswerError: It is none.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise UnexpectedAnswerError(
        "The server's answer has no number where one is due: check that it and this client are of the same version.",
        expected="int",
    )


def text(value: object) -> str:
    """Return a JSON text.

    Raises:
        UnexpectedAnswerError: It is none.
    """
    if isinstance(value, str):
        return value
    raise UnexpectedAnswerError(
        "The server's answer has no text where one is due: check that both are of the same version.",
        expected="str",
    )


def _dataclass(cls: type[T], value: object) -> T:
    if not isinstance(value, Mapping):
        raise TypeError(f"an object is needed for {cls.__name__}")
    given = cast("Mapping[str, Any]", value)
    hints = _hints(cls)
    known: tuple[Field[Any], ...] = fields(cast("Any", cls))
    wanted = [field for field in known if field.name in given or not _has_default(field)]
    return cls(**{field.name: _value(hints[field.name], given[field.name]) for field in wanted})


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls)


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _value(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        (inner,) = (part for part in arguments if part is not types.NoneType)
        return None if value is None else _value(inner, value)
    if kind is Any:
        return value
    if origin is tuple:
        return tuple(_value(arguments[0], item) for item in _checked(list, value))
    if origin is not None:
        return _checked(Mapping, value)
    if is_dataclass(kind):
        return _dataclass(cast("type[Any]", kind), value)
    if kind is datetime:
        return parse_rfc3339(_checked(str, value))
    if issubclass(kind, Enum):
        return kind(value)
    return _checked(float | int if kind is float else kind, value)


def _checked(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{kind} is needed")
    return value
