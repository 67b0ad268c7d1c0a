"""Which row breaks which CHECK constraint: the engine only says that some row broke one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakehouse_platform.errors import ConstraintViolationError, InvalidPredicateError
from lakehouse_platform.store.memory_sql import query_arrow
from lakehouse_platform.store.predicates import Predicate, parse_predicate
from lakehouse_platform.store.snapshot import constraints


@contextmanager
def named_violations(table: DeltaTable, rows: pa.Table, name: str) -> Generator[None]:
    """Say which row breaks which constraint if the engine refuses rows; other errors pass.

    Raises:
        ConstraintViolationError: A row breaks a constraint.
    """
    try:
        yield
    except DeltaError as error:
        found = _broken(table, rows, name)
        if found is None:
            raise
        raise found from error


def _broken(table: DeltaTable, rows: pa.Table, name: str) -> ConstraintViolationError | None:
    """Return an error that names the first constraint broken by rows and the first row that breaks it, without values.

    Args:
        table: The snapshot whose constraints hold.
        rows: The rows that were refused.
        name: The table's name, for the message.

    Returns:
        None if no constraint can be named: it is written in another system's SQL, or something else is wrong.
    """
    for constraint, text in constraints(table).items():
        condition = _understood(text, rows.schema)
        row = first_row_outside(rows, condition) if condition else None
        if row is not None:
            return ConstraintViolationError(
                f"Row {row} breaks constraint {constraint!r} of {name}: {text}. Nothing was written; correct the row.",
                table=name,
                constraint=constraint,
                row=row,
            )
    return None


def _understood(text: str, schema: pa.Schema) -> Predicate | None:
    try:
        return parse_predicate(text, schema)
    except InvalidPredicateError:
        return None


def first_row_outside(rows: pa.Table, condition: Predicate) -> int | None:
    """Return the number, from 1, of the first row that does not fulfil a condition; NULL does not."""
    if rows.num_rows == 0 or condition.is_always:
        return None
    query = f"SELECT ({condition.sql()}) IS TRUE AS fulfilled FROM f"  # noqa: S608 - rendered by store.predicates
    position = pc.index(query_arrow(rows, query).column("fulfilled"), pa.scalar(False)).as_py()
    return None if position < 0 else position + 1
