"""Asks an application without a server: for parts of the HTTP API on their own."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI


def ask(app: FastAPI, method: str, path: str, **more: Any) -> httpx.Response:
    """Return the application's answer to one request."""

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            return await client.request(method, path, **more)

    return asyncio.run(run())
