"""Tables: which there are, what each is, and changes of what it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import Field, StringConstraints

from lakehouse_platform.api.actors import ServerHere
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import Body
from lakehouse_platform.api.parameters import ConstraintName, TableName, Where, known_parameters
from lakehouse_platform.api.reading import Tables
from lakehouse_platform.api.results import SkippingView, TablesView, TableView, VersionView
from lakehouse_platform.model.schema import Schema

router = APIRouter(prefix="/v1/tables", tags=["tables"], dependencies=[Depends(known_parameters)])

_SchemaText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1_000_000),
    Field(
        description="Columns as `name:Type` with an optional `not null`.",
        examples=["id:Int64 not null,name:String"],
    ),
]
_Text = Annotated[str, StringConstraints(max_length=65_536)]
_Names = Annotated[list[_Text], Field(max_length=4096)]


class NewTable(Body):
    """A table to create."""

    name: _Text
    columns: _SchemaText = Field(alias="schema")
    primary_key: _Names = Field(
        default_factory=list[str], description="Columns of the key that rows are told apart by."
    )
    partition_by: _Names = Field(
        default_factory=list[str], description="Columns whose values each get a directory."
    )
    description: _Text = ""


class NewColumns(Body):
    """Columns to add."""

    columns: _SchemaText = Field(alias="schema")


class Key(Body):
    """A primary key."""

    columns: _Names


class Constraint(Body):
    """What every row must fulfil."""

    predicate: _Text


@readable(router, "", summary="List the tables")
async def list_tables(tables: Tables, server: ServerHere) -> TablesView:
    """Return the names of the tables that who asks may read."""
    return TablesView(tables=await server.lanes.work.run(tables.names))


@router.post("", status_code=201, summary="Create a table")
async def create_table(body: NewTable, tables: Tables, server: ServerHere, response: Response) -> VersionView:
    """Create an empty table."""

    def create() -> int:
        return tables.create(
            body.name,
            Schema.parse(body.columns, body.primary_key),
            partition_by=body.partition_by,
            description=body.description,
        )

    version = await server.lanes.writes.run(create)
    response.headers["Location"] = f"/v1/tables/{body.name}"
    return VersionView(version=version)


@readable(router, "/{table}", summary="Describe a table")
async def describe_table(table: TableName, tables: Tables, server: ServerHere) -> TableView:
    """Return everything worth knowing about a table's newest version."""
    info = await server.lanes.work.run(tables.describe, table)
    return TableView.model_validate(info.to_dict())


@router.delete("/{table}", status_code=204, summary="Delete a table")
async def drop_table(table: TableName, tables: Tables, server: ServerHere) -> None:
    """Delete a table with all its versions."""
    await server.lanes.writes.run(tables.drop, table)


@readable(router, "/{table}/skipping", summary="What a condition lets the engine skip")
async def skipping(table: TableName, tables: Tables, server: ServerHere, where: Where = None) -> SkippingView:
    """Return how many files and bytes are left unread for a condition."""
    return SkippingView.model_validate(await server.lanes.work.run(tables.skipping, table, where))


@router.put("/{table}/primary-key", summary="Declare the primary key")
async def set_primary_key(table: TableName, body: Key, tables: Tables, server: ServerHere) -> VersionView:
    """Declare by which columns rows are told apart; the rows that are there are checked."""
    return VersionView(version=await server.lanes.writes.run(tables.set_primary_key, table, body.columns))


@router.put("/{table}/properties", summary="Set properties")
async def set_properties(
    table: TableName, body: dict[_Text, _Text], tables: Tables, server: ServerHere
) -> VersionView:
    """Set properties of a table; those that are not named keep their values."""
    return VersionView(version=await server.lanes.writes.run(tables.set_properties, table, body))


@router.post("/{table}/columns", status_code=201, summary="Add columns")
async def add_columns(table: TableName, body: NewColumns, tables: Tables, server: ServerHere) -> VersionView:
    """Add columns, which are NULL in the rows that are there."""

    def add() -> int:
        return tables.add_columns(table, Schema.parse(body.columns))

    return VersionView(version=await server.lanes.writes.run(add))


@router.put("/{table}/constraints/{constraint}", summary="Add a constraint")
async def add_constraint(
    table: TableName, constraint: ConstraintName, body: Constraint, tables: Tables, server: ServerHere
) -> VersionView:
    """Let every row fulfil a condition from now on; the rows that are there are checked."""
    version = await server.lanes.writes.run(tables.add_constraint, table, constraint, body.predicate)
    return VersionView(version=version)


@router.delete("/{table}/constraints/{constraint}", summary="Drop a constraint")
async def drop_constraint(
    table: TableName, constraint: ConstraintName, tables: Tables, server: ServerHere
) -> VersionView:
    """Drop a constraint."""
    return VersionView(version=await server.lanes.writes.run(tables.drop_constraint, table, constraint))
