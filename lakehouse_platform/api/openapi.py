"""The description of the API for programs: what the framework writes of it, completed by every refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lakehouse_platform.api.problems import MEDIA_TYPE, ProblemBody

_DESCRIPTION = (
    "The tables of a lakehouse, its accounts and its audit log. Send `Authorization: Bearer` with an access token from "
    "`/v1/auth/login` or an API key. Every refusal is a problem (RFC 9457) with a stable `code`. Every answer has an "
    "`X-Request-Id`, which a request may choose itself."
)
_MEANINGS: Mapping[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: "The request cannot be understood.",
    HTTPStatus.UNAUTHORIZED: "Nobody is signed in, or the token or password is refused.",
    HTTPStatus.FORBIDDEN: "Who is signed in may not do this.",
    HTTPStatus.NOT_FOUND: "There is no such thing.",
    HTTPStatus.NOT_ACCEPTABLE: "The answer cannot have a form that the header Accept takes.",
    HTTPStatus.REQUEST_TIMEOUT: "The body arrived too slowly.",
    HTTPStatus.CONFLICT: "It is there already, or another writer was faster.",
    HTTPStatus.GONE: "The version's data files were removed.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body has a form that is not taken.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A value is not allowed; `errors` names the fields if the description says so.",
    HTTPStatus.TOO_MANY_REQUESTS: "A limit is reached: try again after `Retry-After` seconds.",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "The headers are too large.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server failed; its log says more under the request id.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The server is too busy, or its storage does not answer: try again.",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "Rows are sent over HTTP/1.1 only.",
    HTTPStatus.GATEWAY_TIMEOUT: "The answer took too long to begin; it may still be done.",
}
_EVERYWHERE = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_WITH_BODY = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
_SIGNED_IN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
# What signing in and registering refuse without anybody having signed in.
_PUBLIC_AUTH = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT)
_METHODS = frozenset({"get", "put", "post", "delete", "patch", "head", "options"})
_FRAMEWORK_SCHEMAS = ("HTTPValidationError", "ValidationError")


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the whole description, in OpenAPI 3.1."""
    found = get_openapi(title=app.title, version=app.version, routes=app.routes, description=_DESCRIPTION)
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FRAMEWORK_SCHEMAS:
        schemas.pop(name, None)
    reference = "#/components/schemas/{model}"
    problem = ProblemBody.model_json_schema(ref_template=reference)
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    components["responses"] = {str(status.value): _response(status) for status in _MEANINGS}
    for path, operation in _operations(found):
        _complete(path, operation)
    return found


def install(app: FastAPI) -> None:
    """Let the application describe itself with `describe`, made once."""

    def made() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = describe(app)
        return app.openapi_schema

    app.openapi = made


def _operations(found: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            if method in _METHODS:
                yield path, operation


def _complete(path: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    wanted = [*_EVERYWHERE]
    if "requestBody" in operation:
        wanted += _WITH_BODY
    if "security" in operation:
        wanted += _SIGNED_IN
    elif path.startswith("/v1/auth/"):
        wanted += _PUBLIC_AUTH
    for status in wanted:
        responses[str(status.value)] = _reference(status)
    # Statuses that a route names itself have the same shape.
    for status in [HTTPStatus(int(code)) for code in responses if code.isdigit() and int(code) >= 400]:
        if status in _MEANINGS:
            responses[str(status.value)] = _reference(status)
    operation["responses"] = dict(sorted(responses.items()))


def _reference(status: HTTPStatus) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{status.value}"}


def _response(status: HTTPStatus) -> dict[str, Any]:
    headers: dict[str, Any] = {"X-Request-Id": {"schema": {"type": "string"}}}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = {"schema": {"type": "string"}}
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        headers["Retry-After"] = {"schema": {"type": "integer"}}
    return {
        "description": _MEANINGS[status],
        "headers": headers,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
