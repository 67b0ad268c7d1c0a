"""The routes, one module for each part of the API."""

from __future__ import annotations

from fastapi import APIRouter

from lakehouse_platform.api.routes import (
    audit,
    auth,
    billing,
    health,
    maintenance,
    me,
    rows,
    service_accounts,
    sql,
    tables,
    users,
    versions,
)

ROUTERS: tuple[APIRouter, ...] = tuple(
    part.router
    for part in (
        health, auth, me, users, service_accounts, audit, billing, tables, rows, versions, sql, maintenance,
    )
)  # fmt: skip
"""In the order of the documentation."""
