"""Requests as values."""

from __future__ import annotations

import pytest

from lakehouse_platform.client.requests import Answer, Request, Send, query, segment
from lakehouse_platform.client.uploads import rows_body
from lakehouse_platform.errors import InvalidArgumentError


@pytest.mark.parametrize("text", ["", ".", ".."])
def test_a_text_that_would_change_the_path_is_no_part_of_one(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        segment(text)


@pytest.mark.parametrize(
    ("text", "quoted"), [("a/b", "a%2Fb"), ("a?b#c", "a%3Fb%23c"), ("ä *", "%C3%A4%20%2A")]
)
def test_a_segment_holds_any_text_as_one(text: str, quoted: str) -> None:
    assert segment(text) == quoted


def test_parameters_without_a_value_are_left_out() -> None:
    assert query(limit=0, where=None, evolve=True, version=3) == (
        ("limit", "0"), ("evolve", "true"), ("version", "3"),
    )  # fmt: skip


def test_nothing_secret_is_in_the_text_of_a_request_or_answer() -> None:
    request = Request(method="POST", path="/v1/auth/login", fields={"password": "hush-hush"})
    assert "hush" not in repr(Send(request, "hush-token"))
    assert "hush" not in repr(Answer(200, {}, b"hush"))


def test_only_reading_and_changes_with_a_key_are_harmless_twice() -> None:
    assert Request(method="GET", path="/v1/tables").is_harmless
    assert Request(method="POST", path="/v1/tables/t/rows", key="k").is_harmless
    assert not Request(method="POST", path="/v1/tables").is_harmless
    assert not Request(method="DELETE", path="/v1/tables/t").is_harmless
    assert not Request(method="GET", path="/", is_single=True).is_harmless


def test_rows_that_can_be_read_again_can_be_sent_again() -> None:
    body = rows_body([{"id": 1}])
    request = Request(method="POST", path="/", rows=body)
    list(body.pieces())
    assert request.can_be_sent


def test_the_media_type_of_an_answer_is_compared_without_its_parameters() -> None:
    assert Answer(200, {"content-type": "Application/JSON; charset=utf-8"}).content_type == "application/json"
    assert Answer(200, {}).content_type == ""
