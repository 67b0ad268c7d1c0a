"""Two columns of one name: a query may make them, and what finds values by their names holds only one of them.

So JSON, Parquet, dictionaries and data frames refuse such a result, for it would lose a column unnoticed; forms that
hold columns by their place (CSV, Arrow, the table on a terminal) have them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.types as pt

from lakehouse_platform.errors import InvalidSqlError


def require_distinct(schema: pa.Schema) -> None:
    """Refuse columns of one name, also within a column.

    Raises:
        InvalidSqlError: There are some.
    """
    require_distinct_names(schema.names)
    require_distinct_within(schema)


def require_distinct_names(names: Sequence[str]) -> None:
    """Refuse columns of one name.

    Raises:
        InvalidSqlError: There are some.
    """
    if repeated := _repeated(names):
        raise InvalidSqlError(
            f"The result has several columns named {', '.join(map(repr, repeated))}, and JSON, Parquet, dictionaries "
            "and data frames hold one of each name: tell them apart with AS, or take the result as CSV or Arrow.",
            columns=repeated,
        )


def require_distinct_within(schema: pa.Schema) -> None:
    """Refuse structs with fields of one name, wherever in a column they are: their text is JSON in every form.

    Raises:
        InvalidSqlError: There are some.
    """
    for column in schema:
        for kind in _structs(column.type):
            require_distinct_fields(kind)


def require_distinct_fields(kind: pa.DataType) -> None:
    """Refuse a struct with fields of one name.

    Raises:
        InvalidSqlError: It is one.
    """
    if repeated := _repeated([field.name for field in kind]):
        raise InvalidSqlError(
            f"The result has a struct with several fields named {', '.join(map(repr, repeated))}: name each once.",
            fields=repeated,
        )


def _repeated(names: Sequence[str]) -> list[str]:
    if len(set(names)) == len(names):
        return []
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def _structs(kind: pa.DataType) -> Iterable[pa.DataType]:
    if pt.is_struct(kind):
        yield kind
    for place in range(kind.num_fields):
        yield from _structs(kind.field(place).type)
