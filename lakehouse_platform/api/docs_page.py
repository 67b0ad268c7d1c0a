"""The page that shows `/openapi.json` to people: three small files of ours, and nothing from anywhere else."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from lakehouse_platform.api.heads import readable

# Only what this server itself sends, and no script or style inside the page.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)


@readable(router, "/docs")
async def page() -> Response:
    """Return the page."""
    return _file("docs.html", "text/html")


@readable(router, "/docs/script.js")
async def script() -> Response:
    """Return its script."""
    return _file("script.js", "text/javascript")


@readable(router, "/docs/style.css")
async def style() -> Response:
    """Return its style."""
    return _file("style.css", "text/css")


def _file(name: str, media_type: str) -> Response:
    return Response(_read(name), media_type=media_type, headers={"content-security-policy": _POLICY})


@cache
def _read(name: str) -> bytes:
    return (files("lakehouse_platform.api") / "pages" / name).read_bytes()
