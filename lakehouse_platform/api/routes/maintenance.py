"""Maintenance of a table: fewer and better files, and none that nobody needs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field, StrictBool, StrictInt, StringConstraints

from lakehouse_platform.api.actors import ServerHere
from lakehouse_platform.api.inputs import Body
from lakehouse_platform.api.parameters import TableName, known_parameters
from lakehouse_platform.api.reading import Tables
from lakehouse_platform.api.results import OptimizedView, VacuumedView

router = APIRouter(
    prefix="/v1/tables/{table}", tags=["maintenance"], dependencies=[Depends(known_parameters)]
)

_Text = Annotated[str, StringConstraints(max_length=65_536)]
# As the setting `target_file_mb` allows, and a thousand years.
_MOST_MB = 10_000
_MOST_HOURS = 8_766_000


class Compaction(Body):
    """How to merge small files."""

    target_file_mb: Annotated[StrictInt, Field(ge=1, le=_MOST_MB)] | None = Field(
        default=None, description="Size to aim at, in MB; null for the configured one."
    )
    where: _Text | None = Field(
        default=None, description="Condition over partition columns; null for all files."
    )


_AS_CONFIGURED = Compaction()


class Clustering(Body):
    """How to cluster rows."""

    columns: Annotated[list[_Text], Field(min_length=1, max_length=4096)]


class Vacuuming(Body):
    """Which files to delete."""

    retention_hours: Annotated[StrictInt, Field(ge=0, le=_MOST_HOURS)] | None = Field(
        default=None, description="How long removed files are kept, in hours; null for the configured time."
    )
    dry_run: StrictBool = Field(description="Whether files are only named, not deleted.")


@router.post("/compact", summary="Merge small files")
async def compact(
    table: TableName, tables: Tables, server: ServerHere, body: Compaction = _AS_CONFIGURED
) -> OptimizedView:
    """Merge small files into larger ones; rows stay as they are."""
    done = await server.lanes.writes.run(tables.compact, table, body.target_file_mb, body.where)
    return OptimizedView.model_validate(done)


@router.post("/z-order", summary="Cluster rows by columns")
async def z_order(table: TableName, tables: Tables, server: ServerHere, body: Clustering) -> OptimizedView:
    """Rewrite files so that conditions over the columns leave more of them unread."""
    return OptimizedView.model_validate(await server.lanes.writes.run(tables.z_order, table, body.columns))


@router.post("/vacuum", summary="Delete files that old versions alone need")
async def vacuum(table: TableName, tables: Tables, server: ServerHere, body: Vacuuming) -> VacuumedView:
    """Delete files that only versions older than the retention need, or name them."""
    done = await server.lanes.writes.run(tables.vacuum, table, body.retention_hours, body.dry_run)
    return VacuumedView.model_validate(done)
