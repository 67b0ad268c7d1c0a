"""The application: everything is put together, and whatever goes wrong becomes a problem that tells no secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.api.app import create_app
from lakehouse_platform.errors import InvalidArgumentError, LakehouseError, StorageIoError
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform_tests.support.asgi import ask

ORIGIN = {"Origin": "https://app.example"}


def test_every_part_answers(lake: Lakehouse) -> None:
    with lake:
        app = create_app(lake)
        for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
            assert ask(app, "GET", path).status_code == 200, path
        assert ask(app, "GET", "/v1/me").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v2/me", 404), ("GET", "/v1/me/", 404), ("BREW", "/v1/me", 405)]
)
def test_what_there_is_not_is_told_as_a_problem(lake: Lakehouse, method: str, path: str, status: int) -> None:
    answer = ask(create_app(lake), method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_a_field_that_is_not_known_is_named_and_its_value_is_not_repeated(lake: Lakehouse) -> None:
    body = {"login": "ada", "password": "hunter2-hunter2", "pasword": "hunter3-hunter3"}
    answer = ask(create_app(lake), "POST", "/v1/auth/login", json=body)
    assert answer.status_code == 422
    assert "pasword" in answer.text
    assert "hunter" not in answer.text


def _failing(lake: Lakehouse, error: BaseException) -> Any:
    app = create_app(lake)

    @app.get("/failing")
    async def failing() -> None:
        raise error

    return ask(app, "GET", "/failing")


def test_our_errors_keep_their_code_and_say_what_to_do(lake: Lakehouse) -> None:
    answer = _failing(lake, InvalidArgumentError("Choose another one.", limit=3))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_argument")
    assert "Choose another one." in answer.text


@pytest.mark.parametrize("error", [StorageIoError, LakehouseError])
def test_a_failure_of_the_server_tells_no_place_on_its_disk(
    lake: Lakehouse, error: type[LakehouseError], caplog: pytest.LogCaptureFixture
) -> None:
    answer = _failing(lake, error(f"The disk of {lake.store.base.uri} went away."))
    assert answer.status_code >= 500
    assert lake.store.base.uri not in answer.text
    assert answer.headers["x-request-id"] in caplog.text


def test_what_nobody_expected_is_told_by_its_request_only(
    lake: Lakehouse, caplog: pytest.LogCaptureFixture
) -> None:
    answer = _failing(lake, RuntimeError("the secret is hunter2"))
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] in caplog.text


def test_other_origins_are_let_in_where_the_settings_name_them_and_nowhere_else(lake: Lakehouse) -> None:
    config = lake.config.model_copy(update={"api_cors_origins": ("https://app.example",)})
    assert (
        "access-control-allow-origin" not in ask(create_app(lake), "GET", "/healthz", headers=ORIGIN).headers
    )
    app = create_app(lake, config)
    answer = ask(app, "GET", "/healthz", headers=ORIGIN)
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    other = ask(app, "GET", "/healthz", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_limits_are_those_of_the_settings(lake: Lakehouse) -> None:
    config = lake.config.model_copy(update={"api_max_json_mb": 1})
    answer = ask(create_app(lake, config), "POST", "/v1/auth/login", json={"login": "x" * 2**21})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/tables", "GET, HEAD, POST"),
        ("POST", "/v1/tables/rides", "DELETE, GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("GET", "/v1/sql", "POST"),
        ("OPTIONS", "/v1/tables/rides/rows", "DELETE, GET, HEAD, PATCH, POST, PUT"),
    ],
)
def test_all_methods_of_a_path_are_told(lake: Lakehouse, method: str, path: str, allowed: str) -> None:
    answer = ask(create_app(lake), method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_json_that_does_not_say_so_is_told_how_to(lake: Lakehouse, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = ask(create_app(lake), "POST", "/v1/auth/login", content=b'{"login":"ada"}', headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert "Content-Type: application/json" in answer.json()["detail"]


def test_a_storage_that_is_away_is_no_table_that_there_is_not(lake: Lakehouse) -> None:
    app = create_app(lake)
    assert ask(app, "GET", "/readyz").status_code == 200
    place = Path(lake.store.base.uri)
    place.rename(place.with_name("away"))
    asked = ask(app, "POST", "/v1/auth/login", json={"login": "ada", "password": "hunter2-hunter2"})
    assert (asked.status_code, asked.json()["code"]) == (503, "storage_unavailable")
    assert asked.headers["retry-after"] == "1"
    place.with_name("away").rename(place)


def test_a_panic_of_an_engine_is_told_as_a_problem(lake: Lakehouse) -> None:
    class PanicException(BaseException):
        """As pyo3 makes it."""

    answer = _failing(lake, PanicException("deep inside"))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
