from http import HTTPStatus
from typing import Any

import pytest

from lakehouse_platform.api.described import problems, rows_in, rows_out
from lakehouse_platform.api.formats import RowForm
from lakehouse_platform_tests.support.http_server import LiveHttp

ROWS_OUT = [
    ("/v1/tables/{table}/rows", "get"),
    ("/v1/tables/{table}/diff", "get"),
    ("/v1/tables/{table}/changes", "get"),
    ("/v1/sql", "post"),
]
ROWS_IN = [
    ("/v1/tables/{table}/rows", "post"),
    ("/v1/tables/{table}/rows", "put"),
    ("/v1/tables/{table}/merge", "post"),
]


@pytest.fixture(scope="module")
def paths(shared: LiveHttp) -> dict[str, Any]:
    found: dict[str, Any] = shared.get("/openapi.json").json()["paths"]
    return found


def test_rows_are_described_in_every_form_both_ways() -> None:
    forms = {form.value for form in RowForm}
    assert set(rows_out()[200]["content"]) == forms
    assert set(rows_in()["requestBody"]["content"]) == forms
    assert problems(HTTPStatus.GONE) == {410: {"description": "Gone"}}


@pytest.mark.parametrize(("path", "method"), ROWS_OUT)
def test_answers_of_rows_are_in_the_document(paths: dict[str, Any], path: str, method: str) -> None:
    responses = paths[path][method]["responses"]
    assert set(responses["200"]["content"]) == {form.value for form in RowForm}
    assert "X-Lakehouse-Version" in responses["200"]["headers"]
    assert {"401", "403", "404", "406", "410", "422", "429", "503", "505"} <= set(responses)
    assert all("$ref" in response for status, response in responses.items() if status != "200")


@pytest.mark.parametrize(("path", "method"), ROWS_IN)
def test_bodies_of_rows_are_in_the_document(paths: dict[str, Any], path: str, method: str) -> None:
    operation = paths[path][method]
    assert set(operation["requestBody"]["content"]) == {form.value for form in RowForm}
    assert {"413", "415"} <= set(operation["responses"])
    headers = {item["name"] for item in operation["parameters"] if item["in"] == "header"}
    assert headers == {"Idempotency-Key", "Content-Encoding"}


def test_every_operation_on_tables_says_what_it_is_for(paths: dict[str, Any]) -> None:
    operations = [
        operation
        for path, methods in paths.items()
        if path.startswith(("/v1/tables", "/v1/sql"))
        for operation in methods.values()
    ]
    assert len(operations) == 24
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        assert operation["security"]
        assert all(item.get("description") for item in operation.get("parameters", []))
