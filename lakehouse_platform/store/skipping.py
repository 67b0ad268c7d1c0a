"""How many files and bytes a predicate lets the engine leave unread."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from deltalake import DeltaTable

from lakehouse_platform.errors import DeltaTableError
from lakehouse_platform.model.results import SkippingStats
from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.expressions import Expression, Logic
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.predicates import Predicate, parse_predicate
from lakehouse_platform.store.scan import without
from lakehouse_platform.store.snapshot import arrow_schema, data_files


def measure_skipping(
    location: Location, table: DeltaTable, predicate: str | None, hidden: Collection[str] = ()
) -> SkippingStats:
    """Ask the engine which files it would open for a predicate, and count them.

    Args:
        location: The table, for messages.
        table: The snapshot to ask.
        predicate: The condition; None for a full scan.
        hidden: Columns that the condition may not name.

    Raises:
        InvalidPredicateError: The predicate is not one whole condition.
    """
    files = {file.path.rsplit("/", 1)[-1]: file.size for file in data_files(table)}
    schema = without(arrow_schema(table), hidden)
    condition = parse_predicate(predicate, schema) if predicate is not None else None
    opened = _opened(location, table, condition, set(files))
    scanned = sum(files[name] for name in opened)
    return SkippingStats(
        total_files=len(files),
        files_read=len(opened),
        files_skipped=len(files) - len(opened),
        bytes_scanned=scanned,
        bytes_skipped=sum(files.values()) - scanned,
    )


def files_opened(location: Location, table: DeltaTable, condition: str, everything: set[str]) -> set[str]:
    """Return the names, out of everything's, of the files that may hold rows fulfilling an engine-safe condition."""
    try:
        with translated(location):
            uris = table.file_uris(file_pruning_predicate=condition)
    except DeltaTableError as error:
        if "for file skipping" not in error.message:
            raise
        return (
            everything  # functions, LIKE and the like say nothing about a file's smallest and largest values
        )
    return {uri.rsplit("/", 1)[-1] for uri in uris} & everything


def _opened(
    location: Location, table: DeltaTable, condition: Predicate | None, everything: set[str]
) -> set[str]:
    if condition is None or condition.is_always:
        return everything
    if condition.is_never:
        return set()
    left = everything
    for part in _conjuncts(condition.condition):
        left = left & files_opened(location, table, part.sql(), everything)
    return left


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the conditions that must all hold: each alone can rule files out, whatever the others are."""
    if isinstance(condition, Logic) and condition.operator == "AND":
        for item in condition.items:
            yield from _conjuncts(item)
    else:
        yield condition
