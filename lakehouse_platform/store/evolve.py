"""Changes of a table's columns, key, properties and constraints: metadata only, no row is rewritten."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from lakehouse_platform.errors import (
    ConstraintViolationError,
    DuplicateKeyError,
    InvalidNameError,
    SchemaMismatchError,
)
from lakehouse_platform.store.commit import Committer, Stamp
from lakehouse_platform.store.keys import check_key_columns
from lakehouse_platform.store.merge import is_unique
from lakehouse_platform.store.properties import check_properties, primary_key_property
from lakehouse_platform.store.snapshot import arrow_schema, constraints
from lakehouse_platform.store.storable import check_constraint

_CONSTRAINT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def set_primary_key(committer: Committer, columns: Sequence[str]) -> int:
    """Declare the primary key; from then on every write is held to it. Return the new version.

    Raises:
        SchemaMismatchError: A column cannot be part of a key.
        DuplicateKeyError: Existing rows repeat a key or have NULL in it.
    """

    def act(table: DeltaTable, stamp: Stamp) -> None:
        key = check_key_columns(arrow_schema(table), columns, committer.location.name)
        if not is_unique(table, key):
            raise DuplicateKeyError(
                f"Columns {', '.join(key)} of {committer.location.name} cannot be the primary key: existing rows "
                "repeat a value or hold NULL. Remove those rows first.",
                table=committer.location.name,
            )
        table.alter.set_table_properties(
            primary_key_property(key), raise_if_not_exists=False, commit_properties=stamp(exact=True)
        )

    return committer.commit(act).version


def set_properties(committer: Committer, properties: Mapping[str, str]) -> int:
    """Set table properties and return the new version.

    Raises:
        InvalidPropertyError: One is unknown or its value not allowed.
    """
    checked = check_properties(properties)

    def act(table: DeltaTable, stamp: Stamp) -> None:
        table.alter.set_table_properties(checked, raise_if_not_exists=False, commit_properties=stamp())

    return committer.commit(act).version


def add_constraint(committer: Committer, name: str, predicate: str) -> int:
    """Add a CHECK constraint that every present and future row must fulfil; NULL breaks it. Return the new version.

    Raises:
        InvalidNameError: The name is not an identifier, or taken.
        InvalidPredicateError: The predicate is not one whole condition, or no row can break or fulfil it.
        ConstraintViolationError: Existing rows break it.
    """
    _check_name(name)

    def act(table: DeltaTable, stamp: Stamp) -> None:
        if name in constraints(table):
            raise InvalidNameError(
                f"Table {committer.location.name} already has constraint {name!r}: drop it first."
            )
        condition = check_constraint(predicate, arrow_schema(table))
        if condition.is_never or condition.is_always:
            raise ConstraintViolationError(
                f"Constraint {predicate!r} is the same for every row: nothing to check."
            )
        table.alter.add_constraint({name: condition.sql()}, commit_properties=stamp(exact=True))

    return committer.commit(act).version


def drop_constraint(committer: Committer, name: str) -> int:
    """Drop a CHECK constraint and return the new version.

    Raises:
        InvalidNameError: There is no such constraint.
    """

    def act(table: DeltaTable, stamp: Stamp) -> None:
        known = constraints(table)
        if name not in known:
            raise InvalidNameError(
                f"Table {committer.location.name} has no constraint {name!r}; it has {', '.join(known) or 'none'}."
            )
        table.alter.drop_constraint(name, commit_properties=stamp())

    return committer.commit(act).version


def add_columns(committer: Committer, columns: pa.Schema) -> int:
    """Add nullable columns; existing rows read NULL in them. Return the new version.

    Raises:
        SchemaMismatchError: A column exists already, whatever its case, or is NOT NULL.
    """

    def act(table: DeltaTable, stamp: Stamp) -> None:
        _check_new(columns, arrow_schema(table), committer.location.name)
        fields: Any = Schema.from_arrow(columns).fields
        table.alter.add_columns(fields, commit_properties=stamp())

    return committer.commit(act).version


def _check_new(columns: pa.Schema, existing: pa.Schema, name: str) -> None:
    taken = {column.lower() for column in existing.names}
    for field in columns:
        if field.name.lower() in taken:
            raise SchemaMismatchError(f"Table {name} already has column {field.name!r}.", column=field.name)
        # The engine would accept it, and every later append of older writers would fail.
        if not field.nullable:
            raise SchemaMismatchError(
                f"Column {field.name!r} cannot be NOT NULL: rows that {name} already holds have no value for it.",
                column=field.name,
            )


def _check_name(name: str) -> None:
    if _CONSTRAINT_NAME.fullmatch(name) is None:
        raise InvalidNameError(f"{name!r} cannot name a constraint: use letters, digits and '_', at most 64.")
