"""What the OpenAPI document says about rows, beyond what the framework finds out by itself."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from lakehouse_platform.api.answers import VERSION_HEADER
from lakehouse_platform.api.formats import RowForm

_ROW = {"type": "object", "additionalProperties": True, "description": "Values by column."}
_FORMS: Mapping[RowForm, Mapping[str, Any]] = {
    RowForm.JSON: {"type": "array", "items": _ROW},
    RowForm.NDJSON: {"type": "string", "description": "One JSON object per line."},
    RowForm.CSV: {"type": "string", "description": "A header and one line per row (RFC 4180)."},
    RowForm.ARROW: {"type": "string", "format": "binary", "description": "An Arrow IPC stream."},
}
_VERSION = {
    "description": "The version of the table that was read, where it was one.",
    "schema": {"type": "integer", "minimum": 0},
}
Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: HTTPStatus) -> Responses:
    """Return refusals that a route has beside those that all have; `openapi.describe` writes what they mean."""
    return {status.value: {"description": status.phrase} for status in statuses}


def rows_out() -> Responses:
    """Return the description of an answer of rows, and of its own refusals."""
    content = {form.value: {"schema": dict(schema)} for form, schema in _FORMS.items()}
    told = {"description": "The rows.", "content": content, "headers": {VERSION_HEADER: _VERSION}}
    refusals = (HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.GONE, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    return {HTTPStatus.OK.value: told} | problems(*refusals)


def rows_in() -> dict[str, Any]:
    """Return the description of a body of rows."""
    content: dict[str, Any] = {form.value: {"schema": dict(schema)} for form, schema in _FORMS.items()}
    content[RowForm.JSON.value] = {"schema": {"oneOf": [_FORMS[RowForm.JSON], _ROW]}}
    coding = {
        "name": "Content-Encoding",
        "in": "header",
        "required": False,
        "description": "How the body is packed.",
        "schema": {"type": "string", "enum": ["identity", "gzip"]},
    }
    return {"requestBody": {"required": True, "content": content}, "parameters": [coding]}
