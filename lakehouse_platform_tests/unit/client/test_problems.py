"""Refusals of the server become the errors that the services raise in-process: code, class, message and details."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lakehouse_platform import errors
from lakehouse_platform.api.problems import STATUS_OF, Refusal, problem, problem_of
from lakehouse_platform.client.problems import classes, error_of, json_of
from lakehouse_platform.client.requests import Answer
from lakehouse_platform.errors import (
    AuditError,
    AuthError,
    InfrastructureError,
    InputError,
    LakehouseError,
    LoginThrottledError,
    RateLimitedError,
    RowError,
    StorageError,
    TokenReuseError,
    UnexpectedAnswerError,
)


def below(cls: type[LakehouseError]) -> Iterator[type[LakehouseError]]:
    for child in cls.__subclasses__():
        yield child
        yield from below(child)


# Groups are never raised.
RAISED = [cls for cls in below(LakehouseError) if cls not in LakehouseError.__subclasses__()]


def example(cls: type[LakehouseError]) -> LakehouseError:
    if issubclass(cls, RowError):
        return cls(3, "price", "'x' is no number", 17)
    if issubclass(cls, RateLimitedError):
        return cls("Too much: wait.", retry_after=2.5, scope="minute")
    return cls("It is so: do this.", table="rides", versions=[1, 2], known=None)


def crossed(error: LakehouseError, request_id: str | None = "r-1") -> LakehouseError:
    """Return the error as the client gets it from the server's own rendering."""
    told = problem_of(error)
    headers = {**told.headers, "content-type": "application/problem+json"}
    return error_of(Answer(told.status, headers, told.body(request_id)))


@pytest.mark.parametrize("cls", RAISED)
def test_every_error_that_the_server_tells_is_the_one_that_it_was(cls: type[LakehouseError]) -> None:
    error = example(cls)
    found = crossed(error)
    assert type(found) is cls
    # What is about the server itself is told in general words.
    if not issubclass(cls, InfrastructureError | AuditError):
        assert found.to_dict() == error.to_dict()
        assert str(found) == str(error)
    assert found.__notes__ == ["Request id: r-1"]


def test_every_class_with_a_status_is_known() -> None:
    assert {cls.code for cls in STATUS_OF} <= set(classes())


def test_a_row_error_has_its_own_attributes_again() -> None:
    found = crossed(example(RowError))
    assert isinstance(found, RowError)
    assert (found.line, found.column, found.reason, found.offset) == (3, "price", "'x' is no number", 17)
    assert isinstance(whole := crossed(RowError(1, None, "it is empty", 0)), RowError)
    assert whole.column is None


def test_how_long_to_wait_comes_along_with_fractions() -> None:
    found = crossed(example(LoginThrottledError))
    assert isinstance(found, LoginThrottledError)
    assert found.retry_after == 2.5


@pytest.mark.parametrize(("headers", "wait"), [({"retry-after": "7"}, 7.0), ({}, 1.0)])
def test_without_a_detail_the_header_says_how_long_to_wait(headers: dict[str, str], wait: float) -> None:
    found = refusal(429, {"code": "rate_limited", "detail": "Wait.", "retry_after": True}, **headers)
    assert isinstance(found, RateLimitedError)
    assert found.retry_after == wait


def test_whose_token_was_used_twice_does_not_cross() -> None:
    found = crossed(TokenReuseError("It was used before.", user_id="u-1"))
    assert dict(found.details) == {}


@pytest.mark.parametrize(
    ("status", "group"),
    [
        (400, InputError), (404, InputError), (405, InputError), (413, InputError), (422, InputError),
        (401, AuthError), (403, AuthError), (429, AuthError),
        (409, StorageError), (410, StorageError), (412, StorageError),
        (500, InfrastructureError), (503, InfrastructureError), (504, InfrastructureError),
    ],
)  # fmt: skip
def test_an_unknown_code_is_an_error_of_its_group(status: int, group: type[LakehouseError]) -> None:
    found = refusal(status, {"code": "invented_later", "detail": "Do this.", "limit": 3})
    assert type(found) is group
    assert found.message == "Do this."
    assert dict(found.details) == {"server_code": "invented_later", "limit": 3}


@pytest.mark.parametrize("kind", Refusal)
def test_what_http_itself_refuses_is_an_error_with_its_text(kind: Refusal) -> None:
    told = problem(kind, "Do it otherwise.")
    found = error_of(Answer(told.status, {"content-type": "application/problem+json"}, told.body("r")))
    assert (found.message, found.details["server_code"]) == ("Do it otherwise.", kind.code)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(502, {"content-type": "text/html"}, b"<html>hush</html>"),
        Answer(404, {"content-type": "text/plain"}, b"hush"),
        Answer(404, {}, b""),
        Answer(500, {"content-type": "application/json"}, b'{"code": "storage_io"}'),
        Answer(500, {"content-type": "application/problem+json"}, b"hush"),
        Answer(500, {"content-type": "application/problem+json"}, b"[1]"),
        Answer(500, {"content-type": "application/problem+json"}, b'{"title": "hush"}'),
        Answer(500, {"content-type": "application/problem+json"}, b"[" * 100_000),
        Answer(500, {"content-type": "application/problem+json"}, b"\xff"),
    ],
)
def test_an_answer_of_somebody_else_is_told_as_such_and_not_repeated(answer: Answer) -> None:
    found = error_of(answer)
    assert type(found) is UnexpectedAnswerError
    assert str(answer.status) in found.message
    assert "base_url" in found.message
    assert "hush" not in str(found.to_dict())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_told_and_not_followed(status: int) -> None:
    found = error_of(Answer(status, {"location": "https://user:hush@elsewhere.example.com/"}))
    assert "redirects are not followed" in found.message
    assert "hush" not in str(found.to_dict())


def test_details_cannot_take_the_place_of_the_message() -> None:
    found = refusal(
        404, {"code": "table_not_found", "detail": "Gone.", "message": "other", "self": 1, "table": "t"}
    )
    assert type(found) is errors.TableNotFoundError
    assert found.message == "Gone."
    assert dict(found.details) == {"table": "t"}


def test_what_the_server_names_itself_is_cut_short_and_printable() -> None:
    found = refusal(500, {"code": "x" * 10_000, "detail": "d", "request_id": "a\x1b[31m\nb" * 100})
    assert len(str(found.details["server_code"])) == 100
    assert found.__notes__[0].isprintable()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, {"content-type": "text/html"}, b"<html>"),
        Answer(200, {"content-type": "application/json"}, b"{"),
        Answer(204, {}, b""),
    ],
)
def test_a_good_answer_that_is_no_json_is_of_somebody_else(answer: Answer) -> None:
    with pytest.raises(UnexpectedAnswerError):
        json_of(answer)


def refusal(status: int, body: dict[str, object], **headers: str) -> LakehouseError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return error_of(
        Answer(status, {**named, "content-type": "application/problem+json"}, json.dumps(body).encode())
    )
