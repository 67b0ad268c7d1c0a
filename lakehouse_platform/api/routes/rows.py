"""The rows of a table: read, added, replaced, changed, merged and deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field, StringConstraints

from lakehouse_platform.api.actors import ServerHere
from lakehouse_platform.api.bodies import Limits, sent_rows
from lakehouse_platform.api.described import rows_in, rows_out
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import Body
from lakehouse_platform.api.parameters import (
    Columns,
    Evolve,
    IdempotencyKey,
    Limit,
    NeededWhere,
    TableName,
    Timestamp,
    Version,
    Where,
    known_parameters,
    names_of,
)
from lakehouse_platform.api.reading import AskedRows, Tables
from lakehouse_platform.api.results import DeletedView, MergedView, UpdatedView, WrittenView
from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.services.tables import TableAccess

router = APIRouter(prefix="/v1/tables/{table}", tags=["rows"], dependencies=[Depends(known_parameters)])

_Expression = Annotated[str, StringConstraints(max_length=65_536)]


async def _writable(table: TableName, tables: Tables, server: ServerHere) -> TableAccess:
    """Return the tables, unless who asks may not write: then not a byte of the body is taken."""
    await server.lanes.work.run(tables.check_may_write, table)
    return tables


_Writable = Annotated[TableAccess, Depends(_writable)]


class Changes(Body):
    """What to change in which rows."""

    assignments: dict[_Expression, _Expression] = Field(
        alias="set",
        min_length=1,
        max_length=4096,
        description="New values by column, as expressions.",
        examples=[{"price": "price * 1.1", "note": "'sale'"}],
    )
    where: _Expression | None = Field(
        default=None, description="Condition that the rows fulfil; null for all."
    )


@readable(router, "/rows", summary="Read rows", response_class=Response, responses=rows_out())
async def read_rows(
    table: TableName,
    asked: AskedRows,
    columns: Columns = None,
    where: Where = None,
    limit: Limit = None,
    version: Version = None,
    timestamp: Timestamp = None,
) -> Response:
    """Return rows of a table at one version; their order is not defined."""
    names = names_of(columns)
    return await asked.answer(
        lambda: asked.tables.scan(table, names, where, limit, version=version, timestamp=timestamp)
    )


@router.post(
    "/rows",
    status_code=201,
    summary="Add rows",
    openapi_extra=rows_in(),
)
async def append_rows(
    table: TableName,
    request: Request,
    tables: _Writable,
    server: ServerHere,
    evolve: Evolve = False,
    idempotency_key: IdempotencyKey = None,
) -> WrittenView:
    """Add all rows of the body in one commit, or none."""
    async with sent_rows(request, Limits.of(server.lakehouse.config), server.lanes.writes) as rows:
        done = await server.lanes.writes.run(
            tables.append, table, rows, evolve=evolve, idempotency_key=idempotency_key
        )
    return WrittenView.model_validate(done)


@router.put(
    "/rows",
    summary="Replace rows",
    openapi_extra=rows_in(),
)
async def overwrite_rows(
    table: TableName,
    request: Request,
    tables: _Writable,
    server: ServerHere,
    where: Where = None,
    evolve: Evolve = False,
    idempotency_key: IdempotencyKey = None,
) -> WrittenView:
    """Replace all rows, or those that fulfil a condition, by those of the body, in one commit."""
    if where is not None and evolve:
        raise InvalidArgumentError("Columns are added when all rows are replaced: leave out where or evolve.")
    async with sent_rows(request, Limits.of(server.lakehouse.config), server.lanes.writes) as rows:
        if where is not None:
            done = await server.lanes.writes.run(
                tables.overwrite_where, table, where, rows, idempotency_key=idempotency_key
            )
        else:
            done = await server.lanes.writes.run(
                tables.overwrite, table, rows, evolve=evolve, idempotency_key=idempotency_key
            )
    return WrittenView.model_validate(done)


@router.delete("/rows", summary="Delete rows")
async def delete_rows(
    table: TableName,
    where: NeededWhere,
    tables: Tables,
    server: ServerHere,
    idempotency_key: IdempotencyKey = None,
) -> DeletedView:
    """Delete the rows that fulfil a condition; those for which it is NULL stay."""
    done = await server.lanes.writes.run(tables.delete, table, where, idempotency_key=idempotency_key)
    return DeletedView.model_validate(done)


@router.patch("/rows", summary="Change rows")
async def update_rows(
    table: TableName,
    body: Changes,
    tables: Tables,
    server: ServerHere,
    idempotency_key: IdempotencyKey = None,
) -> UpdatedView:
    """Set columns to expressions, in all rows or in those that fulfil a condition."""
    done = await server.lanes.writes.run(
        tables.update, table, body.assignments, body.where, idempotency_key=idempotency_key
    )
    return UpdatedView.model_validate(done)


@router.post(
    "/merge",
    summary="Merge rows by key",
    openapi_extra=rows_in(),
)
async def merge_rows(
    table: TableName,
    request: Request,
    tables: _Writable,
    server: ServerHere,
    on: Columns = None,
    idempotency_key: IdempotencyKey = None,
) -> MergedView:
    """Insert, update and delete by key in one commit.

    A field `_op` of a row may say INSERT, UPDATE, DELETE or UPSERT, which is the default. A column that a row leaves
    out keeps its value when the row updates.
    """
    names = names_of(on, "on")
    async with sent_rows(request, Limits.of(server.lakehouse.config), server.lanes.writes) as rows:
        done = await server.lanes.writes.run(
            tables.merge, table, rows, names, idempotency_key=idempotency_key
        )
    return MergedView.model_validate(done)
