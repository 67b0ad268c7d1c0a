"""Every operation that the server's own description names, and requests for each: whole ones, and ones with a twist."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from lakehouse_platform_tests.support.http_server import LiveHttp, Person

_METHODS = ("get", "put", "post", "delete", "patch")
# What a field gets that has no example: something that its operation can use, or at least understand.
VALUES: Mapping[str, Any] = {
    "table": "target",
    "name": "made-here",
    "schema": "id:Int64",
    "columns": ["id"],
    "primary_key": [],
    "username": "somebody-new",
    "partition_by": [],
    "email": "somebody.new@example.com",
    "password": "a long and winding passphrase",
    "current_password": "not the password of anybody",
    "new_password": "another passphrase of some length",
    "right": "read",
    "role": "user",
    "tier": "free",
    "per_minute": None,
    "per_day": None,
    "scopes": ["read:target"],
    "constraint": "positive",
    "predicate": "id > 0",
    "query": "SELECT 1 AS one",
    "where": "id = -1",
    "set": {"name": "'x'"},
    "start": "2026-01-01",
    "end": "2026-01-02",
    "before": "0",
    "after": "0",
    "timestamp": None,
    "version": 0,
    "action": "custom",
    "user_id": "00000000-0000-0000-0000-000000000000",
    "session_id": "0" * 32,
    "key_id": "0" * 16,
    "max_rows": 10,
    "timeout": 10,
    "target_file_mb": 64,
    "retention_hours": 200,
    "dry_run": True,
    "moment": "2026-01-01",
    "label": "made here",
    "expires_in_days": 1,
    "login": "somebody",
    "refresh_token": "none",
    "details": "nothing",
    "resource": None,
    "row_count": None,
    "description": "",
    "limit": "1",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request can say something: `path`, `query`, `header` or `body`, and the name there."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path, as the description has it.

    Attributes:
        method: In capitals.
        path: With its parameters in braces.
        needed: Parameters without which it is no request.
        places: Everything that a request for it can say.
        body: Names of the fields of a JSON object that it takes.
        takes_any_fields: Whether its body is a JSON object with fields of any name.
        takes_rows: Whether its body is rows.
        is_public: Whether it needs no sign-in.
    """

    method: str
    path: str
    needed: frozenset[Place]
    places: tuple[Place, ...]
    body: tuple[str, ...]
    takes_rows: bool
    takes_any_fields: bool
    is_public: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def send(
        self, live: LiveHttp, person: Person | None, said: Mapping[Place, Any] = {}, **headers: str
    ) -> httpx.Response:
        """Send a request that is whole but for what is said in some places."""
        values = {place: self._value(place) for place in self.needed} | dict(said)
        path, query = self.path, dict[str, str]()
        sent = {name: _bytes(value) for name, value in (person.headers if person else {}).items()}
        sent |= {name.replace("_", "-"): _bytes(value) for name, value in headers.items()}
        for place, value in values.items():
            if place.kind == "path":
                path = path.replace(f"{{{place.name}}}", _quoted(value))
            elif place.kind == "query":
                query[place.name] = _quoted(value)
            elif place.kind == "header":
                sent[place.name] = _bytes(value)
        if query:
            path += "?" + "&".join(f"{name}={value}" for name, value in query.items())
        content = self._content({place.name: value for place, value in said.items() if place.kind == "body"})
        if content is not None:
            sent.setdefault("content-type", b"application/json")
        return live.client.request(
            self.method,
            path,
            headers=[(name.encode(), value) for name, value in sent.items()],
            content=content,
        )

    def _value(self, place: Place) -> Any:
        # Bills ask for days, changes for versions.
        return 0 if place.name == "start" and "{table}" in self.path else VALUES.get(place.name, "x")

    def _content(self, said: Mapping[str, Any]) -> str | None:
        if self.takes_rows:
            return json.dumps([{"id": 1, "name": "a"}])
        if self.takes_any_fields:
            return json.dumps({"delta.logRetentionDuration": "interval 30 days"})
        if not self.body:
            return None
        values = {name: VALUES[name] for name in self.body if VALUES.get(name) is not None or "per_" in name}
        if "version" in values and "timestamp" in self.body:
            values.pop("timestamp", None)
        return json.dumps(values | dict(said))


@dataclass(frozen=True, slots=True)
class _Description:
    schemas: Mapping[str, Any] = field(repr=False)

    def object(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        schema = content.get("application/json", {}).get("schema", {})
        return self.schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def operations(description: Mapping[str, Any]) -> list[Operation]:
    """Return every operation of a description, in its order."""
    return list(_operations(description))


def _operations(description: Mapping[str, Any]) -> Iterator[Operation]:
    schemas = _Description(description["components"]["schemas"])
    for path, methods in description["paths"].items():
        for method in _METHODS:
            if (told := methods.get(method)) is None:
                continue
            parameters = told.get("parameters", [])
            content = told.get("requestBody", {}).get("content", {})
            taken = schemas.object(content)
            body = tuple(taken.get("properties", {}))
            given = tuple(Place(one["in"], one["name"]) for one in parameters)
            yield Operation(
                method=method.upper(),
                path=path,
                needed=frozenset(Place(one["in"], one["name"]) for one in parameters if one.get("required")),
                places=given + tuple(Place("body", name) for name in body),
                body=body,
                takes_rows="text/csv" in content,
                takes_any_fields=bool(taken.get("additionalProperties")) and not body,
                is_public=not told.get("security"),
            )


def _quoted(value: Any) -> str:
    return quote(_bytes(value), safe="")


def _bytes(value: Any) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")
