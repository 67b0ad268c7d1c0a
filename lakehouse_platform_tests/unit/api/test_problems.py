"""One shape for every refusal, and a status for every error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from lakehouse_platform import errors
from lakehouse_platform.api.problems import (
    STATUS_OF,
    ProblemBody,
    Refusal,
    problem_of,
    problem_of_fields,
    problem_of_framework,
    refused,
    status_of,
)
from lakehouse_platform_tests.support.http_server import LiveHttp

GROUPS = {errors.LakehouseError, *errors.LakehouseError.__subclasses__()}


def _classes(cls: type[errors.LakehouseError]) -> Iterator[type[errors.LakehouseError]]:
    for child in cls.__subclasses__():
        yield child
        yield from _classes(child)


RAISED = sorted(set(_classes(errors.LakehouseError)) - GROUPS, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", RAISED)
def test_every_error_that_is_raised_chose_its_status(cls: type[errors.LakehouseError]) -> None:
    assert cls in STATUS_OF


def test_no_group_and_no_stranger_stands_in_the_table() -> None:
    assert set(STATUS_OF) == set(RAISED)


def test_no_refusal_of_http_has_the_code_of_an_error_with_another_status() -> None:
    codes = {cls.code: status_of(cls) for cls in RAISED}
    assert {refusal.code for refusal in Refusal} & set(codes) == set()


def test_a_problem_says_what_the_error_says() -> None:
    error = errors.InvalidArgumentError("Too low.", limit=0, allowed={1, 2}, ratio=float("nan"))
    told = problem_of(error)
    body = json.loads(told.body("r1"))
    assert body == {
        "type": "urn:lakehouse:error:invalid_argument", "title": "Invalid argument", "status": 422,
        "detail": "Too low.", "code": "invalid_argument", "request_id": "r1", "limit": 0, "allowed": [1, 2],
        "ratio": "nan",
    }  # fmt: skip
    ProblemBody.model_validate(body)


def test_details_never_stand_in_for_the_fields_of_a_problem() -> None:
    told = json.loads(problem_of(errors.InvalidArgumentError("Wrong.", status="pending")).body(None))
    assert told["status"] == 422


def test_whose_refresh_token_was_used_twice_is_not_told() -> None:
    told = problem_of(errors.TokenReuseError("Used before.", user_id="u1"))
    assert told.status is HTTPStatus.UNAUTHORIZED
    assert b"u1" not in told.body(None)


def test_what_is_limited_says_when_to_come_back() -> None:
    told = problem_of(errors.RateLimitedError("Too many.", retry_after=0.2))
    assert (told.status, told.headers["retry-after"]) == (429, "1")
    assert problem_of(errors.StorageUnavailableError("Away.")).headers["retry-after"] == "1"


def test_nobody_is_asked_to_sign_in_where_somebody_is_refused() -> None:
    error = errors.PermissionDeniedError("No.")
    assert problem_of(error).status == 403
    told = problem_of(error, is_signed_in=False)
    assert (told.status, told.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize(
    "error",
    [
        errors.StorageIoError("The disk /data/lake failed.", path="/data/lake"),
        errors.StoragePermissionError("No access to /data/lake.", path="/data/lake"),
        errors.AuditWriteFailedError("/data/lake is full.", path="/data/lake"),
        errors.ConfigError("The key in /data/lake is short.", path="/data/lake"),
    ],
)
def test_where_things_are_on_the_server_is_not_told(error: errors.LakehouseError) -> None:
    assert b"/data" not in problem_of(error).body("r1")


def test_wrong_fields_are_named_and_what_was_sent_is_not() -> None:
    told = problem_of_fields(
        [{"loc": ("body", "password"), "msg": "Input should be a valid string", "input": "hunter2"}]
    )
    body = told.body(None)
    assert b"body.password" in body
    assert b"hunter2" not in body


def test_a_route_refuses_in_the_same_shape() -> None:
    told = problem_of_framework(refused(Refusal.NOT_ACCEPTABLE, "No such form."))
    assert (told.status, told.code, told.detail) == (406, "not_acceptable", "No such form.")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "no_such_route"),
        ("GET", "/v1/users/", 404, "no_such_route"),
        ("GET", "/v1/users/a%2Fb/c", 404, "no_such_route"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
        ("TRACE", "/healthz", 405, "method_not_allowed"),
        ("POST", "/v1/auth/login", 422, "invalid_request"),
    ],
)
def test_the_framework_refuses_in_the_same_shape(
    shared: LiveHttp, method: str, path: str, status: int, code: str
) -> None:
    answer = shared.client.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    ProblemBody.model_validate(answer.json())


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"text"', b'{"login": 1}', b"\xff", b'{"login": "a", "password": "\\ud800"}',
     b'{"login": "hunter2", "password": ["hunter2"]}', b"[" * 100_000],
)  # fmt: skip
def test_a_body_that_is_none_is_refused_without_being_repeated(shared: LiveHttp, body: bytes) -> None:
    answer = shared.post("/v1/auth/login", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    assert "hunter2" not in answer.text


def test_a_place_of_the_lakehouse_is_left_out_of_messages_and_details() -> None:
    error = errors.TableNotFoundError("There is nothing at /data/lake/rides.", path="/data/lake/rides")
    told = json.loads(problem_of(error, places=["/data/lake"]).body(None))
    assert (told["detail"], told["path"]) == ("There is nothing at …/rides.", "…/rides")
