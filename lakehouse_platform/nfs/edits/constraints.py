"""CHECK constraints for rows that arrive: the store's evaluation as the callable that `RowChecker` takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.nfs.edits.check import Violation, Violations
from lakehouse_platform.store.checks import first_row_outside
from lakehouse_platform.store.predicates import Predicate, parse_predicate


def violations_of(constraints: Mapping[str, str], schema: pa.Schema) -> Violations:
    """Return what finds the first row that breaks a constraint; one in another system's SQL is left to the commit."""
    conditions = dict(_understood(constraints, schema))

    def violation(rows: pa.Table) -> Violation | None:
        broken = [
            Violation(row - 1, f"the row breaks constraint {name!r}: {constraints[name]}")
            for name, condition in conditions.items()
            if (row := first_row_outside(rows, condition)) is not None
        ]
        return min(broken, key=lambda found: found.row, default=None)

    return violation


def _understood(constraints: Mapping[str, str], schema: pa.Schema) -> Iterator[tuple[str, Predicate]]:
    for name, text in constraints.items():
        try:
            condition = parse_predicate(text, schema)
        except InvalidPredicateError:
            condition = None
        if condition is not None:
            yield name, condition
