"""The limits of a query: the caller's, within the configured ones."""

from __future__ import annotations

from typing import TypeVar

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.sql import SqlLimits

_N = TypeVar("_N", int, float)


def sql_limits(
    config: LakehouseConfig, max_rows: int | None = None, timeout: float | None = None
) -> SqlLimits:
    """Return the limits of one query; a caller may narrow the configured limits, not widen them."""
    return SqlLimits(
        max_rows=_narrower(max_rows, config.sql_max_rows),
        memory_mb=config.sql_memory_mb,
        timeout_seconds=_narrower(timeout, config.sql_timeout_seconds),
    )


def _narrower(asked: _N | None, configured: _N | None) -> _N | None:
    given = [limit for limit in (asked, configured) if limit is not None]
    return min(given) if given else None
