"""What routes depend on is found out without a thread: FastAPI sends whatever is not `async` to one and back."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from lakehouse_platform.api.routes import ROUTERS

ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def _below(dependant: Dependant) -> Iterator[object]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _below(dependency)


def _is_async(call: object) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{min(route.methods)} {route.path}")
def test_no_dependency_takes_a_thread(route: APIRoute) -> None:
    assert inspect.iscoroutinefunction(route.endpoint)
    assert [call for call in _below(route.dependant) if not _is_async(call)] == []
