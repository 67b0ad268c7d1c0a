"""Refusals as HTTP says them: one shape for every error (RFC 9457), and one table from error classes to statuses."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from math import ceil
from typing import Any

from fastapi import HTTPException
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException as FrameworkError

from lakehouse_platform import errors

MEDIA_TYPE = "application/problem+json"
# Seconds: what is busy or away now may be back in a moment.
_SOON = "1"
_TYPE_PREFIX = "urn:lakehouse:error:"
# RFC 6750 §3: a refusal for want of a token says which kind is wanted.
_CHALLENGE = {"www-authenticate": "Bearer"}
# Facts behind an error that only the audit log is told: whose refresh token was stolen.
_PRIVATE_DETAILS = frozenset({"user_id"})
# Their messages are for whoever runs the server: they name its files and settings.
_ABOUT_THE_SERVER = (errors.InfrastructureError, errors.AuditError)
_RESERVED = frozenset({"type", "title", "status", "detail", "code", "request_id", "errors"})

# Every class that is raised stands here itself, so that a new one must choose; a test holds it.
STATUS_OF: Mapping[type[errors.LakehouseError], HTTPStatus] = {
    errors.TableNotFoundError: HTTPStatus.NOT_FOUND,
    errors.TableExistsError: HTTPStatus.CONFLICT,
    errors.NotADeltaTableError: HTTPStatus.NOT_FOUND,
    errors.DirectoryNotEmptyError: HTTPStatus.CONFLICT,
    errors.VersionNotFoundError: HTTPStatus.NOT_FOUND,
    errors.TimestampOutOfRangeError: HTTPStatus.NOT_FOUND,
    errors.DataFilesMissingError: HTTPStatus.GONE,
    errors.SchemaMismatchError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.LossyCastError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.ConstraintViolationError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.DuplicateKeyError: HTTPStatus.CONFLICT,
    errors.CommitConflictError: HTTPStatus.CONFLICT,
    errors.CommitOutcomeUnknownError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.TransactionClosedError: HTTPStatus.CONFLICT,
    errors.UnsupportedFeatureError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.DeltaTableError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.InvalidPredicateError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidSqlError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.SqlNotAllowedError: HTTPStatus.FORBIDDEN,
    errors.QueryLimitError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidNameError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidSchemaTextError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidRowsError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.RowError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidTimestampError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidPropertyError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidArgumentError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.IdempotencyKeyReusedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.SourceNotFoundError: HTTPStatus.NOT_FOUND,
    errors.SourceFormatError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.AuthenticationFailedError: HTTPStatus.UNAUTHORIZED,
    errors.InvalidCredentialsError: HTTPStatus.UNAUTHORIZED,
    errors.UserNotFoundError: HTTPStatus.NOT_FOUND,
    errors.TokenExpiredError: HTTPStatus.UNAUTHORIZED,
    errors.TokenInvalidError: HTTPStatus.UNAUTHORIZED,
    errors.TokenReuseError: HTTPStatus.UNAUTHORIZED,
    errors.UserExistsError: HTTPStatus.CONFLICT,
    errors.PasswordTooWeakError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.AccountPendingError: HTTPStatus.FORBIDDEN,
    errors.AccountDisabledError: HTTPStatus.FORBIDDEN,
    errors.PermissionDeniedError: HTTPStatus.FORBIDDEN,
    errors.RateLimitedError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.LoginThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.AuditWriteFailedError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.StorageUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.StoragePermissionError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.StorageIoError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ConfigError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.MountFailedError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ServerUnavailableError: HTTPStatus.BAD_GATEWAY,
    errors.UnexpectedAnswerError: HTTPStatus.BAD_GATEWAY,
    errors.MissingDependencyError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ArrowDataError: HTTPStatus.INTERNAL_SERVER_ERROR,
}


class Refusal(Enum):
    """What HTTP itself refuses, before or beside the platform: code and status."""

    BAD_REQUEST = ("bad_request", HTTPStatus.BAD_REQUEST)
    NO_SUCH_ROUTE = ("no_such_route", HTTPStatus.NOT_FOUND)
    METHOD_NOT_ALLOWED = ("method_not_allowed", HTTPStatus.METHOD_NOT_ALLOWED)
    NOT_ACCEPTABLE = ("not_acceptable", HTTPStatus.NOT_ACCEPTABLE)
    REQUEST_TIMEOUT = ("request_timeout", HTTPStatus.REQUEST_TIMEOUT)
    BODY_TOO_LARGE = ("body_too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    UNSUPPORTED_MEDIA_TYPE = ("unsupported_media_type", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    INVALID_REQUEST = ("invalid_request", HTTPStatus.UNPROCESSABLE_ENTITY)
    HEADERS_TOO_LARGE = ("headers_too_large", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    INTERNAL_ERROR = ("internal_error", HTTPStatus.INTERNAL_SERVER_ERROR)
    TOO_BUSY = ("too_busy", HTTPStatus.SERVICE_UNAVAILABLE)
    NOT_READY = ("not_ready", HTTPStatus.SERVICE_UNAVAILABLE)
    HTTP_VERSION = ("http_version_not_supported", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    ANSWER_TIMEOUT = ("answer_timeout", HTTPStatus.GATEWAY_TIMEOUT)

    @property
    def code(self) -> str:
        """The stable name of the refusal."""
        return self.value[0]

    @property
    def status(self) -> HTTPStatus:
        """Its status."""
        return self.value[1]


# What a status that the framework chose means, by the code of ours for it.
_OF_FRAMEWORK: Mapping[int, Refusal] = {
    HTTPStatus.BAD_REQUEST: Refusal.BAD_REQUEST,
    HTTPStatus.NOT_FOUND: Refusal.NO_SUCH_ROUTE,
    HTTPStatus.METHOD_NOT_ALLOWED: Refusal.METHOD_NOT_ALLOWED,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: Refusal.UNSUPPORTED_MEDIA_TYPE,
}


class FieldProblem(BaseModel):
    """One field that is wrong; what was sent in it is not repeated."""

    field: str = Field(description="Where it stands, such as `body.email` or `query.limit`.")
    reason: str = Field(description="What is wrong with it.")


class ProblemBody(BaseModel):
    """Every refusal has this shape (RFC 9457); the error's own facts stand beside these fields."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="`urn:lakehouse:error:` and the code.")
    title: str = Field(description="The kind of error, in words.")
    status: int = Field(description="The status of the answer.")
    detail: str = Field(description="What is wrong and what to do next.")
    code: str = Field(description="Stable name of the kind of error, as the platform's errors have it.")
    request_id: str | None = Field(description="The request, as the log of the server names it.")
    errors: list[FieldProblem] | None = Field(
        default=None, description="The fields that are wrong (only with the code `invalid_request`)."
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal.

    Attributes:
        code: Stable name of its kind.
        title: The kind in words.
        status: The HTTP status.
        detail: What is wrong and what to do next.
        extra: Facts behind it, in JSON's types.
        headers: Headers that the status asks for.
    """

    code: str
    title: str
    status: int
    detail: str
    extra: Mapping[str, Any]
    headers: Mapping[str, str]

    def body(self, request_id: str | None) -> bytes:
        """Return the problem as JSON text."""
        own = {
            "type": _TYPE_PREFIX + self.code,
            "title": self.title,
            "status": int(self.status),
            "detail": self.detail,
            "code": self.code,
            "request_id": request_id,
        }
        return json.dumps(own | dict(self.extra), allow_nan=False).encode()

    def response(self, request_id: str | None) -> Response:
        """Return the answer that says so."""
        return Response(self.body(request_id), self.status, headers=dict(self.headers), media_type=MEDIA_TYPE)


def status_of(error: type[errors.LakehouseError]) -> HTTPStatus:
    """Return the status of an error class: its own or its nearest ancestor's; 500 for one that has none."""
    return next(
        (STATUS_OF[ancestor] for ancestor in error.__mro__ if ancestor in STATUS_OF),
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )


def problem_of(
    error: errors.LakehouseError, *, is_signed_in: bool = True, places: Sequence[str] = ()
) -> Problem:
    """Return what is told of an error of the platform.

    Args:
        error: The error.
        places: Where the lakehouse is on the server, which is not told: `…` stands for it.
        is_signed_in: Whether the request said who acts: who did not is asked to (401) where others are refused (403).
    """
    status = status_of(type(error))
    if (
        status is HTTPStatus.FORBIDDEN
        and not is_signed_in
        and isinstance(error, errors.PermissionDeniedError)
    ):
        status = HTTPStatus.UNAUTHORIZED
    headers = dict(_CHALLENGE) if status is HTTPStatus.UNAUTHORIZED else {}
    if isinstance(error, errors.RateLimitedError):
        headers["retry-after"] = str(max(1, ceil(error.retry_after)))
    elif status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers["retry-after"] = _SOON
    if isinstance(error, _ABOUT_THE_SERVER):
        return Problem(error.code, _title(error.code), status, _about_the_server(error), {}, headers)
    hidden = _PRIVATE_DETAILS if isinstance(error, errors.TokenReuseError) else frozenset[str]()
    facts = {
        key: _without(_plain(value), places)
        for key, value in error.details.items()
        if key not in hidden | _RESERVED
    }
    return Problem(
        error.code, _title(error.code), status, str(_without(error.message, places)), facts, headers
    )


def _about_the_server(error: errors.LakehouseError) -> str:
    """Return what is told of an error whose message names places on the server: what its class says."""
    meaning = (inspect.getdoc(type(error)) or "").splitlines()[0]
    return f"{meaning} Ask whoever runs the server: its log says more under this request id."


def problem(
    refusal: Refusal,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Problem:
    """Return a refusal of HTTP's own."""
    return Problem(refusal.code, _title(refusal.code), refusal.status, detail, extra or {}, headers or {})


def refused(refusal: Refusal, detail: str) -> HTTPException:
    """Return the exception that a route raises to refuse a request.

    Args:
        refusal: What is refused.
        detail: What is wrong and what to do next.
    """
    # The framework's type says text, and it hands on anything.
    told: Any = {"code": refusal.code, "detail": detail}
    return HTTPException(refusal.status, told)


def problem_of_framework(error: FrameworkError) -> Problem:
    """Return what is told of a refusal of the framework, or of one made with `refused`."""
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["retry-after"] = _SOON
    told: Any = error.detail
    if isinstance(told, dict):
        code = str(told["code"])
        return Problem(code, _title(code), error.status_code, str(told["detail"]), {}, headers)
    refusal = _OF_FRAMEWORK.get(error.status_code, Refusal.BAD_REQUEST)
    return Problem(refusal.code, _title(refusal.code), error.status_code, _advice(refusal), {}, headers)


def problem_of_fields(found: Sequence[Mapping[str, Any]]) -> Problem:
    """Return which fields of a request are wrong; never what was sent in them, which may be a password."""
    wrong = [{"field": _where(item["loc"]), "reason": str(item["msg"])} for item in found[:_MOST_FIELDS]]
    names = ", ".join(str(item["field"]) for item in wrong)
    return problem(
        Refusal.INVALID_REQUEST,
        f"The request does not fit its description: correct {names}.",
        extra={"errors": wrong},
    )


# A request with more wrong fields than these is not explained by naming more of them.
_MOST_FIELDS = 20
_LONGEST_FIELD = 100


def _where(place: Sequence[object]) -> str:
    return ".".join(str(part) for part in place)[:_LONGEST_FIELD]


def _advice(refusal: Refusal) -> str:
    return {
        Refusal.NO_SUCH_ROUTE: "There is nothing under this path: /docs shows what there is.",
        Refusal.METHOD_NOT_ALLOWED: "This path does not take this method: the header Allow names those it takes.",
        Refusal.UNSUPPORTED_MEDIA_TYPE: "The body's content type is not taken here: /docs shows which are.",
    }.get(refusal, "The request cannot be understood: /docs shows how it is written.")


def _title(code: str) -> str:
    return code.replace("_", " ").capitalize()


def _without(value: object, places: Sequence[str]) -> object:
    if not isinstance(value, str):
        return value
    for place in places:
        value = value.replace(place, "…")
    return value


def _plain(value: object) -> object:
    """Return a fact in JSON's types."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)
