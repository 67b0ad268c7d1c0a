"""The description for programs is complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from lakehouse_platform.api.routes import ROUTERS
from lakehouse_platform_tests.support.http_server import LiveHttp

# Nobody needs to be signed in to ask whether the server lives, to register or to sign in.
PUBLIC = {"/healthz", "/readyz", "/v1/auth/register", "/v1/auth/login", "/v1/auth/refresh"}


@pytest.fixture(scope="module")
def description(shared: LiveHttp) -> dict[str, Any]:
    return shared.get("/openapi.json").json()


def _operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_route_is_described(description: dict[str, Any]) -> None:
    described = {(path, method.upper()) for path, method, _ in _operations(description)}
    there = {
        (route.path, method)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }
    assert {one for one in there if one[1] != "HEAD"} <= described


def test_every_operation_says_what_it_is_for_and_what_it_answers(description: dict[str, Any]) -> None:
    ids = []
    for path, method, operation in _operations(description):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        assert operation["tags"], where
        ids.append(operation["operationId"])
        successes = [status for status in operation["responses"] if status.startswith("2")]
        assert successes, where
        for status in successes:
            if status != "204":
                assert operation["responses"][status]["content"], where
        for parameter in operation.get("parameters", []):
            assert parameter.get("description") or parameter["schema"].get("description"), (
                f"{where} {parameter['name']}"
            )
    assert len(set(ids)) == len(ids)


def test_every_operation_says_whether_a_token_is_needed(description: dict[str, Any]) -> None:
    public = {path for path, _, operation in _operations(description) if not operation.get("security")}
    assert public == PUBLIC
    scheme = description["components"]["securitySchemes"]["bearer"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_every_refusal_is_described_as_a_problem(description: dict[str, Any]) -> None:
    for path, method, operation in _operations(description):
        refusals = {status for status in operation["responses"] if status >= "400"}
        assert {"422", "429", "500", "503"} <= refusals, f"{method} {path}"
        if operation.get("security"):
            assert {"401", "403"} <= refusals, f"{method} {path}"
        for status in refusals:
            assert operation["responses"][status] == {"$ref": f"#/components/responses/{status}"}
    for answer in description["components"]["responses"].values():
        assert list(answer["content"]) == ["application/problem+json"]
    assert "HTTPValidationError" not in description["components"]["schemas"]


def test_every_reference_leads_somewhere(description: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        if isinstance(value, list):
            for item in value:
                yield from references(item)

    def leads_somewhere(reference: str) -> bool:
        at: Any = description
        for part in reference.removeprefix("#/").split("/"):
            at = at.get(part, {})
        return bool(at)

    found = set(references(description))
    assert len(found) > 20
    assert [reference for reference in found if not leads_somewhere(reference)] == []


def test_no_answer_has_a_field_for_a_secret(description: dict[str, Any]) -> None:
    secret = {"password", "password_hash", "token_hash", "refresh_hash", "key_hash", "salt"}
    for name, schema in description["components"]["schemas"].items():
        if name.endswith("View"):
            assert not secret & set(schema.get("properties", {})), name
