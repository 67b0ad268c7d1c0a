"""Routes that are read from: what answers GET answers HEAD too (RFC 9110 §9.3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


def readable(router: APIRouter, path: str, **described: Any) -> Callable[[_Endpoint], _Endpoint]:
    """Return a decorator that makes a function the route of GET and HEAD.

    Args:
        router: Where the route is.
        path: Its path.
        described: What the router's `get` takes besides.
    """

    def route(endpoint: _Endpoint) -> _Endpoint:
        router.head(path, include_in_schema=False, **described)(endpoint)
        return router.get(path, **described)(endpoint)

    return route
