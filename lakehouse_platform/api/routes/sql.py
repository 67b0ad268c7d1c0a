"""SQL over all tables that the one who asks may read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import Field, StrictInt, StringConstraints

from lakehouse_platform.api.described import rows_out
from lakehouse_platform.api.inputs import Body
from lakehouse_platform.api.parameters import MOST, known_parameters
from lakehouse_platform.api.reading import AskedRows

router = APIRouter(prefix="/v1", tags=["sql"], dependencies=[Depends(known_parameters)])

# Seconds; a day is longer than any client waits.
_LONGEST = 86_400


class Query(Body):
    """One read-only query."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)] = Field(
        examples=["SELECT city, count(*) AS n FROM people GROUP BY city"]
    )
    max_rows: Annotated[StrictInt, Field(ge=1, le=MOST)] | None = Field(
        default=None, description="With more rows than these the query fails; null for the server's limit."
    )
    timeout: Annotated[float, Field(gt=0, le=_LONGEST)] | None = Field(
        default=None, description="Seconds that it may take; null for the server's limit."
    )


@router.post("/sql", summary="Run a query", response_class=Response, responses=rows_out())
async def run_sql(body: Query, asked: AskedRows) -> Response:
    """Run one SELECT; each table is visible under its name."""
    return await asked.answer(
        lambda: asked.tables.sql(body.query, max_rows=body.max_rows, timeout=body.timeout)
    )
