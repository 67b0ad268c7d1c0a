"""The versions of a table: its history, what changed between two of them, and the way back to one."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field, StrictInt, StringConstraints

from lakehouse_platform.api.actors import ServerHere
from lakehouse_platform.api.described import problems, rows_out
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import Body
from lakehouse_platform.api.parameters import MOST, WHOLE, NeededVersion, TableName, Version, known_parameters
from lakehouse_platform.api.reading import AskedRows, Tables
from lakehouse_platform.api.results import CommitView, HistoryView, VersionView
from lakehouse_platform.errors import InvalidArgumentError

router = APIRouter(prefix="/v1/tables/{table}", tags=["versions"], dependencies=[Depends(known_parameters)])

_Commits = Annotated[int | None, Query(ge=1, le=MOST, description="The most commits to return.")]


class Restored(Body):
    """What to go back to: a version or a time."""

    version: Annotated[StrictInt, Field(json_schema_extra=WHOLE)] | None = None
    timestamp: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="An RFC 3339 time: the version that was the newest then."
    )

    def wanted(self) -> int | str:
        """Return the version or the time.

        Raises:
            InvalidArgumentError: It is not exactly one.
        """
        one, other = self.version, self.timestamp
        if one is not None and other is None:
            return one
        if one is None and other is not None:
            return other
        raise InvalidArgumentError("Give either version or timestamp: what the table should go back to.")


@readable(router, "/history", summary="List commits")
async def history(
    table: TableName, tables: Tables, server: ServerHere, limit: _Commits = None
) -> HistoryView:
    """Return the newest commits, newest first."""
    found = await server.lanes.work.run(tables.history, table, limit)
    return HistoryView(history=[CommitView.model_validate(commit.to_dict()) for commit in found])


@readable(
    router,
    "/diff",
    summary="Compare two versions",
    response_class=Response,
    responses=rows_out(),
)
async def diff(table: TableName, before: NeededVersion, after: NeededVersion, asked: AskedRows) -> Response:
    """Return the rows that differ between two versions, each with a first column `_change_type`."""
    return await asked.answer(lambda: asked.tables.diff(table, before, after))


@readable(
    router,
    "/changes",
    summary="Read the change data feed",
    response_class=Response,
    responses=rows_out(),
)
async def changes(table: TableName, start: NeededVersion, asked: AskedRows, end: Version = None) -> Response:
    """Return the recorded row changes of a range of versions, both ends included."""
    return await asked.answer(lambda: asked.tables.change_feed(table, start, end))


@router.post("/restore", summary="Go back to an old version", responses=problems(HTTPStatus.GONE))
async def restore(table: TableName, body: Restored, tables: Tables, server: ServerHere) -> VersionView:
    """Make the rows of an old version the newest version; nothing in between is lost."""
    return VersionView(version=await server.lanes.writes.run(tables.restore, table, body.wanted()))
