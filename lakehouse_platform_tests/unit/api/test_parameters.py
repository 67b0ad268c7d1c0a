import time
from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, FastAPI, Query
from fastapi.exceptions import RequestValidationError

from lakehouse_platform.api.parameters import Columns, IdempotencyKey, known_parameters, names_of
from lakehouse_platform_tests.support.asgi import ask


@pytest.fixture
def app() -> FastAPI:
    """A route with some parameters, one of them of a dependency."""
    router = APIRouter(dependencies=[Depends(known_parameters)])

    def deeper(depth: int = 0) -> int:
        return depth

    @router.get("/{table}")
    def read(
        table: str,
        depth: Annotated[int, Depends(deeper)],
        columns: Columns = None,
        other: Annotated[int, Query(alias="an-other")] = 0,
        key: IdempotencyKey = None,
    ) -> list[object]:
        return [table, depth, columns, other, key]

    made = FastAPI()
    made.include_router(router)
    return made


def wrong(app: FastAPI, query: str) -> list[tuple[str, str]]:
    answer = ask(app, "GET", f"/t?{query}")
    assert answer.status_code == 422
    return [(item["loc"][1], item["msg"]) for item in answer.json()["detail"]]


def test_parameters_that_a_route_has_are_taken(app: FastAPI) -> None:
    answer = ask(app, "GET", "/t?depth=2&columns=a&an-other=3", headers={"idempotency-key": "k"})
    assert answer.json() == ["t", 2, "a", 3, "k"]


def test_unknown_and_repeated_parameters_are_named(app: FastAPI) -> None:
    assert wrong(app, "colums=a&other=1") == [("colums", "is unknown here"), ("other", "is unknown here")]
    assert wrong(app, "columns=a&columns=b") == [("columns", "stands there twice")]
    assert wrong(app, "table=x&key=y") == [("table", "is unknown here"), ("key", "is unknown here")]


def test_very_many_parameters_take_little_time(app: FastAPI) -> None:
    began = time.perf_counter()
    wrong(app, "&".join(f"p{number}=" for number in range(5_000)))
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, None),
        ("id", ["id"]),
        ("id,name", ["id", "name"]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a""b"', ['a"b']),
        ("ä b,😀", ["ä b", "😀"]),
    ],
)
def test_a_list_of_columns_is_read_like_a_line_of_csv(text: str | None, names: list[str] | None) -> None:
    assert names_of(text) == names


@pytest.mark.parametrize("text", ["", ",", "a,", ",a", "a,,b", '"a', '"a"b', "a\nb", "a\r\nb", '""'])
def test_what_is_no_list_of_columns_is_refused_under_its_name(text: str) -> None:
    with pytest.raises(RequestValidationError) as refusal:
        names_of(text, "on")
    assert refusal.value.errors()[0]["loc"] == ("query", "on")
