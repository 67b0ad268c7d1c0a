"""The application: layers, routes and answers to what goes wrong, put together for one lakehouse."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from lakehouse_platform.api import docs_page, openapi
from lakehouse_platform.api.actors import Server
from lakehouse_platform.api.addresses import Proxies
from lakehouse_platform.api.lanes import Lanes
from lakehouse_platform.api.limits import Limited, RequestLimits
from lakehouse_platform.api.metrics import Metrics
from lakehouse_platform.api.problems import (
    Problem,
    Refusal,
    problem,
    problem_of,
    problem_of_fields,
    problem_of_framework,
    status_of,
)
from lakehouse_platform.api.readiness import Readiness
from lakehouse_platform.api.requests import Requests, request_id_of
from lakehouse_platform.api.routes import ROUTERS
from lakehouse_platform.errors import LakehouseError, StorageUnavailableError
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.readiness import is_storage_away, waiting_entries
from lakehouse_platform.settings import LakehouseConfig

_log = logging.getLogger("lakehouse.http")
_ROUTERS = (*ROUTERS, docs_page.router)
_JSON_WANTED = "The body is taken as JSON: say so with the header `Content-Type: application/json`."


def create_app(lakehouse: Lakehouse, config: LakehouseConfig | None = None) -> FastAPI:
    """Return the application that serves a lakehouse; who calls this closes the lakehouse afterwards.

    Args:
        lakehouse: What is served.
        config: The settings; None for the lakehouse's.
    """
    config = config or lakehouse.config
    app = FastAPI(
        title="Lakehouse",
        version=version("lakehouse-platform"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    metrics = Metrics(partial(waiting_entries, lakehouse))
    app.state.server = Server(
        lakehouse, Lanes(), Proxies(config.api_trusted_proxies), Readiness(lakehouse), metrics
    )
    for router in _ROUTERS:
        app.include_router(router)
    openapi.install(app)
    _add_handlers(app, [lakehouse.store.base.uri])
    if config.api_cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.api_cors_origins),
            allow_methods=["*"],
            allow_headers=["*"],
        )
    # The last one added is the outermost.
    app.add_middleware(Limited, limits=RequestLimits.of(config))
    app.add_middleware(metrics.layer)
    app.add_middleware(Requests)
    return app


def _add_handlers(app: FastAPI, places: Sequence[str]) -> None:
    def answer(request: Request, problem: Problem) -> Response:
        request.state.problem_code = problem.code
        return problem.response(request_id_of(request.scope))

    @app.exception_handler(LakehouseError)
    async def _platform(request: Request, error: LakehouseError) -> Response:
        if is_storage_away(error):
            error = StorageUnavailableError(error.message)
        if status_of(type(error)) >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("request %s: %s: %s", request_id_of(request.scope), error.code, error.message)
        is_signed_in = getattr(request.state, "is_signed_in", False)
        return answer(request, problem_of(error, is_signed_in=is_signed_in, places=places))

    @app.exception_handler(RequestValidationError)
    async def _fields(request: Request, error: RequestValidationError) -> Response:
        if _is_unread(request, error):
            return answer(request, problem(Refusal.UNSUPPORTED_MEDIA_TYPE, _JSON_WANTED))
        return answer(request, problem_of_fields(error.errors()))

    @app.exception_handler(HTTPException)
    async def _framework(request: Request, error: HTTPException) -> Response:
        told = problem_of_framework(error)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            told = replace(told, headers={**told.headers, "allow": _methods_of(request)})
        return answer(request, told)


def _is_unread(request: Request, error: RequestValidationError) -> bool:
    """Tell whether a body is wrong only because it does not say that it is JSON, so that it was not read as such."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    return not is_json and any(item["loc"] == ("body",) and item["input"] for item in error.errors())


def _methods_of(request: Request) -> str:
    """Return the methods that a path takes: each is a route of its own, and the framework names those of one."""
    own = [route for router in _ROUTERS for route in router.routes]
    routes = [route for route in [*request.app.routes, *own] if isinstance(route, Route)]
    found = [route.methods or () for route in routes if route.path_regex.match(request.scope["path"])]
    return ", ".join(sorted({method for methods in found for method in methods}))
