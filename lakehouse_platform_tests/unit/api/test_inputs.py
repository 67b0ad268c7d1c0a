"""What requests bring is bounded, and what is not known is refused without being repeated."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from lakehouse_platform.api.inputs import Body, Password, Text
from lakehouse_platform.identity.passwords import MAX_PASSWORD_BYTES
from lakehouse_platform_tests.support.http_server import LiveHttp


class Given(Body):
    """A body as routes have them."""

    name: Text
    password: Password


def test_what_fits_comes_through_as_it_was() -> None:
    given = Given.model_validate({"name": " Ada\n", "password": "x" * MAX_PASSWORD_BYTES})
    assert (given.name, len(given.password)) == (" Ada\n", MAX_PASSWORD_BYTES)


@pytest.mark.parametrize(
    "more",
    [
        {"name": "n" * 321},
        {"password": "hunter2" * MAX_PASSWORD_BYTES},
        {"pasword": "hunter2"},
        {"name": None},
        {"name": 7},
    ],
    ids=lambda more: str(more)[:20],
)
def test_what_does_not_fit_is_refused_and_not_repeated(more: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        Given.model_validate({"name": "ada", "password": "hunter2", **more})
    assert "hunter2" not in str(caught.value)


def test_a_password_is_described_as_one() -> None:
    described = Given.model_json_schema()["properties"]["password"]
    assert (described["format"], described["writeOnly"]) == ("password", True)


@pytest.mark.parametrize(
    "path", [f"/v1/users/{'x' * 65}", "/v1/users?limit=0", "/v1/users?limit=1001", "/v1/users?limit=many"]
)
def test_what_stands_in_the_address_is_bounded_too(live: LiveHttp, path: str) -> None:
    assert live.get(path, live.person("ada")).status_code == 422
