"""Query parameters and headers that the routes of tables have in common, and which of them are refused."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

# The largest version that Delta's log can count to.
MOST = 2**63 - 1
# More than any predicate that people or programs write; what stands in the address has the server's limit besides.
_LONGEST_TEXT = 65_536

TableName = Annotated[str, Path(max_length=255, description="Name of the table.")]
ConstraintName = Annotated[str, Path(max_length=255, description="Name of the constraint.")]
Columns = Annotated[
    str | None,
    Query(
        max_length=_LONGEST_TEXT,
        description='Columns, in order, separated by commas; a name with a comma in double quotes. `id,"a,b"`',
    ),
]
Where = Annotated[
    str | None,
    Query(max_length=_LONGEST_TEXT, description="Condition over the table's columns, such as `price > 2`."),
]
NeededWhere = Annotated[
    str,
    Query(max_length=_LONGEST_TEXT, description="Condition over the table's columns; `TRUE` for all rows."),
]
# Told to readers of the description, and left to the services to refuse, whose errors say which ones there are.
WHOLE: dict[str, Any] = {"minimum": 0, "maximum": MOST}
Version = Annotated[int | None, Query(json_schema_extra=WHOLE, description="A version of the table.")]
NeededVersion = Annotated[int, Query(json_schema_extra=WHOLE, description="A version of the table.")]
Timestamp = Annotated[
    str | None,
    Query(max_length=64, description="An RFC 3339 time: the version that was the newest then."),
]
Limit = Annotated[int | None, Query(json_schema_extra=WHOLE, description="The most rows to return.")]
Evolve = Annotated[
    bool,
    Query(description="Whether columns that the table lacks are added, with Arrow and CSV."),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="1 to 255 visible ASCII characters, chosen anew for each write. Sent again with the same key, a "
        "write is not done twice: the answer is that of the first time, and says `repeated`.",
    ),
]


async def known_parameters(request: Request) -> None:
    """Refuse query parameters that the route does not have, or that stand there twice.

    Raises:
        RequestValidationError: There are some; a filter that is misspelt would be as good as none.
    """
    route: APIRoute = request.scope["route"]
    known = {
        field.alias
        for field in get_flat_params(route.dependant)
        if isinstance(field.field_info, params.Query)
    }
    given = Counter(name for name, _ in request.query_params.multi_items())
    wrong = [_problem(name, "is unknown here") for name in given if name not in known]
    wrong += [_problem(name, "stands there twice") for name, times in given.items() if times > 1]
    if wrong:
        raise RequestValidationError(wrong)


def names_of(columns: str | None, parameter: str = "columns") -> Sequence[str] | None:
    """Return the names that a list separated by commas holds; None for no list.

    Raises:
        RequestValidationError: It is no such list, or a name in it is empty.
    """
    if columns is None:
        return None
    try:
        (names,) = csv.reader([columns], strict=True)
    except (csv.Error, ValueError):
        names = []
    if not names or not all(names):
        raise RequestValidationError([_problem(parameter, "is no list like `id,name`")])
    return names


def _problem(name: str, reason: str) -> dict[str, object]:
    return {"type": "value_error", "loc": ("query", name), "msg": reason}
