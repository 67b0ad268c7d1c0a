"""Refusals of the server as the errors that the services raise in-process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, cast

from lakehouse_platform.client.requests import PROBLEM, Answer
from lakehouse_platform.client.retrying import retry_after
from lakehouse_platform.errors import (
    AuthError,
    InfrastructureError,
    InputError,
    InvalidArgumentError,
    LakehouseError,
    RateLimitedError,
    RowError,
    StorageError,
    UnexpectedAnswerError,
)

# RFC 9457's members and the two of the platform's own; all others are the error's details.
_MEMBERS = frozenset({"type", "title", "status", "detail", "code", "request_id"})
# What a codeless client sees as text of a server it does not know is cut to a line or two.
_LONGEST_WORD = 100
# What the server refuses by the request's description alone; in-process these are arguments that are not allowed.
_WRONG_FIELDS = "invalid_request"
_DEFAULT_WAIT = 1.0


def error_of(answer: Answer) -> LakehouseError:
    """Return the error that an answer tells of: the in-process one, or its nearest group if its code is unknown."""
    if answer.content_type != PROBLEM:
        return foreign(answer)
    problem = _object(answer.body)
    if problem is None or not isinstance(problem.get("code"), str):
        return foreign(answer)
    error = _rebuilt(problem, answer)
    if isinstance(request_id := problem.get("request_id"), str):
        # Not a detail: the same error has none in-process.
        error.add_note(f"Request id: {_word(request_id)}")
    return error


def json_of(answer: Answer) -> Any:
    """Return the JSON value that a good answer holds.

    Raises:
        UnexpectedAnswerError: It holds none.
    """
    if answer.content_type == "application/json":
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise foreign(answer) from error
    raise foreign(answer)


@cache
def classes() -> Mapping[str, type[LakehouseError]]:
    """Return all classes of errors by their codes."""
    return {cls.code: cls for cls in (LakehouseError, *_below(LakehouseError))}


def _below(cls: type[LakehouseError]) -> Iterator[type[LakehouseError]]:
    for child in cls.__subclasses__():
        yield child
        yield from _below(child)


def _rebuilt(problem: Mapping[str, Any], answer: Answer) -> LakehouseError:
    message = problem.get("detail")
    text = message if isinstance(message, str) else f"The server refused with status {answer.status}."
    # `self` and `message` are how the errors name what is no detail.
    details = {key: problem[key] for key in problem if key not in _MEMBERS | {"self", "message"}}
    cls = classes().get(problem["code"])
    if problem["code"] == _WRONG_FIELDS:
        return InvalidArgumentError(_with_reasons(text, details), server_code=_WRONG_FIELDS, **details)
    if cls is None:
        return _group(answer.status)(text, server_code=_word(problem["code"]), **details)
    if issubclass(cls, RowError):
        return _row_error(details) or foreign(answer)
    if issubclass(cls, RateLimitedError):
        return cls(text, **{**details, "retry_after": _wait(details, answer)})
    return cls(text, **details)


def _with_reasons(text: str, details: Mapping[str, Any]) -> str:
    """Return what is told of a request that does not fit, with what is wrong with each field of it."""
    fields = details.get("errors")
    found = cast("list[Any]", fields) if isinstance(fields, list) else []
    told = [
        f"{_word(str(one.get('field')))}: {_word(str(one.get('reason')))}"
        for one in (cast("Mapping[str, Any]", each) for each in found if isinstance(each, Mapping))
    ]
    return f"{text} {'; '.join(told)}." if told else text


def _row_error(details: Mapping[str, Any]) -> RowError | None:
    line, column, reason, offset = (details.get(name) for name in ("line", "column", "reason", "offset"))
    if not (isinstance(line, int) and isinstance(reason, str) and isinstance(offset, int)):
        return None
    return RowError(line, column if isinstance(column, str) else None, reason, offset)


def _wait(details: Mapping[str, Any], answer: Answer) -> float:
    told = details.get("retry_after")
    if isinstance(told, int | float) and not isinstance(told, bool):
        return told
    wish = retry_after(answer)
    return wish if wish is not None else _DEFAULT_WAIT


def _group(status: int) -> type[LakehouseError]:
    """Return the group of errors that a status speaks of; the codes in it are a newer server's."""
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}:
        return AuthError
    if status in {HTTPStatus.CONFLICT, HTTPStatus.GONE, HTTPStatus.PRECONDITION_FAILED}:
        return StorageError
    return InfrastructureError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else InputError


def foreign(answer: Answer) -> UnexpectedAnswerError:
    """Return the error for an answer that no lakehouse server gives; nothing of its body is repeated."""
    kind = _word(answer.content_type) or "no content type"
    if 300 <= answer.status < 400:
        advice = (
            "redirects are not followed, for the request may hold secrets: give the final address as base_url"
        )
    else:
        advice = "check that base_url names a lakehouse server, and the proxies on the way to it"
    return UnexpectedAnswerError(
        f"The answer (status {answer.status}, {kind}) is not one of a lakehouse server; {advice}.",
        status=answer.status,
        content_type=kind,
    )


def _word(text: str) -> str:
    """Return a short text of the server as a message may repeat it."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST_WORD])


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
