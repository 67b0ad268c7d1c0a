"""How a route answers with rows: the form is settled first, then the rows are opened, then they are sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol

from fastapi import Depends, Request
from fastapi.responses import Response

from lakehouse_platform.api.actors import ServerHere, SignedIn
from lakehouse_platform.api.answers import VERSION_HEADER, HeadOfRows, Pieces, Readable, RowsAnswer
from lakehouse_platform.api.formats import RowForm, wanted_form
from lakehouse_platform.api.lanes import Lane
from lakehouse_platform.api.problems import Refusal, refused
from lakehouse_platform.services.tables import TableAccess


class Opened(Readable, Protocol):
    """Rows that were opened to be sent."""

    @property
    def version(self) -> int | None:
        """The version that was read, where it was one."""
        ...

    def close(self) -> None:
        """End readings that are given up."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for rows.

    Attributes:
        tables: The tables, for who asks.
        form: The form that the rows are sent in.
        is_head: Whether only the head of the answer is asked for.
        most_rows: Rows that the answer may hold; None for no limit.
        lane: Where rows are made.
    """

    tables: TableAccess
    form: RowForm
    is_head: bool
    most_rows: int | None
    lane: Lane

    async def answer(self, open_rows: Callable[[], Opened]) -> Response:
        """Return the answer.

        Args:
            open_rows: Returns the rows; runs in a thread.

        Raises:
            LakehouseError: The rows cannot be read, or fail at their beginning.
        """
        return await self.lane.run(self._answer, open_rows)

    def _answer(self, open_rows: Callable[[], Opened]) -> Response:
        rows = open_rows()
        headers = {} if rows.version is None else {VERSION_HEADER: str(rows.version)}
        if self.is_head:
            rows.close()
            return HeadOfRows(self.form, headers=headers)
        pieces = Pieces(rows, self.form, most_rows=self.most_rows)
        return RowsAnswer(pieces, self.form, self.lane, headers=headers)


async def tables_of(caller: SignedIn, server: ServerHere) -> TableAccess:
    """Return the tables for who asks."""
    return server.lakehouse.tables.acting_as(caller.actor, caller.origin)


Tables = Annotated[TableAccess, Depends(tables_of)]


async def _asked(request: Request, tables: Tables, server: ServerHere) -> Asked:
    if request.scope["http_version"] == "1.0":
        # Without chunks an answer that breaks off looks whole.
        raise refused(
            Refusal.HTTP_VERSION,
            "Rows are sent over HTTP/1.1, which tells when they break off: use it, also from a proxy to this server.",
        )
    return Asked(
        tables,
        wanted_form(", ".join(request.headers.getlist("accept"))),
        request.method == "HEAD",
        server.lakehouse.config.api_max_rows,
        server.lanes.rows,
    )


AskedRows = Annotated[Asked, Depends(_asked)]
