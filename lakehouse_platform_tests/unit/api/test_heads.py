import re

from fastapi import APIRouter, FastAPI

from lakehouse_platform.api.heads import readable
from lakehouse_platform_tests.support.asgi import ask
from lakehouse_platform_tests.support.http_server import LiveHttp


def test_a_route_that_is_read_from_answers_get_and_head_and_is_described_once() -> None:
    router = APIRouter()

    @readable(router, "/things", summary="List things")
    def things() -> list[int]:
        return [1, 2]

    app = FastAPI()
    app.include_router(router)
    assert ask(app, "GET", "/things").json() == [1, 2]
    assert ask(app, "HEAD", "/things").status_code == 200
    assert ask(app, "POST", "/things").status_code == 405
    assert list(app.openapi()["paths"]["/things"]) == ["get"]
    assert app.openapi()["paths"]["/things"]["get"]["summary"] == "List things"


def test_whatever_answers_get_answers_head_with_the_same_status(shared: LiveHttp) -> None:
    described = shared.get("/openapi.json").json()["paths"]
    paths = [re.sub(r"{\w+}", "some", path) for path, methods in described.items() if "get" in methods]
    paths.remove("/v1/audit/export")
    assert len(paths) > 20
    for path in [*paths, "/docs", "/docs/script.js"]:
        head = shared.request("HEAD", path)
        assert (head.status_code, head.content) == (shared.get(path).status_code, b""), path
